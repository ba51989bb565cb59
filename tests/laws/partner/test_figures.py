"""Durations add up, costs add up, and neither is told before it is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lab.laws import Status
from tests.laws.partner.journals import COUNTERS, PENDING, TIMINGS, USAGE, PartnerTale, running

TIMES = "timings-reconcile"
COMPLETE = "timings-complete"
PLAUSIBLE = "timings-plausible"
COSTS = "usage-reconcile"
CERTAIN = "usage-when-certain"

ITERATION: Mapping[str, Any] = TIMINGS["iterations"][0]


def polled(status: str = "completed", **facts: Any) -> PartnerTale:
    t = running()
    t.wait(1.0).poll(status, **facts)
    return t


@pytest.mark.req("TM-025", "TM-027", "TM-034", "TM-046", "TM-049")
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"setupMs": 7}, "setupMs 7"),
        ({"setupMs": 6.02}, "setupMs 6.02"),
        ({"totalMs": 56}, "totalMs 56"),
        ({"totalMs": 50.02}, "totalMs 50.02"),
        ({"queuedMs": -2}, "queuedMs -2"),
        ({"lockMs": None}, "lockMs None"),
        ({"agentMs": "1"}, "agentMs '1'"),
        ({"iterations": None}, "no list of iterations"),
        ({"iterations": [{**ITERATION, "firstTokenMs": 32}]}, "firstTokenMs 32 of iteration 0"),
        ({"iterations": [{**ITERATION, "firstTokenMs": -1}]}, "firstTokenMs -1 of iteration 0"),
        ({"iterations": [ITERATION, ITERATION]}, "modelMs 30.5"),
        ({"iterations": [{**ITERATION, "toolMs": 11}]}, "toolMs 10"),
    ],
)
def test_timings_that_do_not_add_up(change: Mapping[str, Any], seen: str) -> None:
    assert polled(timings={**TIMINGS, **change}).violation(TIMES).seen == seen


@pytest.mark.req("TM-045")
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"setupMs": 6.01, "totalMs": 50.01},
        {"totalMs": 50.01},
        {"iterations": [{**ITERATION, "firstTokenMs": None}]},
        {"iterations": []},
        # One part in a million of a long run.
        {"queuedMs": 100002, "totalMs": 100050.1},
    ],
)
def test_timings_that_add_up(change: Mapping[str, Any]) -> None:
    assert polled(timings={**TIMINGS, **change}).status(TIMES) is Status.HELD


@pytest.mark.req("TM-002", "TM-003", "TM-004", "TM-048")
@pytest.mark.parametrize(
    ("status", "complete", "word"),
    [
        ("running", False, Status.HELD),
        ("accepted", True, Status.BROKEN),
        ("running", True, Status.BROKEN),
        *((status, True, Status.HELD) for status in ("completed", "failed", "limited", "cancelled")),
        *((status, False, Status.BROKEN) for status in ("completed", "failed", "limited", "cancelled")),
        ("interrupted", False, Status.HELD),
        ("interrupted", True, Status.BROKEN),
    ],
)
def test_complete_timings(status: str, complete: bool, word: Status) -> None:
    assert polled(status, timings=TIMINGS if complete else PENDING).status(COMPLETE) is word


@pytest.mark.req("TM-005")
def test_timings_null_are_for_a_run_from_before_alone() -> None:
    assert polled(timings=None).violation(COMPLETE).seen == "timings null"
    t = PartnerTale()
    t.poll(timings=None)
    assert t.status(COMPLETE) is Status.UNKNOWN


@pytest.mark.req("TM-001")
def test_a_run_that_took_longer_than_passed() -> None:
    t = running()
    t.wait(1.0).poll(timings={**TIMINGS, "totalMs": 5000})
    assert t.violation(PLAUSIBLE).due == "no more than passed"
    assert polled(timings={**TIMINGS, "totalMs": 900}).status(PLAUSIBLE) is Status.HELD


def test_a_moved_clock_tells_nothing_of_a_queue() -> None:
    t = running()
    t.request("clock")
    t.poll(timings={**TIMINGS, "totalMs": 5000})
    assert t.status(PLAUSIBLE) is Status.NOTHING


# Usage

TWO = [
    {"model": "m", **COUNTERS, "costUsd": "0.030000000000"},
    {"model": "n", **dict.fromkeys(COUNTERS, 0), "costUsd": "0.003000000000"},
]


@pytest.mark.req("US-003", "US-006", "US-012", "US-014", "US-032", "US-034", "US-035")
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"costUsd": "0.03351"}, "costUsd '0.03351'"),
        ({"costUsd": "00.033510000000"}, "costUsd '00.033510000000'"),
        ({"costUsd": 0.03351}, "costUsd 0.03351"),
        ({"costUsd": "-0.033510000000"}, "costUsd '-0.033510000000'"),
        ({"priceSide": "sell"}, "priceSide 'sell'"),
        ({"inputTokens": -1}, "inputTokens -1"),
        ({"outputTokens": 1.5}, "outputTokens 1.5"),
        ({"cacheReadTokens": None}, "cacheReadTokens None"),
        ({"kinds": None}, "no list of kinds"),
        ({"kinds": USAGE["kinds"][:1]}, "kinds of 0.033000000000 in all"),
        ({"kinds": [{"kind": "llm_tokens", "costUsd": "0.033510000001"}]}, "kinds of 0.033510000001 in all"),
        ({"models": TWO[:1]}, "models with 1 entries"),
        ({"models": [TWO[0], {**TWO[1], "inputTokens": 1}]}, "inputTokens 9120"),
        ({"models": [TWO[0], {**TWO[1], "costUsd": "0.003000000001"}]}, "models of 0.033000000001 in all"),
    ],
)
def test_usage_that_does_not_add_up(change: Mapping[str, Any], seen: str) -> None:
    assert polled(usage={**USAGE, **change}).violation(COSTS).seen == seen


@pytest.mark.parametrize("change", [{}, {"models": TWO}, {"costUsd": "0.000000000000", "kinds": []}])
def test_usage_that_adds_up(change: Mapping[str, Any]) -> None:
    assert polled(usage={**USAGE, **change}).status(COSTS) is Status.HELD


@pytest.mark.req("US-015", "US-020")
@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        ("accepted", None, Status.BROKEN),
        ("running", None, Status.BROKEN),
        ("interrupted", None, Status.BROKEN),
        ("cancelled", None, Status.BROKEN),
        ("failed", "CHAT_EXECUTION_FAILED", Status.BROKEN),
        ("failed", "TOOL_REFUSED", Status.NOTHING),
        ("completed", None, Status.NOTHING),
    ],
)
def test_usage_that_nobody_can_know(status: str, reason: str | None, word: Status) -> None:
    assert polled(status, reason=reason, usage=USAGE).status(CERTAIN) is word
    if word is Status.BROKEN:
        assert polled(status, reason=reason, usage=None).status(CERTAIN) is Status.HELD
