"""Numbering, acks, retransmission and duplicates: what makes a frame arrive once.

Outbound keeps a record per sent frame until its peer has it, and a bounded queue of drafts that wait for a place
in the window. A draft gets its seq when it enters the window, so that a lost session can renumber what waits.
Inbound keeps what was received. Both live in the session and outlive a connection.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from lab.protocol.frames import Draft

REFUSALS_REMEMBERED = 64
"""Refused data frames whose return after a resume is recognised (decision 16)."""


class Verdict(Enum):
    """What Inbound says of a data frame's seq and msgId."""

    FRESH = auto()
    DUPLICATE = auto()
    GAP = auto()
    REPLAYED = auto()


@dataclass(eq=False)
class Delivery:
    """The fate of one data frame. `code` tells why it was rejected or given up."""

    draft: Draft
    state: Literal["waiting", "sent", "delivered", "rejected", "failed"] = "waiting"
    code: str | None = None
    seq: int | None = None

    @property
    def over(self) -> bool:
        """Whether no news of it can come any more."""
        return self.state in ("delivered", "rejected", "failed")


@dataclass(eq=False)
class SentFrame:
    """A data frame in the window. `raw` is the text sent last; an agent repeats it, a gateway signs anew."""

    seq: int
    msg_id: str
    delivery: Delivery
    raw: str
    sent_at: float
    retransmissions: int = 0


class QueueFull(Exception):
    """The queue of drafts is full (SQ-018); nothing that waits was dropped."""


@dataclass(frozen=True)
class Lapse:
    """Frames whose ack is overdue. `exhausted` had its last retransmission: the connection must end (SQ-020)."""

    again: tuple[SentFrame, ...]
    exhausted: tuple[SentFrame, ...]


class Outbound:
    """One direction's sender."""

    def __init__(self, window: int, queue_limit: int, max_retransmissions: int) -> None:
        self.window = window
        self._queue_limit = queue_limit
        self._max_retransmissions = max_retransmissions
        self._queue: deque[Delivery] = deque()
        self._unacked: OrderedDict[int, SentFrame] = OrderedDict()
        self._acked = 0
        self.next_seq = 1

    def enqueue(self, draft: Draft) -> Delivery:
        """Take a draft; raises `QueueFull` beyond the limit (SQ-017, SQ-018)."""
        if len(self._queue) >= self._queue_limit:
            raise QueueFull
        delivery = Delivery(draft)
        self._queue.append(delivery)
        return delivery

    @property
    def highest_sent(self) -> int:
        """The last seq used, 0 before the first."""
        return self.next_seq - 1

    @property
    def highest_acked(self) -> int:
        """The highest seq that the peer has said to have, in whatever form."""
        return self._acked

    @property
    def queued(self) -> int:
        """Drafts that wait for the window."""
        return len(self._queue)

    @property
    def has_room(self) -> bool:
        """Whether a draft enqueued now would enter the window at once."""
        return not self._queue and len(self._unacked) < self.window

    def unacked(self) -> tuple[SentFrame, ...]:
        """Frames in the window, in seq order."""
        return tuple(self._unacked.values())

    def predicted_seq(self) -> int:
        """The seq that a draft enqueued now will get, unless the session is lost first."""
        return self.next_seq + len(self._queue)

    def take(self) -> Delivery | None:
        """The next draft that may enter the window; `sent` must follow for it."""
        if not self._queue or len(self._unacked) >= self.window:
            return None
        return self._queue.popleft()

    def sent(self, delivery: Delivery, msg_id: str, raw: str, now: float) -> SentFrame:
        """A draft was written as the next seq."""
        frame = SentFrame(self.next_seq, msg_id, delivery, raw, now)
        delivery.state, delivery.seq = "sent", frame.seq
        self._unacked[frame.seq] = frame
        self.next_seq += 1
        return frame

    def acked_up_to(self, ack: int) -> list[Delivery]:
        """A cumulative ack settles all up to it; one above what was sent is ignored (SQ-014, SQ-016)."""
        if ack > self.highest_sent:
            return []
        self._acked = max(self._acked, ack)
        return [self._settle(seq, "delivered", None) for seq in list(self._unacked) if seq <= ack]

    def acked_one(self, seq: int, msg_id: str, rejected: str | None) -> Delivery | None:
        """An ack frame settles the one frame that it names, by seq and msgId."""
        frame = self._unacked.get(seq)
        if frame is None or frame.msg_id != msg_id:
            return None
        return self._settle(seq, "rejected" if rejected else "delivered", rejected)

    def settle_request(self, request_id: str) -> Delivery | None:
        """The first content.response acks its content.request, in whatever state that is (SQ-026)."""
        for seq, frame in self._unacked.items():
            draft = frame.delivery.draft
            if draft.type == "content.request" and draft.request_id == request_id:
                return self._settle(seq, "delivered", None)
        return None

    def _settle(self, seq: int, state: Literal["delivered", "rejected"], code: str | None) -> Delivery:
        self._acked = max(self._acked, seq)
        delivery = self._unacked.pop(seq).delivery
        delivery.state, delivery.code = state, code
        return delivery

    def deadline(self, ack_timeout: float) -> float | None:
        """When the earliest unacked frame is due again."""
        return min((frame.sent_at + ack_timeout for frame in self._unacked.values()), default=None)

    def lapse(self, now: float, ack_timeout: float) -> Lapse:
        """The frames whose ack did not come in time (SQ-019, SQ-021: a fixed interval)."""
        late = [frame for frame in self._unacked.values() if frame.sent_at + ack_timeout <= now]
        spent = tuple(frame for frame in late if frame.retransmissions >= self._max_retransmissions)
        return Lapse(tuple(frame for frame in late if frame not in spent), spent)

    def resent(self, frame: SentFrame, raw: str, now: float) -> None:
        """A frame was written again."""
        frame.raw, frame.sent_at = raw, now
        frame.retransmissions += 1

    def resume(self, peer_last_seq: int, now: float) -> tuple[list[Delivery], tuple[SentFrame, ...]]:
        """After resumed:true: what the peer already had, and what must be sent again in seq order (RS-002, RS-003).

        A new connection has its full number of retransmissions.
        """
        had = self.acked_up_to(peer_last_seq)
        for frame in self._unacked.values():
            frame.retransmissions, frame.sent_at = 0, now
        return had, self.unacked()

    def reset(self, code: str, keep: Iterable[Delivery] = ()) -> list[Delivery]:
        """After resumed:false numbers start at 1; what was numbered fails with `code`, of the queue `keep` stays."""
        failed = [frame.delivery for frame in self._unacked.values()]
        kept = list(keep)
        failed += [delivery for delivery in self._queue if delivery not in kept]
        for delivery in failed:
            delivery.state, delivery.code = "failed", code
        self._unacked.clear()
        self._queue = deque(kept)
        self._acked, self.next_seq = 0, 1
        return failed

    def waiting(self) -> tuple[Delivery, ...]:
        """Drafts that have no number yet."""
        return tuple(self._queue)


