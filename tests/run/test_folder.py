"""Folders and files of runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lab.errors import EnvironmentFault
from lab.private_files import write_private
from lab.run.folder import latest, make_run_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_runs_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    """And `latest` names the newest."""
    out = tmp_path / "deep" / "runs"
    folders = [make_run_folder(out, "chat", "20260101T000000Z", 7) for _ in range(3)]
    assert [folder.name for folder in folders] == [
        "20260101T000000Z-7",
        "20260101T000000Z-7-2",
        "20260101T000000Z-7-3",
    ]
    link = out / "chat" / "latest"
    assert str(link.readlink()) == "20260101T000000Z-7-3"
    assert latest(folders[2]) == link
    assert latest(folders[0]) == folders[0]
    assert sorted(path.name for path in (out / "chat").iterdir()) == [*(folder.name for folder in folders), "latest"]


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    """Folders 0700, files 0600, whatever the umask says."""
    former = os.umask(0)
    try:
        folder = make_run_folder(tmp_path / "runs", "chat", "now", 1)
        write_private(folder / "file", "text")
    finally:
        os.umask(former)
    assert (mode(folder), mode(folder.parent), mode(folder / "file")) == (0o700, 0o700, 0o600)


@pytest.mark.parametrize("place", ["a file", "a folder named latest", "no folder there"])
def test_a_place_that_cannot_be_had_is_named(tmp_path: Path, place: str) -> None:
    """In a sentence with what to do."""
    out = tmp_path / "runs"
    if place == "a file":
        out.write_text("")
    elif place == "a folder named latest":
        (out / "chat" / "latest").mkdir(parents=True)
    else:
        out = Path("/proc/none")
    with pytest.raises(EnvironmentFault, match=r"Name another place with --out\.") as caught:
        make_run_folder(out, "chat", "now", 1)
    assert str(out / "chat") in str(caught.value)


def test_a_full_disk_is_told() -> None:
    """As an error of the environment."""
    with pytest.raises(EnvironmentFault, match="No space left on device"):
        write_private(Path("/dev/full"), "text")
