import json
import re
from pathlib import Path
from typing import Any

import pytest

from lab.draws import Draws
from lab.localagent.answer import Answer, refused
from lab.localagent.config import Workspace
from lab.localagent.filelist import FileLists

BOUND = 64 * 32768


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("12345")
    (folder / "a é.txt").write_text("")
    (folder / "src" / "deep" / "x.py").write_text("1")
    (tmp_path / "outside").mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    return folder


def lists(root: Path) -> tuple[FileLists, str]:
    workspace = Workspace("ws-1", str(root))
    return FileLists([workspace], Draws(7, "agent", "file-refs")), workspace.root_ref


def entries(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == "ok"
    body = json.loads(answer.body)
    assert set(body) == {"entries", "truncated"}
    listed: list[dict[str, Any]] = body["entries"]
    return listed


@pytest.mark.req("CH-034", "SEC-006")
def test_listing_by_refs(root: Path) -> None:
    files, ref = lists(root)
    answer = files.answer(ref, BOUND, "ws-1")
    listed = entries(answer)
    assert [(entry["name"], entry["kind"], entry["size"]) for entry in listed] == [
        ("a é.txt", "file", 0),
        ("b.txt", "file", 5),
        ("src", "directory", 0),
    ]
    assert [name for entry in listed for name in entry if name == "ref"] == ["ref"]
    src = listed[2]["ref"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", src)
    assert str(root) not in answer.body.decode()
    deep = entries(files.answer(src, BOUND, "ws-1"))[0]["ref"]
    assert entries(files.answer(deep, BOUND, "ws-1")) == [{"name": "x.py", "kind": "file", "size": 1}]
    assert entries(files.answer(ref, BOUND, "ws-1"))[2]["ref"] == src


@pytest.mark.req("CH-036")
def test_a_ref_of_another_workspace_is_forbidden(root: Path) -> None:
    files, ref = lists(root)
    assert files.answer(ref, BOUND, "ws-2") == refused("forbidden")
    assert files.answer("x" * 43, BOUND, "ws-1") == refused("not_found")


def test_a_folder_that_became_a_link_is_not_followed(root: Path) -> None:
    files, ref = lists(root)
    src = entries(files.answer(ref, BOUND, "ws-1"))[2]["ref"]
    (root / "src").rename(root / "old")
    assert files.answer(src, BOUND, "ws-1") == refused("not_found")
    (root / "src").symlink_to(root.parent / "outside")
    assert files.answer(src, BOUND, "ws-1") == refused("not_found")


def test_a_listing_is_cut_to_its_bound(root: Path) -> None:
    files, ref = lists(root)
    whole = files.answer(ref, BOUND, "ws-1").body
    assert json.loads(whole)["truncated"] is False
    cut = files.answer(ref, len(whole) - 1, "ws-1").body
    assert len(cut) < len(whole)
    assert json.loads(cut)["truncated"] is True
    assert len(json.loads(cut)["entries"]) == 2
    assert files.answer(ref, 5, "ws-1") == refused("error", "payload_too_large")
