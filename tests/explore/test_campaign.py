"""From plans that failed to ways to fail. Trials are made up here: what breaks is told by the faults of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

from lab.commands.loading import load
from lab.errors import EnvironmentFault
from lab.explore.campaign import LONGEST_NAME, MOST_SHRINKING, Campaign, Found
from lab.explore.plan import Plan, Planned
from lab.explore.search import Budget, Tried
from lab.explore.trial import Trial
from lab.laws import ALL_LAWS
from lab.scenario.loader import load_scenario
from tests.explore.made import Trials, frame_fault, names

ROOT = Path(__file__).parents[2]

A, B, C = (frame_fault(name) for name in "abc")


def breaks(**needs: str) -> Callable[[Plan], Trial]:
    """Each promise breaks where the plan has all the faults that it needs, by their letters; every fault strikes."""

    def outcome(plan: Plan) -> Trial:
        there = names(plan)
        broken = tuple(promise for promise, needed in needs.items() if set(needed) <= set(there))
        return Trial(broken, tuple(f"{promise} broke with {there}" for promise in broken), tuple(there), 1.0)

    return outcome


class Made:
    """A campaign on made-up trials."""

    def __init__(
        self, out: Path, outcome: Callable[[Plan], Trial], budget: Budget | None = None, seed: int = 3
    ) -> None:
        self.trials = Trials(outcome)
        self.told: list[Found] = []
        scenario = load(ROOT / "scenarios" / "fix-job.yaml")
        workers = self.trials.workers
        self.campaign = Campaign(scenario, seed, out, budget or Budget(100), workers, self.told.append)
        self._outcome = outcome

    def take(self, number: int, *plan: Planned) -> None:
        """A plan that was drawn, and tried once."""
        self.campaign.take(Tried(number, plan, self._outcome(plan)))

    def ways(self) -> list[tuple[tuple[str, ...], list[str], int]]:
        """What breaks, the faults that it takes, and how many further plans failed so."""
        return [(one.broken, names(one.plan), self.campaign.more(one)) for one in self.campaign.found]


def test_a_way_to_fail_is_what_the_small_plan_breaks(tmp_path: Path) -> None:
    """Not what broke beside it in the plan that was drawn, which its file does not break."""
    made = Made(tmp_path, breaks(acks="a", order="ab"))
    made.take(7, A, B)
    (found,) = made.told
    assert (found.broken, found.said, found.number) == (("acks",), ("acks broke with ['a']",), 7)
    text = found.file.read_text("utf-8")
    assert "# acks broke with ['a']" in text
    assert "order" not in text.partition("scenario:")[0]
    assert made.campaign.found == (found,)


def test_what_breaks_beside_another_promise_is_a_way_of_its_own(tmp_path: Path) -> None:
    """Each promise has one plan that is made small for it."""
    made = Made(tmp_path, breaks(acks="a", order="b"))
    made.take(0, A, B)
    made.take(1, A, B)
    made.take(2, A, B)
    assert made.ways() == [(("acks",), ["a"], 1), (("order",), ["b"], 0)]


def test_a_plan_is_not_made_small_for_what_is_known(tmp_path: Path) -> None:
    """It is counted to the way that breaks the same, else to the one that was found for its first promise."""
    made = Made(tmp_path, breaks(acks="a", order="b", pages="ab"))
    made.take(0, A, B)
    made.take(1, B, C)
    made.take(2, A, B)
    assert made.ways() == [(("acks",), ["a"], 0), (("order",), ["b"], 0), (("acks", "order", "pages"), ["a", "b"], 0)]
    tried = len(made.trials.plans)
    made.take(3, A, B)
    made.take(4, B)
    made.take(5, A, C)
    assert len(made.trials.plans) == tried
    assert [more for _, _, more in made.ways()] == [1, 1, 1]


def test_two_promises_that_break_together_are_one_way(tmp_path: Path) -> None:
    """Though each was broken alone by no plan, the second is sought once, and not again."""
    made = Made(tmp_path, breaks(acks="a", order="a"))
    made.take(0, A, B)
    made.take(1, A, C)
    made.take(2, A)
    assert made.ways() == [(("acks", "order"), ["a"], 2)]
    assert made.campaign.progress.failures == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_a_plan_that_breaks_nothing_is_counted_alone(tmp_path: Path) -> None:
    made = Made(tmp_path, breaks(acks="a"))
    made.take(0, B)
    assert (made.campaign.progress.runs, made.campaign.found, made.trials.plans) == (1, (), [])
    assert list(tmp_path.iterdir()) == []


def test_what_did_not_strike_is_left_out_first(tmp_path: Path) -> None:
    def outcome(plan: Plan) -> Trial:
        return Trial(("acks",), ("said",), tuple(name for name in names(plan) if name in "bc"), 1.0)

    made = Made(tmp_path, outcome)
    made.take(0, A, B, C)
    assert made.trials.plans[0] == (B, C)


def test_no_more_is_tried_than_making_small_may_take(tmp_path: Path) -> None:
    many = frame_fault("a", nth=100_000, times=200)
    kept = Trial(("acks",), ("said",), ("a",), 1.0)
    made = Made(tmp_path, lambda plan: kept if plan == (many,) else Trial((), (), (), 1.0))
    made.take(0, many)
    assert len(made.trials.plans) == MOST_SHRINKING
    assert made.told[0].small


def test_nothing_is_made_small_after_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is kept, and says that it may be smaller."""
    # One look before each trial.
    now = iter([0.0, 5.0, *[11.0] * 20])
    monkeypatch.setattr("lab.explore.search.time.monotonic", lambda: next(now))
    made = Made(tmp_path, breaks(acks="a", order="bc"), Budget(100, 10.0))
    made.take(0, A, B)
    assert made.trials.plans == [(B,), (A,)]
    made.take(1, B, C)
    assert len(made.trials.plans) == 2
    assert [(names(one.plan), one.small) for one in made.told] == [(["a"], True), (["b", "c"], False)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenProcessPool])
