"""The law of how a gateway reads a job's stream for its caller."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import deque

from lab.journal.events import BodyAnswered, CallFailed, ContentRead, StreamOver, StreamPage
from lab.journal.writer import Entry
from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, Exchange, FrameAt, Job
from lab.laws.view import JournalView

LAW = "stream-read-on"

ASKED_WITHIN = 2.0
"""Seconds from a page to the next request, or from a failed one to its repetition; the rule says at once."""

PASSING = frozenset({"timeout", "agent_offline", "rate_limited"})
"""Failures of a page that say nothing of the stream (CP-027)."""


def _stream_read_on(view: JournalView) -> Judgement:
    tally = Tally(LAW, GATEWAY)
    told: dict[str, list[Entry]] = {}
    for entry in view.entries:
        event = entry.event
        if isinstance(event, StreamPage | StreamOver) or (isinstance(event, CallFailed) and event.call == "stream"):
            told.setdefault(event.job_id or "", []).append(entry)
    paced = {entry.event.job_id for entry in view.entries if isinstance(entry.event, ContentRead)}
    for job_id, entries in told.items():
        job = view.jobs.get(job_id)
        if job is not None and job.assigns:
            _Reader(tally, view, job, job_id in paced).judge(entries)
    return tally.judgement()


class _Reader:
    """Follows what the caller of one job's stream was told; `paced` when another caller read it as well."""

    def __init__(self, tally: Tally, view: JournalView, job: Job, paced: bool) -> None:
        self._tally = tally
        self._view = view
        self._job = job
        self._paced = paced
        self._who = job.assigns[0].by
        refs, bodies = _pages(view, job)
        self._exchanges = _exchanges(view, refs)
        self._asked = sorted(ask.n for exchange in self._exchanges for ask in exchange.asks)
        self._closed = next((told.n for told, body in bodies if body.facts.get("done") is True), None)
        self._pages = deque(bodies)
        self._places: set[object] = set()
        """Places of the events that came up to the entry that is judged."""
        self._in_row = 0
        self._over = False
        """Whether the caller was told of an end."""

    def judge(self, told: list[Entry]) -> None:
        """Each page, each failure of one, and the end."""
        self._over = any(not isinstance(entry.event, StreamPage) for entry in told)
        for entry in told:
            if isinstance(entry.event, StreamPage):
                self._judge_page(entry, entry.event)
            else:
                self._judge_end(entry)
        for exchange in self._exchanges:
            if exchange.failed is not None and exchange.failed[1].code in PASSING and not self._paced:
                self._judge_next(exchange.failed[0], "a failed page")

    def _judge_page(self, entry: Entry, page: StreamPage) -> None:
        self._take_bodies(entry.n)
        if page.total > len(self._places):
            # CP-027: by its place, an event is told once
            seen = f"{page.total} events told, {len(self._places)} came"
            self._tally.broken(self._who, seen, "each event once", (entry.n,))
        elif not self._paced and page.total < self._in_row:
            seen = f"{page.total} events told, {self._in_row} came in a row"
            self._tally.broken(self._who, seen, "every event", (entry.n,))
        else:
            self._tally.held()
        if not page.done:
            self._judge_next(entry, "a page that is not the last")

    def _take_bodies(self, before: int) -> None:
        while self._pages and self._pages[0][0].n < before:
            told, body = self._pages.popleft()
            failed = self._view.exchanges[body.request_id].failed
            # CH-028: what comes after its request has failed is nobody's.
            late = failed is not None and failed[0].n < told.n
            for place in (event.get("i") for event in body.facts.get("events", ())):
                self._places.add(place)
                self._in_row += place == self._in_row and not late

    def _judge_end(self, entry: Entry) -> None:
        """CP-026, CP-027: nothing but done:true, or a failure that stays, ends a stream."""
        closed = self._closed is not None and self._closed < entry.n
        before = [one for one in self._exchanges if one.asks[0].n < entry.n]
        failed = before[-1].failed if before else None
        passing = failed is not None and failed[1].code in PASSING
        if closed or (isinstance(entry.event, CallFailed) and not passing):
            self._tally.held()
            return
        last = before[-1].asks[0].n if before else self._job.assigns[0].n
        after = f" after {failed[1].code}" if failed is not None and passing else ""
        seen = f"the stream told to be over{after}"
        self._tally.broken(self._who, seen, "asked on until done:true", (last, entry.n))

    def _judge_next(self, entry: Entry, what: str) -> None:
        """CP-026: the next request follows at once."""
        at = bisect_left(self._asked, entry.n)
        if at < len(self._asked):
            self._tally.held()
            return
        due = entry.t + ASKED_WITHIN
        due += self._view.slack(entry.t, due)
        until = self._view.steps_end if self._view.steps_end is not None else self._view.end
        if until < due or self._over or not self._there(entry.t, due):
            return
        self._tally.broken(self._who, f"no request after {what}", f"the next one within {ASKED_WITHIN:g} s", (entry.n,))

    def _there(self, start: float, end: float) -> bool:
        """Whether the job's agent had a ready connection all the time, with room for a request."""
        agent = self._view.connections[self._job.assigns[0].frame.conn].agent_id
        for connection in self._view.connections.values():
            ready, ended = connection.ready, fatal_error(connection)
            if connection.agent_id != agent or ready is None or ready.t > start or (ended and ended.t <= end):
                continue
            lost = any(seen.frame.fate != "passed" for seen in connection.frames)
            if self._view.horizon(connection, start) >= end and not lost and self._view.quiet(start, end):
                return True
        return False


def _pages(view: JournalView, job: Job) -> tuple[set[object], list[tuple[Entry, BodyAnswered]]]:
    """The refs of a job's stream, and its pages: from cursor to cursor, whichever gateway they came by."""
    refs: set[object] = {hashlib.sha256(job.job_id.encode()).hexdigest()}
    pages = []
    bodies = [exchange.body for exchange in view.exchanges.values() if exchange.body is not None]
    for told, body in sorted(bodies, key=lambda one: one[0].n):
        if body.content == "job.stream" and body.ref in refs:
            pages.append((told, body))
            refs.add(body.facts.get("next"))
    return refs - {None}, pages


def _exchanges(view: JournalView, refs: set[object]) -> list[Exchange]:
    """The requests for pages, in the order in which they were written."""
    found = [exchange for exchange in view.exchanges.values() if exchange.kind == "job.stream"]
    return sorted((one for one in found if _ref(one.asks[0]) in refs), key=lambda one: one.asks[0].n)


def _ref(asked: FrameAt) -> object:
    ref = asked.frame.payload.get("ref")
    return ref.get("sha256") if isinstance(ref, dict) else None


LAWS = (
    Law(
        LAW,
        "A gateway reads a stream on until done, a failed page again, and gives its caller every event once",
        GATEWAY,
        ("CP-026", "CP-027"),
        _stream_read_on,
    ),
)
