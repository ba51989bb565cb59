from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import EnvironmentFault
from lab.private_files import read_private, replace_private


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


def test_what_is_no_text_or_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        read_private(file)
    file.write_bytes(b"\xff")
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        read_private(file)
