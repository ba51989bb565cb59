"""What steps wait for, entry by entry."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from lab.context import RunContext
from lab.journal.events import FaultEnded, FaultFired, SessionChanged, SocketOpened, SocketRefused
from lab.run.conditions import Conditions, until
from tests.run.made import context, frame

ENTRIES = 10_000


def changed(state: str, agent: str = "one", **detail: Any) -> SessionChanged:
    return SessionChanged("c1", state, agent, None, detail)


@pytest.fixture
def ctx() -> RunContext:
    return context()


@pytest.fixture
def conditions(ctx: RunContext) -> Conditions:
    return Conditions(ctx, {"one": "gateway", "two": "gateway", "far": "other"})


def test_a_fault_has_fired_once_its_entry_is_there(ctx: RunContext, conditions: Conditions) -> None:
    """Not another's, and not before."""
    ctx.journal.record("faults", FaultFired("a", "cut", "link gateway"))
    assert (conditions.has_fired("a"), conditions.has_fired("b")) == (True, False)


def test_what_was_there_before_counts(ctx: RunContext) -> None:
    """A journal is read from its first entry."""
    ctx.journal.record("faults", FaultFired("a", "cut", "link gateway"))
    assert Conditions(ctx, {}).has_fired("a")


@pytest.mark.parametrize("state", ["ready", "resumed", "ended"])
def test_an_agent_has_returned_in_any_session_since_the_mark(
    ctx: RunContext, conditions: Conditions, state: str
) -> None:
    ctx.journal.record("gateway", changed("resumed", "one"))
    conditions.mark()
    assert not conditions.has_returned("one")
    ctx.journal.record("gateway", changed(state, "one"))
    assert conditions.has_returned("one") is (state != "ended")


@pytest.mark.parametrize("fate", ["copied", "released", "passed"])
def test_what_the_lab_wrote_again_is_no_repetition(ctx: RunContext, conditions: Conditions, fate: str) -> None:
    first = frame(type="job.result", msg_id="m", payload={"jobId": "j"})
    ctx.journal.record("gateway", first)
    ctx.journal.record("gateway", replace(first, fate=fate, fault=None if fate == "passed" else "f"))
    assert conditions.is_repeated("j") is (fate == "passed")


@pytest.mark.parametrize(("status", "fate"), [("rejected", "passed"), ("rejected", "dropped"), ("accepted", "passed")])
def test_a_job_is_rejected_whether_its_gateway_hears_it_or_not(
    ctx: RunContext, conditions: Conditions, status: str, fate: str
) -> None:
    ctx.journal.record("gw", frame(type="job.assign", direction="cp-to-la", msg_id="m", payload={"jobId": "j"}))
    ack = frame(type="ack", payload={"status": status, "ackMsgId": "m"}, fate=fate)
    ctx.journal.record("gw", replace(ack, payload={"status": "rejected", "ackMsgId": "another"}))
    assert not conditions.is_rejected("j")
    ctx.journal.record("gw", ack)
    assert conditions.is_rejected("j") is (status == "rejected")


def test_after_its_end_it_looks_no_more(ctx: RunContext, conditions: Conditions) -> None:
    """Nothing of a run is left listening."""
    conditions.close()
    ctx.journal.record("faults", FaultFired("a", "cut", "link gateway"))
    assert not conditions.has_fired("a")


def test_a_resume_counts_from_the_mark(ctx: RunContext, conditions: Conditions) -> None:
    """A fault step makes older resumes stale, for every agent."""
    ctx.journal.record("gateway", changed("resumed"))
    assert conditions.has_resumed("one")
    assert not conditions.has_resumed("two")
    conditions.mark()
    assert not conditions.has_resumed("one")
    ctx.journal.record("gateway", changed("resumed", "two"))
    assert not conditions.has_resumed("one")
    ctx.journal.record("gateway", changed("resumed"))
    assert conditions.has_resumed("one")


def test_states_are_those_of_the_agent(ctx: RunContext, conditions: Conditions) -> None:
    """In order; one that was never ready has not come up."""
    ctx.journal.record("gateway", changed("ended", code=4401, by="remote"))
    assert not conditions.came_up("one")
    ctx.journal.record("gateway", changed("ready"))
    assert conditions.states("one") == ["ended", "ready"]
    ctx.journal.record("gateway", changed("resumed", capabilities=("job.chat",)))
    assert (conditions.capabilities("one"), conditions.capabilities("two")) == (("job.chat",), ())
    assert (conditions.came_up("one"), conditions.came_up("two")) == (True, False)


