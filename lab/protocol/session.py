"""What outlives a connection: both directions' numbering, and which session it is."""

from __future__ import annotations

from dataclasses import dataclass

from lab.protocol.chunks import ChunkTracker
from lab.protocol.contract import Limits
from lab.protocol.frames import Draft
from lab.protocol.reliability import Delivery, Inbound, Outbound

RENEWED_TYPES = frozenset({"job.result", "audit.event", "incident.candidate"})
"""Types whose caller says them again, as new frames, after their session was lost (decision 23)."""


@dataclass(frozen=True)
class SenderLimits:
    """How far one side runs ahead: data frames without an ack, and drafts that wait behind them."""

    window: int
    queue: int


FATAL_ENDS_BEFORE_FRESH_START = 5
"""Fatal ends without progress after which neither side resumes a session (decision 16)."""

AGENT_SENDER = SenderLimits(window=8, queue=256)
"""SQ-017."""

GATEWAY_SENDER = SenderLimits(window=16, queue=256)
"""CP-033."""


class Session:
    """One session of one agent, as one side keeps it. `session_id` is None until ready has named it."""

    def __init__(self, limits: Limits, sender: SenderLimits, dedupe_entries: int | None = None) -> None:
        self.session_id: str | None = None
        self.outbound = Outbound(sender.window, sender.queue, limits.max_retransmissions)
        self.inbound = Inbound(dedupe_entries or limits.dedupe_entries)
        self.chunks = ChunkTracker(limits.max_chunks, limits.chunk_raw_bytes)
        self.owner: object | None = None
        """The connection that is READY on it."""
        self.dropped_at: float | None = None
        """Lab time at which its last READY connection went, None while it has one."""
        self.fatal_ends = 0
        """Fatal ends of connections since anything got through (decision 16)."""

    def lost(self) -> list[Delivery]:
        """The peer has it no longer: numbers start at 1. What is returned fails with agent_offline (RS-005, RS-006).

        Drafts without a number stay, except chunks: no series continues across a lost session (decision 23, RS-014).
        """
        keep = [delivery for delivery in self.outbound.waiting() if not _is_chunk(delivery.draft)]
        failed = self.outbound.reset("agent_offline", keep)
        self.inbound.reset()
        self.chunks.reset()
        self.session_id = None
        self.fatal_ends = 0
        return failed


def _is_chunk(draft: Draft) -> bool:
    return draft.chunk is not None
