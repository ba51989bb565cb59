"""A search: what it tries, when it stops, and that it comes to the same with one worker and with two."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import count

import pytest

from lab.errors import EnvironmentFault
from lab.explore.moments import moment_of
from lab.explore.plan import Plan
from lab.explore.search import Budget, Progress, Tried, pairs_of, search
from lab.explore.trial import Trial, plan_of
from lab.explore.workers import Workers, workers_for
from lab.faults.plan import FAULT_KINDS
from tests.explore.killed import LEFT_OPEN, collected
from tests.explore.made import ACK, ASSIGN, EVENT, HELD, REGISTER, TARGETS, Trials, frame_fault, link_fault
from tests.explore.test_trial import fix_job

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)

FAILED = Trial(("acks",), ("said",), ("a",), 3.0)


def numbers(budget: Budget, *, stop: int = 1000, trials: Trials | None = None) -> list[int]:
    """The numbers that one worker tries; it is told to stop at `stop`."""
    tried: list[int] = []

    def each(one: Tried) -> bool:
        tried.append(one.number)
        return one.number < stop

    search(TARGETS, 1, budget, (trials or Trials()).workers, each)
    return tried


def test_as_many_plans_are_tried_as_the_budget_has() -> None:
    trials = Trials()
    assert numbers(Budget(7), trials=trials) == list(range(7))
    assert trials.plans == [plan_of(TARGETS, 1, number) for number in range(7)]


def test_whoever_is_told_can_stop_it() -> None:
    assert numbers(Budget(7), stop=3) == [0, 1, 2, 3]


def test_no_plan_is_begun_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at before each plan: here it goes on by a second each time."""
    ticks = count()
    monkeypatch.setattr("lab.explore.search.time.monotonic", lambda: float(next(ticks)))
    assert numbers(Budget(100, 4.0)) == [0, 1, 2, 3]


def test_a_worker_that_ends_is_told_with_the_plans_that_were_under_way() -> None:
    """Those that nobody heard of; what came of the others is told as ever."""
    begun: list[Future[Trial]] = []

    def submit(_plan: Plan) -> Future[Trial]:
        future: Future[Trial] = Future()
        begun.append(future)
        if len(begun) == 4:
            begun[0].set_result(HELD)
        if len(begun) == 5:
            for lost in begun[1:]:
                lost.set_exception(BrokenProcessPool())
        return future

    told: list[int] = []

    def each(tried: Tried) -> bool:
        told.append(tried.number)
        return True

    with pytest.raises(EnvironmentFault, match=r"plans of seed 1: 1, 2, 3, 4\. "):
        search(TARGETS, 1, Budget(100), Workers(4, submit), each)
    assert told == [0]


def test_a_worker_that_ends_while_a_finding_is_made_small_is_told_with_that_plan() -> None:
    def each(_tried: Tried) -> bool:
        raise BrokenProcessPool

    with pytest.raises(EnvironmentFault, match=r"plans of seed 1: 0\. "):
        search(TARGETS, 1, Budget(100), Trials().workers, each)


@pytest.mark.timeout(180)
def test_two_workers_find_what_one_finds() -> None:
    """Without any order among them; each plan once."""
    base, targets = fix_job()
    # Too little time for most faults, so that many plans fail.
    hurried = replace(base, deadline=-895.0)
    told: dict[int, list[tuple[int, tuple[str, ...], Plan]]] = {1: [], 2: []}
    for workers, found in told.items():

        def each(tried: Tried, found: list[tuple[int, tuple[str, ...], Plan]] = found) -> bool:
            found.append((tried.number, tried.trial.broken, tried.plan))
            return True

        with workers_for(hurried, 1, workers) as trying:
            search(targets, 1, Budget(16), trying, each)
    assert sorted(told[1], key=lambda one: one[0]) == sorted(told[2], key=lambda one: one[0])
    assert [number for number, _, _ in told[1]] == list(range(16))
    assert len({broken for _, broken, _ in told[1]}) > 1


@pytest.mark.timeout(180)
def test_workers_end_when_whoever_is_told_stops_the_search() -> None:
    base, targets = fix_job()
    told: list[int] = []

    def each(tried: Tried) -> bool:
        told.append(tried.number)
        return False

    with workers_for(base, 1, 2) as trying:
        search(targets, 1, Budget(1000), trying, each)
    assert len(told) == 1


@pytest.mark.timeout(180)
def test_what_goes_wrong_with_whoever_is_told_ends_the_search() -> None:
    """As Ctrl-C does, which comes as an exception of the same sort."""
    base, targets = fix_job()

    def each(_tried: Tried) -> bool:
        raise KeyboardInterrupt

    for workers in (1, 2):
        with pytest.raises(KeyboardInterrupt), workers_for(base, 1, workers) as trying:
            search(targets, 1, Budget(1000), trying, each)


def test_progress_counts_what_struck() -> None:
    progress = Progress()
    plan = (frame_fault("a"), frame_fault("b", "hold", seconds=1.0), link_fault("c", before=2))
    progress.take(Tried(0, plan, FAILED))
    progress.take(Tried(1, plan, HELD))
    progress.take(Tried(2, plan, replace(HELD, fired=("a", "c"))))
    assert (progress.runs, progress.failures, progress.simulated) == (3, 1, 7.0)
    assert progress.struck == Counter({("drop", "job.event from local_agent"): 2, ("cut", "before step 2"): 1})


def test_pairs_are_kinds_times_what_they_can_strike() -> None:
    targets = replace(TARGETS, links=("gateway",), services=(), processes=(), moments=(REGISTER, ASSIGN, EVENT, ACK))
    on_frames = [kind for kind in targets.kinds() if kind.name in ("drop", "duplicate", "hold")]
    on_links = [kind for kind in targets.kinds() if kind.name in ("cut", "reset", "delay", "toxic")]
    assert len(on_frames) + len(on_links) + 1 == len(targets.kinds())
    # Three frames have a number; one is signed, for tampering; a link breaks at any of them, or before a step.
    assert pairs_of(targets) == 3 * 3 + 1 + 4 * (4 + targets.steps)


def test_moments_that_read_the_same_are_one() -> None:
    """A kind of frame that is signed now and then is one place to strike at: no more is told of what struck."""
    sometimes = replace(TARGETS, moments=(ASSIGN, replace(ASSIGN, signed=False)))
    assert pairs_of(sometimes) == pairs_of(replace(TARGETS, moments=(ASSIGN,)))


def test_no_more_can_strike_than_is_counted() -> None:
    pairs = {
        (planned.fault.kind, moment_of(planned)) for number in range(3000) for planned in plan_of(TARGETS, 1, number)
    }
    assert len(pairs) <= pairs_of(TARGETS)
    assert {kind for kind, _ in pairs} == {name for name, kind in FAULT_KINDS.items() if kind.drawn}