def test_what_comes_between_leaves_the_plan_as_small_as_it_is(tmp_path: Path, error: type[BaseException]) -> None:
    known = breaks(acks="a")

    def outcomes() -> Iterator[Trial]:
        yield known((A, B))
        raise error

    left = outcomes()
    made = Made(tmp_path, known)
    made.trials = Trials(lambda _plan: next(left))
    scenario = load(ROOT / "scenarios" / "fix-job.yaml")
    campaign = Campaign(scenario, 3, tmp_path, Budget(9), made.trials.workers, made.told.append)
    drawn = (A, B, C)
    with pytest.raises(error):
        campaign.take(Tried(0, drawn, Trial(("acks",), ("said",), ("a", "b"), 1.0)))
    (found,) = made.told
    assert (names(found.plan), found.small, found.said) == (["a", "b"], False, ("acks broke with ['a', 'b']",))
    assert campaign.found == (found,)
    assert found.file.exists()


def test_findings_of_two_seeds_stand_side_by_side(tmp_path: Path) -> None:
    for seed in (3, 4):
        Made(tmp_path, breaks(acks="a"), seed=seed).take(7, A)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fix-job-found-3-7.yaml", "fix-job-found-4-7.yaml"]


def test_only_the_owner_reads_a_finding(tmp_path: Path) -> None:
    out = tmp_path / "found"
    made = Made(out, breaks(acks="a"))
    made.take(0, A)
    assert (out.stat().st_mode & 0o777, made.told[0].file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_finding_has_a_name_that_a_scenario_may_have(tmp_path: Path) -> None:
    """However long that of its scenario is."""
    made = Made(tmp_path, breaks(acks="a"))
    long = replace(load(ROOT / "scenarios" / "fix-job.yaml"), name="a-" * 29 + "abcdef")
    campaign = Campaign(long, 12345, tmp_path, Budget(1), made.trials.workers, made.told.append)
    campaign.take(Tried(678, (A,), Trial(("acks",), ("said",), ("a",), 1.0)))
    name = made.told[0].file.stem
    assert len(name) <= LONGEST_NAME
    assert name.endswith("-a-found-12345-678")
    laws = [law.id for law in ALL_LAWS]
    assert load_scenario(made.told[0].file, known_laws=laws, root=ROOT).name == name


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    made = Made(tmp_path / "taken" / "found", breaks(acks="a"))
    with pytest.raises(EnvironmentFault, match=r"what was found cannot be written there: .* with --out\."):
        made.take(0, A)
    assert made.told == []
