"""A session's way onto the wire: drafts are checked when handed over, numbered when the window has room."""

from __future__ import annotations

from lab.protocol.chunks import decode_base64
from lab.protocol.contract import Contract
from lab.protocol.frames import Draft, FrameBuilder, IdSource, RefusedDraft, require_known
from lab.protocol.reliability import Delivery, QueueFull, SentFrame
from lab.protocol.session import Session

_TRIAL_MSG_ID = "00000000-0000-0000-0000-000000000000"
"""The msgId of a trial: it has the size of any other and is never sent."""


class Outbox:
    """Takes drafts at any time, with or without a connection; a connection writes what may go.

    `signs_anew` tells the two sides apart: an agent repeats the same bytes (SQ-019), a gateway signs a copy anew
    with the same seq and msgId (SQ-023).
    """

    def __init__(
        self, session: Session, contract: Contract, builder: FrameBuilder, ids: IdSource, signs_anew: bool
    ) -> None:
        self.session = session
        self.builder = builder
        self.ids = ids
        self._contract = contract
        self._signs_anew = signs_anew

    def enqueue(self, draft: Draft, now: float) -> Delivery:
        """Queue a data frame. Raises `RefusedDraft` for one that must not leave: nothing is queued, no seq used.

        The code is schema_violation, frame_too_large (CP-029), a chunk rule's, or rate_limited when the queue is full
        (SQ-018).
        """
        self.check(draft, now)
        try:
            delivery = self.session.outbound.enqueue(draft)
        except QueueFull:
            raise RefusedDraft("rate_limited", "the queue of frames that wait is full") from None
        if draft.type == "content.response" and draft.request_id is not None and draft.chunk is not None:
            self.session.chunks.advance(draft.request_id, draft.chunk)
        return delivery

    def check(self, draft: Draft, now: float) -> None:
        """Raises the `RefusedDraft` that `enqueue` would raise for what the draft is; takes nothing."""
        require_known(self._contract, draft.type)
        seq = self.session.outbound.predicted_seq()
        self.builder.build(draft, _TRIAL_MSG_ID, seq, self.ack, now)
        if draft.type == "content.response" and draft.request_id is not None and draft.chunk is not None:
            # CH-025: no series leaves that the peer would refuse.
            data = decode_base64(draft.payload["data"])
            size = None if data is None else len(data)
            code = self.session.chunks.refusal(draft.request_id, draft.chunk, size, draft.payload["byteLength"])
            if code is not None:
                raise RefusedDraft(code, f"chunk {draft.chunk.index} of {draft.chunk.total} does not fit its series")

    @property
    def ack(self) -> int | None:
        """The piggybacked ack: the highest contiguous seq received, left out before the first (WS-006, decision 27)."""
        return self.session.inbound.last_seq or None

    def write_next(self, now: float) -> str | None:
        """The text of the next frame that may go, None when the window is full or nothing waits."""
        outbound = self.session.outbound
        delivery = outbound.take()
        if delivery is None:
            return None
        msg_id = self.ids()
        raw = self._build(delivery.draft, msg_id, outbound.next_seq, now)
        outbound.sent(delivery, msg_id, raw, now)
        return raw

    def rewrite(self, frame: SentFrame, now: float) -> str:
        """The text of a frame that is sent again."""
        if not self._signs_anew:
            return frame.raw
        return self._build(frame.delivery.draft, frame.msg_id, frame.seq, now)

    def _build(self, draft: Draft, msg_id: str, seq: int, now: float) -> str:
        try:
            return self.builder.build(draft, msg_id, seq, self.ack, now)
        except RefusedDraft:
            # The ack has grown by a digit since the draft was checked; it may be left out (WS-006).
            return self.builder.build(draft, msg_id, seq, None, now)
