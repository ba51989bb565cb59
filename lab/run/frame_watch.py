"""Waiting for a frame as the journal tells it, to do something behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from lab.context import RunContext
from lab.faults.anchors import AnchorWatch
from lab.faults.plan import Fault
from lab.gateway.frame_faults import FrameFaults
from lab.journal.events import Frame, SocketOpened
from lab.journal.writer import Entry


class FrameWatch:
    """Calls `ended` with a fault once the frame of its `until` was seen. Call `close` once.

    The frames of a sender are counted over all gateways, since a local agent may move from one to another.
    """

    def __init__(self, ctx: RunContext, ended: Callable[[Fault], None]) -> None:
        self._ended = ended
        self._agents: dict[str, str] = {}
        self._watch = AnchorWatch()
        self._at_gateways: dict[str, FrameFaults] = {}
        """What was seen at each; an ack is told by what it acks, and each gateway has its own."""
        self._waiting: dict[str, Fault] = {}
        for entry in ctx.journal.entries:
            self._take(entry)
        self.close = ctx.journal.listen(self._take)

    def wait(self, fault: Fault) -> None:
        """Count the frames that fit from now on."""
        self._waiting[fault.id] = fault
        self._watch.arm(replace(fault, anchor=fault.until))

    def forget(self, fault: Fault) -> None:
        """The fault is over already."""
        self._waiting.pop(fault.id, None)
        self._watch.disarm(fault.id)

    def _take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, SocketOpened):
            self._agents[event.conn] = event.agent
        elif isinstance(event, Frame) and event.type is not None and not event.by_lab:
            sender = self._agents.get(event.conn, "") if event.direction == "la-to-cp" else entry.by
            seen = self._at_gateways.setdefault(entry.by, FrameFaults()).seen(event, sender)
            for fired in self._watch.see(seen):
                fault = self._waiting.pop(fired.id, None)
                if fault is not None:
                    # Not from within the record of this frame: what comes of it is recorded behind it.
                    asyncio.get_running_loop().call_soon(self._ended, fault)
