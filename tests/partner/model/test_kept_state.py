from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.draws import Draws
from lab.errors import EnvironmentFault, UsageError
from lab.partner.model.kept_state import keep_state


def draws() -> Draws:
    return Draws(1, "agent", "agentId")


async def test_an_agent_stays_with_its_state(tmp_path: Path) -> None:
    """A fresh one at first; a given one counts more, and stays from then on."""
    path = tmp_path / "new" / "s.sqlite"
    seen = []
    for given, seed in ((None, 1), (None, 2), ("agent-7", 3), (None, 4)):
        kept = keep_state(path, "org", given, Draws(seed, "agent", "agentId"))
        seen.append(kept.agent_id)
        await kept.close()
        await kept.close()
    assert seen == [draws().uuid(), seen[0], "agent-7", "agent-7"]
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


async def test_one_at_a_time(tmp_path: Path) -> None:
    """The message names who has it; closing sets it free, and so does a failure."""
    path = tmp_path / "s.sqlite"
    kept = keep_state(path, "org", None, draws())
    with pytest.raises(EnvironmentFault, match=f"in use by process {os.getpid()}, which has locked {path}.lock"):
        keep_state(path, "org", None, draws())
    await kept.close()
    for _ in range(2):
        with pytest.raises(UsageError, match="is of the organization org, and LAB_ORGANIZATION_ID names other"):
            keep_state(path, "other", None, draws())
    again = keep_state(path, "org", None, draws())
    assert again.agent_id == kept.agent_id
    await again.close()


@pytest.mark.parametrize("made", ["lock", "folder"])
def test_a_place_that_cannot_be_had(made: str, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    if made == "lock":
        (tmp_path / "s.sqlite.lock").mkdir()
    else:
        (tmp_path / "file").touch()
        path = tmp_path / "file" / "s.sqlite"
    with pytest.raises(EnvironmentFault, match=r"Name a place that can be written, with --state\."):
        keep_state(path, "org", None, draws())


def test_a_file_that_is_no_state(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_text("no database at all, and longer than the head of one" * 10)
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match="cannot be opened as a database"):
            keep_state(path, "org", None, draws())
