"""What a turn counts, calls, begins with, and becomes after a crash."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import TIMINGS, USAGE, answered, ready, running


@pytest.mark.req("US-008", "US-009")
def test_counters_below_those_of_the_iterations() -> None:
    t = running()
    usage = {"inputTokens": 1, "outputTokens": 1, "cacheWriteTokens": 7, "cacheWrite1hTokens": 5}
    timings = {**TIMINGS, "iterations": [{**TIMINGS["iterations"][0], "usage": usage}]}
    t.poll(timings=timings, usage={**USAGE, "cacheWriteTokens": 7})
    assert t.violation("usage-covers-iterations").due == "12 or more"


@pytest.mark.req("TM-018", "TM-049")
def test_tool_time_beyond_that_of_the_tools() -> None:
    t = answered()
    assert t.status("tool-time-is-of-tools") is Status.HELD
    t.poll(timings={**TIMINGS, "toolMs": 25})
    assert t.status("tool-time-is-of-tools") is Status.BROKEN


@pytest.mark.req("MSG-046", "MCP-023")
def test_a_tool_that_was_not_listed() -> None:
    t = running()
    t.turn("discovery", facts={"tools": ["catalog_get"]})
    t.tool()
    assert t.status("only-listed-tools") is Status.HELD
    t.tool("call_2", tool="orders_get")
    assert t.status("only-listed-tools") is Status.BROKEN
    t = running()
    t.turn("discovery", facts={"tools": []})
    t.event(1, "done", None, stopReason="completed")
    assert t.status("only-listed-tools") is Status.BROKEN


@pytest.mark.req("MSG-023")
def test_a_first_answer_that_says_running() -> None:
    t = ready()
    t.message(answer={"status": "running"})
    assert t.status("first-answer-is-accepted") is Status.BROKEN


@pytest.mark.req("MSG-011")
def test_a_run_that_is_claimed_twice() -> None:
    t = running()
    t.turn("claimed")
    assert t.status("crashed-run-is-interrupted") is Status.BROKEN


@pytest.mark.req("CX-026")
def test_a_store_call_after_its_grant_has_expired() -> None:
    t = running()
    t.tool()
    assert t.status("no-call-after-expiry") is Status.HELD
    t.wait(400).tool("call_2", executed=False, refused="grant-expired")
    assert t.status("no-call-after-expiry") is Status.BROKEN
