"""Each scenario of the partner leg that comes with the lab passes on the virtual clock, and is one run each time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from lab.commands.loading import load
from lab.run.runner import RunOptions, run_scenario
from lab.run.verdict import Outcome
from lab.run.virtual import check_repeated
from lab.sim.run import run_virtual
from tests.command_line import lab
from tests.run.partner.played import told
from tests.scenario.legs import PARTNER_FILES

ON_THE_REAL_CLOCK: Final = ("partner-chat", "stream-cut", "store-dies", "killed-in-a-turn", "files")
"""A few over real sockets; the rest runs there in `make test-long`."""


def test_there_are_more_than_fifty() -> None:
    """As docs/partner.md says of the folder."""
    assert sum(file.parent.name == "partner" for file in PARTNER_FILES) > 50


@pytest.mark.parametrize("file", PARTNER_FILES, ids=lambda file: str(file.stem))
def test_it_passes_twice_alike(file: Path, tmp_path: Path) -> None:
    """Two runs of one seed have one journal, to the byte."""
    scenario = load(file)
    assert scenario.seed is not None
    options = RunOptions(tmp_path, scenario.seed, clock="virtual")
    result = run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), scenario.seed)
    assert result.verdict.outcome is Outcome.PASS, told(result)
    check_repeated(scenario, options, result)


def test_some_pass_over_real_sockets(tmp_path: Path) -> None:
    files = [file for file in PARTNER_FILES if file.stem in ON_THE_REAL_CLOCK]
    assert len(files) == len(ON_THE_REAL_CLOCK)
    done = lab("run", *files, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_pass_over_real_sockets(tmp_path: Path) -> None:
    done = lab("run", *PARTNER_FILES, "--out", tmp_path, patience=850)
    assert done.returncode == 0, done.stdout + done.stderr
