"""Who runs the trials. What several workers find together is shown by the tests of a search."""

from __future__ import annotations

import os

import pytest

from lab.explore import workers as module
from lab.explore.plan import Plan
from lab.explore.trial import Trial
from lab.explore.workers import AHEAD, workers_for
from lab.scenario.model import Scenario
from tests.explore.killed import LEFT_OPEN, collected
from tests.explore.made import HELD
from tests.explore.test_trial import LOST, fix_job
from tests.run.made import scenario

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)


def test_one_worker_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial is over when it was submitted, and none is begun ahead of it."""
    tried: list[tuple[Plan, int, int]] = []

    def here(_scenario: Scenario, plan: Plan, seed: int) -> Trial:
        tried.append((plan, seed, os.getpid()))
        return HELD

    monkeypatch.setattr(module, "try_plan", here)
    with workers_for(scenario(), 5, 1) as workers:
        future = workers.submit((LOST,))
        assert (workers.ahead, future.done(), future.result()) == (1, True, HELD)
    assert tried == [((LOST,), 5, os.getpid())]


@pytest.mark.timeout(180)
def test_several_workers_are_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing runs: this process may have threads meanwhile."""
    base, _ = fix_job()
    ran: list[object] = []
    monkeypatch.setattr("lab.explore.trial.run_virtual", lambda *_: ran.append(_))
    with workers_for(base, 1, 2) as workers:
        assert workers.ahead == 2 * AHEAD
        assert workers.submit((LOST,)).result().fired == ("lost",)
    assert ran == []
