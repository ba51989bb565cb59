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
from lab.partner.model.runs import Run, events_after, last_sequence, run_in, run_status
from lab.partner.model.shape import actor_query_untrusted
from lab.partner.model.sse import KEEP_ALIVE, LARGEST_SEQUENCE, continue_after, encode
from lab.partner.model.words import LAST_EVENT_ID, TERMINAL

# SSE-038
HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
BATCH: Final = 64
KEPT_LOOKS: Final = 64
"""Batches that are kept for others who ask for the same."""


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


@dataclass(frozen=True, slots=True)
class _Look:
    """What a stream sees of its run behind an event: whether the run has ended, and the next events as bytes."""

    over: bool
    events: tuple[tuple[int, bytes], ...]


class _View:
    """What streams ask of the state, kept until something is written: the followers of one run all ask the same."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._changes = -1
        self._looks: dict[tuple[str, int], _Look | None] = {}
        self._leases: dict[tuple[str, str], float | None] = {}

    def look(self, run_id: str, after: int) -> _Look | None:
        """The run behind event `after`; None once it was removed."""
        self._forget_what_changed()
        place = (run_id, after)
        if place not in self._looks:
            status = run_status(self._parts.state, run_id)
            events = events_after(self._parts.state, run_id, after, BATCH)
            coded = tuple((event.sequence, encode(run_id, event.sequence, event.kind, event.data)) for event in events)
            self._looks[place] = None if status is None else _Look(status in TERMINAL, coded)
            while len(self._looks) > KEPT_LOOKS:
                del self._looks[next(iter(self._looks))]
        return self._looks[place]

    def lease_seconds(self, opening: Opening) -> float:
        """Seconds for which the stream may go on when nothing is written; 0 when it may not now (SSE-026, SSE-037)."""
        self._forget_what_changed()
        place = (opening.caller.key_hash, opening.run.run_id)
        if place not in self._leases:
            self._leases[place] = self._lease_end(opening)
        end_ms = self._leases[place]
        return 0.0 if end_ms is None else max(0.0, (end_ms - self._parts.now_ms()) / 1000)

    def _lease_end(self, opening: Opening) -> float | None:
        authority = opening.run.authority
        if self._parts.authority.may_deliver(opening.caller, authority) is not None:
            return None
        lapse = self._parts.authority.lease_end_ms(authority.actor_id, authority.team_id)
        return math.inf if lapse is None else lapse

    def _forget_what_changed(self) -> None:
        changes = self._parts.state.changes
        if changes != self._changes:
            self._changes = changes
            self._looks.clear()
            self._leases.clear()


class EventStreams:
    """The streams of one life of the model."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._view = _View(parts)
        self._count = 0

    async def serve(self, request: web.Request, opening: Opening) -> web.StreamResponse:
        """Deliver the stream until the run has ended, authority is lost, or the reader goes away (SSE-035)."""
        self._count += 1
        delivery = _Delivery(self._parts, self._view, opening)
        response = web.StreamResponse(headers=HEADERS)
        if request.version >= HttpVersion11:
            # Chunks are what tells a cut from an end.
            response.enable_chunked_encoding()
        number, change = self._count, "broken"
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
            self._tell(number, opening, change, delivery.sent)
        return response

    def _tell(self, number: int, opening: Opening, change: str, sent: int) -> None:
        event = PartnerDelivery(number, opening.run.run_id, change, opening.last_event_id, sent)
        self._parts.ctx.journal.record(self._parts.name, event)


class _Delivery:
    """Writes to one reader what it is due; `more` wakes it, `sent` counts the events written."""

    def __init__(self, parts: Parts, view: _View, opening: Opening) -> None:
        self.more = asyncio.Event()
        self.sent = 0
        self._keep_alive = parts.settings.keep_alive_seconds
        self._view = view
        self._opening = opening
        self._run_id = opening.run.run_id
        self._after = opening.after

    async def run(self, response: web.StreamResponse) -> str:
        """Write to the end: "ended", or "withheld" when authority was lost."""
        while True:
            self.more.clear()
            look = self._view.look(self._run_id, self._after)
            for sequence, coded in () if look is None else look.events:
                # SSE-026, SSE-037: authority is looked at for each event
                if not self._lease():
                    return "withheld"
                await response.write(coded)
                self._after = sequence
                self.sent += 1
            if look is not None and look.events:
                continue
            # When nothing wakes the stream, the end of the lease does (SSE-037).
            lapse = self._lease()
            if look is None or not lapse:
                return "withheld"
            if look.over:
                return "ended"
            try:
                async with asyncio.timeout(min(self._keep_alive, lapse)):
                    await self.more.wait()
            except TimeoutError:
                if self._keep_alive <= lapse and self._lease():
                    await response.write(KEEP_ALIVE)

    def _lease(self) -> float:
        return self._view.lease_seconds(self._opening)
