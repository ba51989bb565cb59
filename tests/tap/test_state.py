"""What a SUT keeps on disk, looked at from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.journal.events import SutFile
from lab.tap import state
from lab.tap.state import StateTap

KEY = "k3y-9f2c71d0a8b64e55"
ID = "9cecdeef-d158-4da6-abf8-b879cd526c72"


def look(folder: Path) -> list[SutFile]:
    return list(StateTap("la", {"key": KEY, "other": "other-canary"}).look(folder))


def made(folder: Path, path: str, text: str = "", mode: int = 0o600) -> None:
    file = folder / path
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(mode)


@pytest.mark.req("CHAT-025", "CHAT-061")
def test_files_and_folders_with_modes_and_canaries(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    made(tmp_path, f"chats/{ID}.jsonl", f'{{"line":"password={KEY}"}}')
    made(tmp_path, "queue.json", "{}", 0o644)
    assert look(tmp_path) == [
        SutFile("la", "", folder=True, mode=0o750),
        SutFile("la", "chats", folder=True, mode=0o700),
        SutFile("la", f"chats/{ID}.jsonl", folder=False, mode=0o600, canaries=("key",)),
        SutFile("la", "queue.json", folder=False, mode=0o644, canaries=()),
    ]


def test_a_canary_behind_escapes(tmp_path: Path) -> None:
    made(tmp_path, "a", "".join(f"\\u{ord(char):04x}" for char in KEY))
    assert look(tmp_path)[1].canaries == ("key",)


@pytest.mark.req("SEC-012")
@pytest.mark.parametrize("name", ["Where is the tax rate set", "notes-of-2026.txt", KEY, "other-canary"])
def test_a_name_that_may_be_content_is_not_told(tmp_path: Path, name: str) -> None:
    made(tmp_path, f"chats/{name}/log.txt")
    assert [file.path for file in look(tmp_path)] == ["", "chats", "chats/*", "chats/*/log.txt"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    made(tmp_path, "outside/secret", KEY)
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "link").symlink_to(tmp_path / "outside")
    assert [file.path for file in look(tmp_path / "state")] == [""]


def test_no_folder_is_nothing_to_tell(tmp_path: Path) -> None:
    assert look(tmp_path / "none") == []


def test_beyond_the_bounds_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "a", KEY)
    made(tmp_path, "b", KEY)
    monkeypatch.setattr(state, "MOST_BYTES", len(KEY) + 1)
    assert [file.canaries for file in look(tmp_path)] == [None, ("key",), None]
    monkeypatch.setattr(state, "MOST_FILES", 2)
    # The last one stands for all that nobody saw.
    assert [(file.path, file.canaries) for file in look(tmp_path)] == [("", None), ("a", ("key",)), ("*", None)]
