"""Stream and store tell of the same tool calls, each with one effect and a result that is true."""

from __future__ import annotations

import pytest

from lab.journal.events import FaultFired
from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PartnerTale, answered, running

PUBLIC = "store-call-id-is-public-id"
ONCE = "no-retry-of-tool"
TRUE = "tool-result-is-true"


def asked(ok: bool | None = True, **store: object) -> PartnerTale:
    """A tool call that the stream tells, as the store saw it, and its result."""
    t = running()
    t.tell(ANSWER[:2])
    if store.pop("came", True):
        t.tool(**store)  # type: ignore[arg-type]
    if ok is not None:
        t.event(3, "tool_result", None, name="catalog_get", ok=ok, **({} if ok else {"error": "TOOL_FAILED"}))
    return t


@pytest.mark.req("MCP-021", "SSE-042")
def test_a_call_header_that_no_tool_call_has() -> None:
    t = answered()
    n = t.tool("mine")
    found = t.violation(PUBLIC)
    assert (found.due, found.entries) == ("the id of the tool_call", (n,))


def test_a_stream_that_was_not_seen_whole_tells_nothing() -> None:
    t = running()
    t.tool()
    assert t.status(PUBLIC) is Status.UNKNOWN


@pytest.mark.req("SSE-043")
def test_another_name_at_the_store() -> None:
    assert "tool store_status" in asked(tool="store_status").violation(PUBLIC).seen
    assert asked().status(PUBLIC) is Status.HELD


@pytest.mark.req("SSE-042")
def test_one_id_for_two_tool_calls() -> None:
    t = running()
    _, first, again = t.tell([*ANSWER[:2], ANSWER[1]])
    assert t.violation(PUBLIC).entries == (first, again)


@pytest.mark.req("MCP-021")
@pytest.mark.parametrize("duplicate", [False, True])
def test_a_tool_call_that_came_twice(duplicate: bool) -> None:
    t = running()
    first = t.tool()
    again = t.tool(executed=not duplicate, duplicate=duplicate)
    assert t.violation(ONCE).entries == (first, again)


def test_a_tool_call_that_came_twice_because_of_a_fault() -> None:
    t = running()
    t.tool()
    t.add(FaultFired("f", "repeat", "link"), "faults")
    t.tool(executed=False, duplicate=True)
    assert t.status(ONCE) is Status.UNKNOWN


def test_a_call_that_was_refused_may_come_again() -> None:
    t = running()
    t.tool(executed=False, refused="session", status=404)
    t.tool()
    assert t.status(ONCE) is Status.HELD


@pytest.mark.req("MCP-014", "MSG-046")
@pytest.mark.parametrize(
    "store",
    [
        {"executed": False, "refused": "grant-expired", "status": 403},
        {"is_error": True},
        {"status": 500, "misbehaved": "http-500"},
    ],
    ids=str,
)
def test_a_result_that_is_ok_though_the_store_did_not_do_it(store: dict[str, object]) -> None:
    assert asked(True, **store).violation(TRUE).due == "ok false with TOOL_FAILED"
    assert asked(False, **store).status(TRUE) is Status.HELD


@pytest.mark.req("MSG-046")
def test_a_result_that_is_ok_without_any_call() -> None:
    t = asked(True, came=False)
    t.tool("another")
    assert t.violation(TRUE).due == "ok false with TOOL_FAILED"


def test_a_result_that_failed_though_the_store_did_it() -> None:
    assert asked(False).violation(TRUE).due == "ok true"
    t = asked(False)
    t.add(FaultFired("f", "cut", "link"), "faults")
    assert t.status(TRUE) is Status.UNKNOWN
    assert asked(False, misbehaved="slow").status(TRUE) is Status.UNKNOWN


def test_a_result_that_is_true() -> None:
    assert asked().status(TRUE) is Status.HELD
    assert asked(status=0, misbehaved="torn").status(TRUE) is Status.HELD
    assert asked(None).status(TRUE) is Status.NOTHING