@dataclass
class Inbound:
    """One direction's receiver: the last contiguous seq and the kept pairs of seq and msgId (SQ-005)."""

    dedupe_entries: int
    last_seq: int = 0
    _pairs: OrderedDict[int, str] = field(default_factory=OrderedDict)
    _refused: OrderedDict[tuple[int, str], str] = field(default_factory=OrderedDict)

    def judge(self, seq: int, msg_id: str) -> Verdict:
        """What a data frame with these is; nothing is taken as received by asking."""
        if seq == self.last_seq + 1:
            return Verdict.FRESH
        if seq > self.last_seq:
            # SQ-004: a skipped number.
            return Verdict.GAP
        # SQ-002, SQ-003, SQ-006: the same pair is a duplicate, all else is a replay.
        return Verdict.DUPLICATE if self._pairs.get(seq) == msg_id else Verdict.REPLAYED

    def received(self, seq: int, msg_id: str) -> None:
        """The next frame is in; the oldest pair beyond the limit is forgotten (SQ-006)."""
        self.last_seq = seq
        self._refused.pop((seq, msg_id), None)
        self._pairs[seq] = msg_id
        if len(self._pairs) > self.dedupe_entries:
            self._pairs.popitem(last=False)

    def refuse(self, seq: int, msg_id: str, code: str) -> None:
        """A data frame was refused with a fatal code; it does not count as received (SQ-033), but may come again."""
        self._refused[(seq, msg_id)] = code
        if len(self._refused) > REFUSALS_REMEMBERED:
            self._refused.popitem(last=False)

    def refused_code(self, seq: int, msg_id: str) -> str | None:
        """The code that this frame was refused with on an earlier connection, None when it was not."""
        return self._refused.get((seq, msg_id))

    def consume_refused(self, seq: int, msg_id: str) -> None:
        """A refused frame came again: its seq is used up, and its code stays known for a further copy (decision 16)."""
        if seq == self.last_seq + 1:
            code = self._refused[(seq, msg_id)]
            self.received(seq, msg_id)
            self._refused[(seq, msg_id)] = code

    def reset(self) -> None:
        """After resumed:false nothing has been received."""
        self.last_seq = 0
        self._pairs.clear()
        self._refused.clear()
