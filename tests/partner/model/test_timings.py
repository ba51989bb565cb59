from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import MisuseError
from lab.partner.model.timings import (
    SETUP,
    IterationMeter,
    Stage,
    StageClock,
    pending_snapshot,
    queued_micros,
)
from lab.partner.model.usage import TokenCounts

ADDENDS = ("queuedMs", "setupMs", "lockMs", "modelMs", "toolMs", "historyMs", "otherMs")


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def move(self, micros: int) -> None:
        self.seconds = round(self.seconds * 1_000_000 + micros) / 1_000_000


def exact(value: object) -> Fraction:
    """Milliseconds as they were before they became a float."""
    assert isinstance(value, (int, float))
    return Fraction(round(value * 1000), 1000)


@pytest.mark.req("TM-010")
def test_a_nested_stage_pauses_the_one_around_it() -> None:
    hand = Hand()
    clock = StageClock(hand)
    with clock.stage(Stage.TOOL):
        hand.move(2_000)
        with clock.stage(Stage.WORKER):
            hand.move(19_000)
        hand.move(1_000)
    clock.close()
    snapshot = clock.snapshot(0, [])
    assert (snapshot["toolMs"], snapshot["workerMs"], snapshot["totalMs"]) == (3, 19, 22)


@pytest.mark.req("TM-025", "TM-027")
@given(
    st.integers(0, 10**9),
    st.lists(st.tuples(st.sampled_from(list(Stage)), st.integers(0, 10**7), st.booleans()), max_size=30),
)
def test_the_stages_add_up_to_the_total_exactly(queued: int, spans: list[tuple[Stage, int, bool]]) -> None:
    hand = Hand()
    clock = StageClock(hand)
    passed = 0
    for stage, micros, nested in spans:
        with clock.stage(stage):
            hand.move(micros)
            if nested:
                with clock.stage(Stage.WORKER):
                    hand.move(micros)
                passed += micros
            passed += micros
    clock.close()
    snapshot = clock.snapshot(queued, [])
    assert sum(exact(snapshot[name]) for name in ADDENDS) == exact(snapshot["totalMs"])
    assert exact(snapshot["totalMs"]) == Fraction(queued + passed, 1000)
    assert sum(exact(snapshot[f"{stage}Ms"]) for stage in SETUP) == exact(snapshot["setupMs"])


@pytest.mark.req("TM-012")
def test_what_comes_after_the_close_is_in_no_stage() -> None:
    hand = Hand()
    clock = StageClock(hand)
    hand.move(5_500)
    clock.close()
    hand.move(90_000)
    clock.close()
    assert clock.snapshot(0, [])["totalMs"] == 5.5


def test_a_snapshot_of_a_running_clock_is_a_defect() -> None:
    with pytest.raises(MisuseError):
        StageClock(Hand()).snapshot(0, [])


@pytest.mark.req("TM-008")
@pytest.mark.parametrize(("accepted", "claimed", "due"), [(1000, 1300, 300_000), (1000, 1000, 0), (5000, 1000, 0)])
def test_the_queue_is_wall_time_and_never_below_zero(accepted: int, claimed: int, due: int) -> None:
    assert queued_micros(accepted, claimed) == due


@pytest.mark.req("TM-013")
def test_a_direct_turn_has_no_queue() -> None:
    """What came before the claim is no time of it, and it was accepted when it was claimed."""
    hand = Hand()
    hand.move(70_000)
    clock = StageClock(hand)
    with clock.stage(Stage.MODEL):
        hand.move(20_000)
    clock.close()
    snapshot = clock.snapshot(queued_micros(5000, 5000), [])
    assert (snapshot["queuedMs"], snapshot["totalMs"]) == (0, 20)


@pytest.mark.req("TM-047", "TM-002", "TM-006")
def test_a_pending_snapshot_has_zeros_and_is_not_complete() -> None:
    snapshot = pending_snapshot()
    assert snapshot.pop("complete") is False
    assert snapshot.pop("iterations") == []
    assert set(snapshot) == {f"{name}Ms" for name in (*Stage, "queued", "setup", "total")}
    assert set(snapshot.values()) == {0}


@pytest.mark.req("TM-032", "TM-033", "TM-034")
def test_an_iteration_counts_delivery_in_its_wall_and_not_in_its_model_time() -> None:
    hand = Hand()
    clock = StageClock(hand)
    hand.move(1_000)
    meter = IterationMeter(clock)
    with clock.stage(Stage.MODEL):
        hand.move(20_000)
    meter.delta()
    hand.move(7_000)
    meter.delta()
    meter.answered()
    with clock.stage(Stage.TOOL):
        hand.move(50_000)
    meter.iteration.tools.append(50_000)
    meter.iteration.usage = TokenCounts(3, 4, cache_write_1h=5)
    meter.close()
    with clock.stage(Stage.TOOL):
        hand.move(90_000)
    meter.settle()
    assert meter.iteration.to_json() == {
        "wallMs": 27,
        "modelMs": 20,
        "firstTokenMs": 20,
        "toolMs": 50,
        "tools": [{"durationMs": 50}],
        "usage": {"inputTokens": 3, "outputTokens": 4, "cacheWrite1hTokens": 5},
    }


@pytest.mark.req("TM-031", "TM-040")
def test_an_iteration_without_a_delta_or_counters_says_so() -> None:
    meter = IterationMeter(StageClock(Hand()))
    body = meter.iteration.to_json()
    assert body["firstTokenMs"] is None
    assert "usage" not in body
