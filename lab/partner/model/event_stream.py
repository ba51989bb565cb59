"""A run's events as server-sent events: replay, follow, and stop at once when authority is lost (SSE-*)."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from aiohttp import HttpVersion11, web

from lab.journal.partner_events import PartnerDelivery
from lab.partner.model.answers import ApiRequest
from lab.partner.model.authority import Caller
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import invalid
from lab.partner.model.runs import Run, events_after, find_run, last_sequence, run_in
from lab.partner.model.shape import actor_query_untrusted
from lab.partner.model.sse import KEEP_ALIVE, LARGEST_SEQUENCE, continue_after, encode
from lab.partner.model.words import LAST_EVENT_ID

# SSE-038
HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class Opening:
    """A stream that may be opened: of this run, behind sequence `after`."""

    caller: Caller
    run: Run
    after: int
    last_event_id: str | None


def open_stream(parts: Parts, caller: Caller, request: ApiRequest) -> Opening:
    """Check a request for a stream, key and scope being checked already; a refusal is plain JSON (SSE-054)."""
    given = request.header(LAST_EVENT_ID)
    if len(given) > 1:
        raise invalid(LAST_EVENT_ID)
    header = given[0] if given else None
    run_id = request.path["runId"]
    # SSE-031, SSE-032: its form comes first, as of every field
    after = continue_after(header, run_id, LARGEST_SEQUENCE)
    if after is None:
        raise invalid(LAST_EVENT_ID)
    actor_query_untrusted(request)
    _, conversation = parts.own_conversation(caller, request)
    run = run_in(parts.state, conversation.conversation_id, run_id)
    if after > last_sequence(parts.state, run_id):
        # SSE-033
        raise invalid(LAST_EVENT_ID)
    return Opening(caller, run, after, header)


class EventStreams:
    """The open streams of one life of the model. Call `abort` when it dies."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._count = 0
        self._open: dict[int, web.Request] = {}

    async def serve(self, request: web.Request, opening: Opening) -> web.StreamResponse:
        """Deliver the stream until the run has ended, authority is lost, or the reader goes away (SSE-035)."""
        self._count += 1
        delivery = _Delivery(self._parts, opening)
        response = web.StreamResponse(headers=HEADERS)
        if request.version >= HttpVersion11:
            # Chunks are what tells a cut from an end.
            response.enable_chunked_encoding()
        number, change = self._count, "broken"
        self._open[number] = request
        silence = self._parts.bell.listen(delivery.more.set)
        self._tell(number, opening, "opened", 0)
        try:
            await response.prepare(request)
            outcome = await delivery.run(response)
            await response.write_eof()
            change = outcome
        except ConnectionError:
            pass  # the reader went away; the turn goes on (MSG-009)
        finally:
            silence()
            self._open.pop(number, None)
            self._tell(number, opening, change, delivery.sent)
        return response

    def abort(self) -> None:
        """Tear every open stream."""
        for request in tuple(self._open.values()):
            if request.transport is not None:
                request.transport.abort()

    def _tell(self, number: int, opening: Opening, change: str, sent: int) -> None:
        event = PartnerDelivery(number, opening.run.run_id, change, opening.last_event_id, sent)
        self._parts.ctx.journal.record(self._parts.name, event)


class _Delivery:
    """Writes to one reader what it is due; `more` wakes it, `sent` counts the events written."""

    def __init__(self, parts: Parts, opening: Opening) -> None:
        self.more = asyncio.Event()
        self.sent = 0
        self._parts = parts
        self._opening = opening
        self._run_id = opening.run.run_id
        self._after = opening.after

    async def run(self, response: web.StreamResponse) -> str:
        """Write to the end: "ended", or "withheld" when authority was lost."""
        while True:
            self.more.clear()
            # The status first: events that come behind it are looked for again.
            run = find_run(self._parts.state, self._run_id)
            events = events_after(self._parts.state, self._run_id, self._after, BATCH)
            for event in events:
                # SSE-026, SSE-037: authority is looked at for each event
                if not self._allowed():
                    return "withheld"
                await response.write(encode(self._run_id, event.sequence, event.kind, event.data))
                self._after = event.sequence
                self.sent += 1
            if events:
                continue
            if run is None or not self._allowed():
                return "withheld"
            if run.over:
                return "ended"
            keep_alive, lapse = self._parts.settings.keep_alive_seconds, self._lapse_in()
            try:
                async with asyncio.timeout(min(keep_alive, lapse)):
                    await self.more.wait()
            except TimeoutError:
                if keep_alive <= lapse and self._allowed():
                    await response.write(KEEP_ALIVE)

    def _allowed(self) -> bool:
        return self._parts.authority.may_deliver(self._opening.caller, self._opening.run.authority) is None

    def _lapse_in(self) -> float:
        """Seconds until the lease lapses, when nothing wakes the stream (SSE-037)."""
        authority = self._opening.run.authority
        lapse = self._parts.authority.lease_end_ms(authority.actor_id, authority.team_id)
        return math.inf if lapse is None else max(0.0, (lapse - self._parts.now_ms()) / 1000)
