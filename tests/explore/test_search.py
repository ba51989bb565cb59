"""A search: what it tries, when it stops, and that it comes to the same with one worker and with two."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest

from lab.explore import search as searching
from lab.explore.plan import Plan, Planned
from lab.explore.search import Budget, Progress, Tried, moment_of, pairs_of, search
from lab.explore.trial import Trial, plan_of
from lab.faults.plan import FAULT_KINDS, Fault, FrameAnchor
from lab.scenario.model import Scenario
from tests.explore.killed import LEFT_OPEN, collected
from tests.explore.made import ACK, ASSIGN, EVENT, REGISTER, TARGETS, frame_fault, link_fault
from tests.explore.test_trial import fix_job
from tests.run.made import scenario

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)

HELD = Trial((), (), (), 2.0)
FAILED = Trial(("acks",), ("said",), ("a",), 3.0)


class Trials:
    """Trials that need no run."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def __call__(self, _scenario: Scenario, plan: Plan, _seed: int) -> Trial:
        self.plans.append(plan)
        return HELD


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    made = Trials()
    monkeypatch.setattr(searching, "try_plan", made)
    return made


def numbers(budget: Budget, *, stop: int = 1000) -> list[int]:
    """The numbers that one worker tries; it is told to stop at `stop`."""
    tried: list[int] = []

    def each(one: Tried) -> bool:
        tried.append(one.number)
        return one.number < stop

    search(scenario(), TARGETS, 1, budget, 1, each)
    return tried


def test_as_many_plans_are_tried_as_the_budget_has(trials: Trials) -> None:
    assert numbers(Budget(7)) == list(range(7))
    assert trials.plans == [plan_of(TARGETS, 1, number) for number in range(7)]


def test_whoever_is_told_can_stop_it(trials: Trials) -> None:
    assert numbers(Budget(7), stop=3) == [0, 1, 2, 3]


def test_no_plan_is_begun_after_its_time(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at before each plan: here it goes on by a second each time."""
    ticks = count()
    monkeypatch.setattr("lab.explore.search.time.monotonic", lambda: float(next(ticks)))
    assert numbers(Budget(100, 4.0)) == [0, 1, 2]


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

        search(hurried, targets, 1, Budget(16), workers, each)
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

    search(base, targets, 1, Budget(1000), 2, each)
    assert len(told) == 1


@pytest.mark.timeout(180)
def test_what_goes_wrong_with_whoever_is_told_ends_the_search() -> None:
    """As Ctrl-C does, which comes as an exception of the same sort."""
    base, targets = fix_job()

    def each(_tried: Tried) -> bool:
        raise KeyboardInterrupt

    for workers in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            search(base, targets, 1, Budget(1000), workers, each)


def test_progress_counts_what_struck() -> None:
    progress = Progress()
    plan = (frame_fault("a"), frame_fault("b", "hold", seconds=1.0), link_fault("c", before=2))
    progress.take(Tried(0, plan, FAILED))
    progress.take(Tried(1, plan, HELD))
    progress.take(Tried(2, plan, replace(HELD, fired=("a", "c"))))
    assert (progress.runs, progress.failures, progress.simulated) == (3, 1, 7.0)
    assert progress.struck == Counter({("drop", "job.event from local_agent"): 2, ("cut", "before step 2"): 1})


@pytest.mark.parametrize(
    ("planned", "moment"),
    [
        (link_fault("a", before=3), "before step 3"),
        (Planned(0, Fault("a", "drop", anchor=FrameAnchor("ack", "b", 4, of="job.event"))), "ack of job.event from b"),
        (
            Planned(0, Fault("a", "drop", anchor=FrameAnchor("content.request", "b", content="job.stream"))),
            "content.request job.stream from b",
        ),
        (frame_fault("a", nth=3), "job.event from local_agent"),
    ],
)
def test_the_moment_of_a_fault_in_words(planned: Planned, moment: str) -> None:
    assert moment_of(planned) == moment


def test_moments_of_faults_are_told_in_the_words_of_moments() -> None:
    """So that what struck can be held against what can be struck."""
    for moment in TARGETS.moments:
        anchor = FrameAnchor(moment.type, moment.sender, 1, moment.of, moment.content)
        assert moment_of(Planned(0, Fault("a", "drop", anchor=anchor))) == moment.words()


def test_pairs_are_kinds_times_what_they_can_strike() -> None:
    targets = replace(TARGETS, links=("gateway",), services=(), processes=(), moments=(REGISTER, ASSIGN, EVENT, ACK))
    on_frames = [kind for kind in targets.kinds() if kind.name in ("drop", "duplicate", "hold")]
    on_links = [kind for kind in targets.kinds() if kind.name in ("cut", "reset", "delay")]
    assert len(on_frames) + len(on_links) + 1 == len(targets.kinds())
    # Three frames have a number; one is signed, for tampering; a link breaks at any of them, or before a step.
    assert pairs_of(targets) == 3 * 3 + 1 + 3 * (4 + targets.steps)


def test_no_more_can_strike_than_is_counted() -> None:
    pairs = {
        (planned.fault.kind, moment_of(planned)) for number in range(3000) for planned in plan_of(TARGETS, 1, number)
    }
    assert len(pairs) <= pairs_of(TARGETS)
    assert {kind for kind, _ in pairs} == {name for name, kind in FAULT_KINDS.items() if kind.drawn}