def test_v1_is_spoken_as_long_as_the_connection_lasts(ctx: RunContext, conditions: Conditions) -> None:
    """Of its own agent only."""
    assert not conditions.speaks_v1("one")
    ctx.journal.record("gateway", changed("v1"))
    assert (conditions.speaks_v1("one"), conditions.speaks_v1("two")) == (True, False)
    ctx.journal.record("gateway", changed("ended"))
    assert not conditions.speaks_v1("one")


@pytest.mark.parametrize(
    ("detail", "refused"),
    [
        ({"code": 4406, "by": "local"}, True),
        ({"code": 4406, "by": "remote"}, False),
        ({"code": None, "by": "local"}, False),
        ({}, False),
    ],
)
def test_a_session_that_the_gateway_ended_with_a_code_was_refused(
    ctx: RunContext, conditions: Conditions, detail: dict[str, Any], refused: bool
) -> None:
    """Its own agent only."""
    ctx.journal.record("gateway", changed("ended", **detail))
    assert (conditions.was_refused("one"), conditions.was_refused("two")) == (refused, False)


def test_a_refused_socket_is_not_the_agents_that_was_let_in(ctx: RunContext, conditions: Conditions) -> None:
    """Nor that of an agent of another gateway."""
    ctx.journal.record("gateway", SocketRefused(401, "an unknown credential"))
    ctx.journal.record("gateway", SocketRefused(401, "an unknown credential"))
    ctx.journal.record("gateway", SocketOpened("c1", "/agent", "one"))
    assert [conditions.was_refused(name) for name in ("one", "two", "far")] == [False, True, False]
    assert [conditions.refusals(name) for name in ("one", "two", "far")] == [0, 2, 0]
    assert (conditions.has_connected("one"), conditions.has_connected("two")) == (True, False)


def test_a_frame_of_a_job_that_comes_again_is_a_repetition(ctx: RunContext, conditions: Conditions) -> None:
    """The same msgId, from the agent, of that job."""

    def sent(msg_id: str | None, job_id: object, direction: str = "la-to-cp") -> None:
        ctx.journal.record("gateway", frame(direction=direction, msg_id=msg_id, payload={"jobId": job_id}))

    for _ in range(2):
        sent("g", "j", "cp-to-la")
        sent(None, "j")
        sent("m", 5)
    sent("a", "j")
    sent("b", "j")
    sent("a", "other")
    assert not conditions.is_repeated("j")
    sent("b", "j")
    assert (conditions.is_repeated("j"), conditions.is_repeated("other")) == (True, False)


async def test_until_looks_again_after_every_entry() -> None:
    """And leaves no listener behind, also when it is cancelled."""
    ctx = context()
    looked: list[int] = []

    def condition() -> bool:
        looked.append(len(ctx.journal.entries))
        return len(ctx.journal.entries) == 2

    waiting = asyncio.create_task(until(ctx, condition))
    forgotten = asyncio.create_task(until(ctx, lambda: False))
    await asyncio.sleep(0)
    for fault in ("a", "b"):
        ctx.journal.record("faults", FaultEnded(fault))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.wait_for(waiting, 5)
    forgotten.cancel()
    await asyncio.gather(forgotten, return_exceptions=True)
    assert looked == [0, 1, 2]
    seen = len(looked)
    ctx.journal.record("faults", FaultEnded("c"))
    await asyncio.sleep(0)
    assert len(looked) == seen


def test_a_long_run_costs_no_more_by_the_entry(ctx: RunContext, conditions: Conditions) -> None:
    """Each entry is read once, however often somebody asks."""

    class Counted(list):  # type: ignore[type-arg]
        reads = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            Counted.reads += 1
            return super().__iter__()

        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            Counted.reads += 1
            return super().__getitem__(index)

    ctx.journal.entries = Counted()
    for number in range(ENTRIES):
        ctx.journal.record("gateway", frame(msg_id=str(number), payload={"jobId": "j"}))
        assert not conditions.is_repeated("j")
        assert not conditions.has_fired("a")
        assert not conditions.has_resumed("one")
        assert not conditions.was_refused("one")
    assert Counted.reads == 0
