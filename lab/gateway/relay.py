"""The content relay: requests in flight, their time limits, and chunks put together for the caller.

Bytes are held until the caller has them and nowhere else (SEC-001, CP-014).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from lab.protocol.frames import Frame
from lab.protocol.reliability import Delivery

WAITING_SECONDS = 10.0
"""From the caller's wish to the write of content.request: beyond it the window was full, or nobody was there."""

FIRST_CHUNK_SECONDS = 10.0
"""From the write of content.request to the first chunk (WS-055, CH-037)."""

WHOLE_ANSWER_SECONDS = 30.0
"""From the same instant to the last chunk."""

MOST_WAITING = 16
"""Chunks that wait for a caller who reads them one by one; further behind it loses its request (CH-026)."""


@dataclass(frozen=True)
class Answer:
    """What a caller gets. `status` ok, error, not_found or forbidden; `code` a wire code when it failed.

    `body` is empty for a caller that read it chunk by chunk.
    """

    request_id: str
    status: str
    body: bytes = b""
    code: str | None = None


@dataclass
class _Pending:
    agent_id: str
    delivery: Delivery
    deadline: float
    last_deadline: float | None = None
    """None until its content.request was written."""
    parts: deque[bytes] = field(default_factory=deque)
    """What has come, and was not taken yet."""
    in_chunks: bool = False
    """Whether the caller takes chunk by chunk; otherwise it gets all at once."""
    received: int = 0
    """Bytes that have come."""
    whole: bool = False
    """Whether the last chunk is here; what was not taken by the last limit is not kept for ever."""


class ContentRelay:
    """Requests of one gateway, by requestId."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def asked(self, request_id: str, agent_id: str, delivery: Delivery, now: float, in_chunks: bool = False) -> None:
        """A content.request was handed over for sending; call `note_written` after each chance to write it."""
        self._pending[request_id] = _Pending(agent_id, delivery, now + WAITING_SECONDS, in_chunks=in_chunks)
        self.note_written(now)

    def note_written(self, now: float) -> None:
        """Start the time limits of requests that have been written since (CH-037)."""
        for pending in self._pending.values():
            if pending.last_deadline is None and pending.delivery.state != "waiting":
                pending.deadline = now + FIRST_CHUNK_SECONDS
                pending.last_deadline = now + WHOLE_ANSWER_SECONDS

    def take(self, frame: Frame, data: bytes | None, agent_id: str) -> Answer | None:
        """A chunk that passed the rules; one of a request given up, or never made, is dropped (CH-028, CH-029)."""
        request_id = frame.request_id or ""
        pending = self._pending.get(request_id)
        # A request is answered by the agent it went to, and by no other.
        if pending is None or frame.chunk is None or pending.agent_id != agent_id:
            return None
        status = frame.payload["status"]
        if status != "ok":
            return self._over(Answer(request_id, status, code=frame.payload.get("errorCode")))
        if pending.in_chunks and len(pending.parts) >= MOST_WAITING:
            # CH-026: who is further behind loses the request; its later chunks are acked and dropped (CH-028).
            return self._over(Answer(request_id, "error", code="rate_limited"))
        pending.parts.append(data or b"")
        pending.received += len(data or b"")
        pending.deadline = pending.last_deadline or pending.deadline
        if not frame.chunk.last:
            return None
        # CH-030: the total is compared at the end only.
        if frame.payload.get("totalBytes", pending.received) != pending.received:
            return self._over(Answer(request_id, "error", code="chunk_inconsistent"))
        if pending.in_chunks:
            pending.whole = True
            return None
        return self._over(Answer(request_id, "ok", b"".join(pending.parts)))

    def read(self, request_id: str) -> tuple[bytes | None, Answer | None]:
        """The next chunk that waits, None when there is none; and with the last one the answer that ends it."""
        pending = self._pending.get(request_id)
        if pending is None or not pending.parts:
            return None, None
        chunk = pending.parts.popleft()
        over = pending.whole and not pending.parts
        return chunk, self._over(Answer(request_id, "ok")) if over else None

    def fail(self, request_id: str, code: str) -> Answer | None:
        """A request that can get no answer any more; None when it is over already."""
        return self._over(Answer(request_id, "error", code=code)) if request_id in self._pending else None

    def fail_all(self, agent_id: str, code: str) -> list[Answer]:
        """Every request to an agent, when its session was lost (RS-007)."""
        lost = [
            request_id
            for request_id, pending in self._pending.items()
            if pending.agent_id == agent_id and not pending.whole
        ]
        return [self._over(Answer(request_id, "error", code=code)) for request_id in lost]

    def next_timeout(self) -> float | None:
        """Lab time of the next limit."""
        return min((pending.deadline for pending in self._pending.values()), default=None)

    def handle_timeout(self, now: float) -> list[Answer]:
        """Requests beyond a limit fail with timeout (WS-055)."""
        late = [request_id for request_id, pending in self._pending.items() if pending.deadline <= now]
        return [self._over(Answer(request_id, "error", code="timeout")) for request_id in late]

    def _over(self, answer: Answer) -> Answer:
        del self._pending[answer.request_id]
        return answer
