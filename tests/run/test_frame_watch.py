"""Waiting for a frame as the journal tells it."""

from __future__ import annotations

import asyncio

from lab.faults.plan import Fault, FrameAnchor
from lab.journal.events import SocketOpened
from lab.run.frame_watch import FrameWatch
from tests.run.made import context, frame


class Watched:
    """A watch, the faults that it has ended, and the journal that it reads."""

    def __init__(self, *sockets: tuple[str, str]) -> None:
        self.ended: list[str] = []
        self.ctx = context()
        for gateway, conn in sockets:
            self.ctx.journal.record(gateway, SocketOpened(conn, "/agent", "la"))
        self.watch = FrameWatch(self.ctx, lambda fault: self.ended.append(fault.id))

    async def frames(self, *gateways: str, type: str = "job.result", sent_by: str = "la") -> list[str]:
        """Frames at these gateways, one after the other; what has ended by then."""
        direction = "la-to-cp" if sent_by == "la" else "cp-to-la"
        for gateway in gateways:
            self.ctx.journal.record(gateway, frame(type=type, conn=f"at-{gateway}", direction=direction))
        await asyncio.sleep(0)
        return self.ended


def until(nth: int, sender: str = "la") -> Fault:
    return Fault("f", "cut", "gateway", until=FrameAnchor("job.result", sender, nth))


async def test_the_frames_of_an_agent_that_moves_are_counted_over_all_gateways() -> None:
    watched = Watched(("a", "at-a"), ("b", "at-b"))
    watched.watch.wait(until(3))
    assert await watched.frames("a", "b") == []
    assert await watched.frames("a") == ["f"]
    assert await watched.frames("a", "b", "a") == ["f"]


async def test_what_a_gateway_sends_is_counted_at_that_one_alone() -> None:
    watched = Watched(("a", "at-a"), ("b", "at-b"))
    watched.watch.wait(until(2, "a"))
    assert await watched.frames("a", "b", "b", sent_by="gateway") == []
    assert await watched.frames("a", sent_by="gateway") == ["f"]


async def test_frames_before_it_waits_and_others_do_not_count() -> None:
    watched = Watched(("a", "at-a"))
    assert await watched.frames("a", "a") == []
    watched.watch.wait(until(1))
    assert await watched.frames("a", type="job.event") == []
    assert await watched.frames("elsewhere") == []
    assert await watched.frames("a") == ["f"]


async def test_a_fault_that_is_over_waits_for_no_frame() -> None:
    watched = Watched(("a", "at-a"))
    watched.watch.wait(until(1))
    watched.watch.forget(until(1))
    assert await watched.frames("a") == []


async def test_a_watch_that_is_closed_sees_nothing() -> None:
    watched = Watched(("a", "at-a"))
    watched.watch.wait(until(1))
    watched.watch.close()
    assert await watched.frames("a") == []
