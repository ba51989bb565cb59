from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import EnvironmentFault
from lab.private_files import MOST_BYTES, read_private, replace_private, write_private


@pytest.mark.req("FX-032")
def test_a_replaced_file_is_private_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "facts.json"
    replace_private(file, "one")
    file.chmod(0o644)
    replace_private(file, "two")
    assert file.read_text() == "two"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == ["facts.json"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(EnvironmentFault, match="taken"):
        replace_private(tmp_path / "taken" / "file", "text")


@pytest.mark.req("FX-032")
def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    replace_private(file, "text")
    assert read_private(file) == "text"
    for mode in (0o644, 0o640, 0o602):
        file.chmod(mode)
        with pytest.raises(EnvironmentFault, match=f"{mode:04o}"):
            read_private(file)


def test_a_file_is_read_within_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    replace_private(file, "text")
    assert read_private(file, 4) == "text"
    with pytest.raises(EnvironmentFault, match="longer than 3 bytes"):
        read_private(file, 3)
    file.write_bytes(b"x" * (MOST_BYTES + 1))
    with pytest.raises(EnvironmentFault, match="longer than"):
        read_private(file)


def test_the_mode_is_that_of_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever puts another file in its place between a look and the reading gains nothing."""
    open_one, private = tmp_path / "open.json", tmp_path / "private.json"
    replace_private(private, "private")
    open_one.write_text("open")
    open_one.chmod(0o644)
    private_stat = private.stat()
    monkeypatch.setattr(Path, "stat", lambda _self: private_stat)
    with pytest.raises(EnvironmentFault, match="0644"):
        read_private(open_one)


def test_what_is_no_text_or_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        read_private(file)
    file.write_bytes(b"\xff")
    file.chmod(0o600)
    with pytest.raises(EnvironmentFault, match="cannot be read as a text file"):
        read_private(file)


def test_a_place_that_refuses_is_told_with_the_option_that_names_it(tmp_path: Path) -> None:
    """Reports go below --out; several options name what is replaced, so that none of them stands there."""
    (tmp_path / "file").mkdir()
    with pytest.raises(EnvironmentFault, match=r"file could not be written: .* name another place with --out\.$"):
        write_private(tmp_path / "file", "text")
    with pytest.raises(EnvironmentFault, match=r"file could not be written: .* name another place\.$"):
        replace_private(tmp_path / "file", "text")
