"""Following a run's stream of events: resumed after breaks, and told to the journal event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from lab.context import RunContext
from lab.journal.partner_events import PartnerEvent, PartnerStream
from lab.partner.client.answers import Raw, data_untrusted
from lab.partner.client.asking import Ask
from lab.partner.client.calls import READ_STEP, Calls, TooLong, bounded_body, kind_of, lower, passing
from lab.partner.client.outcomes import ApiRefusal, TransportError
from lab.partner.client.run_events import RunEvents
from lab.partner.client.sse_reader import SseReader, StreamTooLong, WireEvent
from lab.partner.client.words import LAST_EVENT_ID
from lab.tap.partner import LEAK, PartnerTap

AskFor = Callable[[int | None], Ask]
"""The request of a stream after a sequence; None for one without Last-Event-ID."""

MOST_REFUSAL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """Bounds of following; seconds."""

    most_reconnects: int = 5
    """In a row without a further event (SSE-047)."""
    first_wait_s: float = 0.25
    longest_wait_s: float = 2.0
    open_s: float = 10.0
    """Until the head of an answer."""
    idle_s: float = 60.0
    """Without a byte, comments among them, the stream counts as broken."""
    linger_s: float = 2.0
    """How long the API may take to close after the last event (SSE-035)."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """Why following ended: over (a last event came), closed (cleanly, without one), lost, deadline."""

    why: str
    streams: int


class Follower:
    """Follows the runs of one driver. `streams` numbers the streams of all of them from 1."""

    def __init__(self, ctx: RunContext, name: str, calls: Calls, tap: PartnerTap, settings: FollowSettings) -> None:
        self._ctx = ctx
        self._name = name
        self._calls = calls
        self._tap = tap
        self._settings = settings
        self.streams = 0

    async def follow(
        self, ask_for: AskFor, events: RunEvents, after: int | None, deadline: float
    ) -> StreamEnd | ApiRefusal | TransportError:
        """Read until a last event, a clean close, a refusal, or lab time `deadline` in seconds.

        `after` is where the first stream goes on; each later one goes on behind the last event that was applied.
        """
        opened, in_a_row, wait = 0, 0, self._settings.first_wait_s
        while True:
            opened, before = opened + 1, events.last
            end = await self._stream(ask_for(after), events, after, deadline)
            if isinstance(end, ApiRefusal | TransportError) and not passing(end):
                return end
            if isinstance(end, str) and end != "broken":
                return StreamEnd(end, opened)
            if events.last > before:
                in_a_row, wait = 0, self._settings.first_wait_s
            in_a_row += 1
            if in_a_row > self._settings.most_reconnects:
                return StreamEnd("lost", opened)
            if self._ctx.now() + wait >= deadline:
                return StreamEnd("deadline", opened)
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._settings.longest_wait_s)
            # SSE-047: behind the last event that came whole.
            after = events.last or after

    async def _stream(
        self, ask: Ask, events: RunEvents, after: int | None, deadline: float
    ) -> str | ApiRefusal | TransportError:
        """One stream: over, closed, broken, deadline, or what refused it."""
        self.streams += 1
        stream = _Stream(self._ctx, self._name, self._tap, ask, self.streams, after, events)
        try:
            async with asyncio.timeout(None) as guard:
                self._rearm(guard, self._settings.open_s, deadline)
                async with self._calls.request(ask) as response:
                    if response.status != 200:
                        body = await bounded_body(response, MOST_REFUSAL_BYTES)
                        return stream.refused(Raw(response.status, lower(response.headers), body))
                    stream.opened(response)
                    return await self._read(stream, response, guard, deadline)
        except TimeoutError:
            return stream.broken("deadline" if self._ctx.now() >= deadline else "broken", "timeout")
        except (StreamTooLong, TooLong):
            stream.broken("broken", "too-long")
            return TransportError("too-long", 200)
        except (aiohttp.ClientError, OSError) as error:
            return stream.broken("broken", kind_of(error))

    async def _read(
        self, stream: _Stream, response: aiohttp.ClientResponse, guard: asyncio.Timeout, deadline: float
    ) -> str:
        lingers = False
        self._rearm(guard, self._settings.idle_s, deadline)
        while raw := await response.content.read(READ_STEP):
            stream.take(raw)
            if stream.events.over and not lingers:
                # What may still come is read, but not waited for.
                lingers = True
                self._rearm(guard, self._settings.linger_s, self._ctx.now() + self._settings.linger_s)
            elif not lingers:
                self._rearm(guard, self._settings.idle_s, deadline)
        return stream.ended()

    def _rearm(self, guard: asyncio.Timeout, seconds: float, deadline: float) -> None:
        left = max(0.0, min(seconds, deadline - self._ctx.now()))
        guard.reschedule(asyncio.get_running_loop().time() + left)


class _Stream:
    """One stream, and what the journal hears of it."""

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        tap: PartnerTap,
        ask: Ask,
        number: int,
        after: int | None,
        events: RunEvents,
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._tap = tap
        self._ask = ask
        self._number = number
        self._after = after
        self._reader = SseReader()
        self._seen = 0
        self._open = False
        self.events = events

    def refused(self, raw: Raw) -> ApiRefusal | TransportError:
        verdict = self._tap.answer(self._ask.route, raw.status, raw.headers, raw.body)
        outcome = data_untrusted(raw)
        if not isinstance(outcome, ApiRefusal | TransportError):
            # A 2xx that is no stream.
            outcome = TransportError("not-envelope", raw.status)
        leaks = tuple(f"{LEAK}{name}" for name in verdict.leaks)
        self._note("refused", raw.status, verdict.code, misses=(*verdict.misses, *leaks))
        return outcome

    def opened(self, response: aiohttp.ClientResponse) -> None:
        headers = lower(response.headers)
        facts = self._tap.stream_facts(headers)
        self._open = True
        self._note("opened", response.status, facts=facts, misses=self._tap.stream_head(response.status, headers))

    def take(self, raw: bytes) -> None:
        for event in self._reader.feed(raw):
            self._event(event)

    def ended(self) -> str:
        self._note("ended", 200)
        return "over" if self.events.over else "closed"

    def broken(self, why: str, kind: str) -> str:
        """A stream that broke; one whose last event came is over all the same."""
        self._note("broken", 200 if self._open else 0, facts={"error": kind})
        return "over" if self.events.over else why

    def _event(self, event: WireEvent) -> None:
        verdict = self._tap.event(self.events.run_id, event.raw)
        applied = self.events.take(event)
        self._seen += 1
        self._ctx.journal.record(
            self._name,
            PartnerEvent(
                self._number,
                self.events.run_id,
                verdict.event_id,
                verdict.sequence,
                verdict.name,
                verdict.type,
                verdict.sha256,
                applied,
                verdict.facts,
                verdict.misses,
                verdict.leaks,
                event.notes,
            ),
        )

    def _note(
        self,
        change: str,
        status: int,
        code: str | None = None,
        *,
        facts: Mapping[str, Any] | None = None,
        misses: tuple[str, ...] = (),
    ) -> None:
        header = self._ask.headers.get(LAST_EVENT_ID)
        sent = {} if header is None else {"sentLastEventId": header}
        if leaks := self._tap.rest(self._reader.pending):
            misses = (*misses, *(f"{LEAK}{name}" for name in leaks))
        self._ctx.journal.record(
            self._name,
            PartnerStream(
                self._number,
                self.events.run_id,
                change,
                self._ask.conversation_id,
                status,
                code,
                self._after,
                self._seen,
                {**sent, **self._ask.marks, **(facts or {})},
                misses,
            ),
        )
