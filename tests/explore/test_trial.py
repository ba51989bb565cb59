"""A trial: one run of a plan, judged, that leaves nothing behind and comes out the same again."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from lab.commands.loading import load
from lab.errors import EnvironmentFault
from lab.explore import trial
from lab.explore.drawing import Targets
from lab.explore.plan import Planned
from lab.explore.trial import plan_of, run_quietly, targets_of, try_plan
from lab.faults.plan import Fault, FrameAnchor
from lab.run.runner import RunResult
from lab.run.verdict import Outcome
from lab.scenario.model import Scenario
from tests.bugs.plants import all_plants, planted
from tests.explore.killed import LEFT_OPEN, collected

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)

ROOT = Path(__file__).parents[2]

LOST = Planned(0, Fault("lost", "drop", anchor=FrameAnchor("job.assign", "gateway")))
TWICE = Planned(0, Fault("twice", "duplicate", anchor=FrameAnchor("job.assign", "gateway")))
NEVER = Planned(0, Fault("never", "drop", anchor=FrameAnchor("job.event", "local_agent", 500)))


@cache
def fix_job() -> tuple[Scenario, Targets]:
    scenario = load(ROOT / "scenarios" / "fix-job.yaml")
    clean = run_quietly(scenario, 1)
    assert clean.verdict.outcome is Outcome.PASS
    return scenario, targets_of(scenario, clean.entries)


def test_targets_are_what_the_scenario_names_and_its_run_shows() -> None:
    scenario, targets = fix_job()
    assert (targets.links, targets.services) == (tuple(scenario.links), ("agent2",))
    assert targets.processes == ("local_agent",)
    assert targets.steps == len(scenario.steps)
    assert {"job.assign", "job.event", "job.result"} <= {moment.type for moment in targets.moments}


def test_a_plan_that_is_made_good_breaks_nothing_and_tells_what_struck() -> None:
    """A fault whose moment never comes does not count as one that struck."""
    tried = try_plan(fix_job()[0], (LOST, NEVER), 1)
    assert (tried.broken, tried.said, tried.fired) == ((), (), ("lost",))
    # The assign is sent again after 5 s.
    assert tried.simulated > 5


def test_what_broke_is_named_and_said() -> None:
    slip = all_plants()["agent-duplicate-runs-again"]
    assert slip.law == "job-at-most-once"
    with planted(slip.put):
        tried = try_plan(fix_job()[0], (TWICE,), 1)
    assert slip.law in tried.broken
    assert len(tried.said) == len(tried.broken)
    assert "seen" in tried.said[tried.broken.index(slip.law)]


def test_a_trial_comes_out_the_same_again() -> None:
    scenario, targets = fix_job()
    plan = plan_of(targets, 1, 7)
    assert try_plan(scenario, plan, 1) == try_plan(scenario, plan, 1)


def test_a_plan_is_known_by_its_seed_and_number() -> None:
    targets = fix_job()[1]
    assert plan_of(targets, 1, 7) == plan_of(targets, 1, 7)
    plans = {repr(plan_of(targets, seed, number)) for seed in (1, 2) for number in range(10)}
    assert len(plans) > 15


def test_a_run_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MEMORY", str(tmp_path))
    before = tempfile.tempdir
    result = run_quietly(fix_job()[0], 1)
    assert result.folder.is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert tempfile.tempdir == before


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (EnvironmentFault("too many steps."), "seen too many steps.; due"),
        # Its words may hold content.
        (KeyError("the-secret"), "seen KeyError at test_trial.py:"),
    ],
)
def test_a_run_that_raises_is_the_labs_failure(monkeypatch: pytest.MonkeyPatch, error: Exception, seen: str) -> None:
    def run(_scenario: Scenario, _seed: int) -> RunResult:
        raise error

    monkeypatch.setattr(trial, "run_quietly", run)
    tried = try_plan(fix_job()[0], (TWICE,), 1)
    assert (tried.broken, tried.fired, tried.simulated) == (("lab",), (), 0.0)
    assert seen in tried.said[0]
    assert "the-secret" not in tried.said[0]


def test_an_interrupt_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_scenario: Scenario, _seed: int) -> RunResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(trial, "run_quietly", run)
    with pytest.raises(KeyboardInterrupt):
        try_plan(fix_job()[0], (TWICE,), 1)


def test_what_a_run_has_on_disk_is_taken_away_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a worker does whose parent is gone: all of it, whatever the run makes of that."""
    scenario, _ = fix_job()
    monkeypatch.setattr(trial, "MEMORY", str(tmp_path))
    left: list[list[Path]] = []

    def run(*_: object) -> RunResult:
        (Path(tempfile.gettempdir()) / "journal").write_text("")
        left.append(list(tmp_path.iterdir()))
        trial.remove_folder()
        left.append(list(tmp_path.iterdir()))
        raise KeyboardInterrupt

    monkeypatch.setattr(trial, "run_virtual", run)
    with pytest.raises(KeyboardInterrupt):
        run_quietly(scenario, 1)
    assert [len(folders) for folders in left] == [1, 0]
