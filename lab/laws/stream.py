"""The law of a job's stream: what agent2 said arrives whole, once and in order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.journal.events import Agent2Line, BodyAnswered
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, Job
from lab.laws.view import JournalView

LONGEST_EVENT = 16384
"""Characters of an event; a longer line is replaced by a marker in its place (CHAT-048)."""

LAW = "stream-complete"


def _stream_complete(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for job in view.jobs.values():
        pages = [(entry, body) for entry, body in job.bodies if body.content == "job.stream" and body.status == "ok"]
        if pages:
            _Stream(tally, view, job).judge(pages)
    return tally.judgement()


@dataclass
class _Stream:
    """Follows the cursors of a job's stream."""

    tally: Tally
    view: JournalView
    job: Job
    positions: dict[str, int] = field(default_factory=dict)
    """Position by the hash of a ref; the same ref again gives the same position (CHAT-046)."""
    pages_at: dict[str, int] = field(default_factory=dict)
    """The entry that handed a ref out."""
    closed: tuple[int, int] | None = None
    """The length at which the stream was called done, and the entry that did."""

    def judge(self, pages: Sequence[tuple[Entry, BodyAnswered]]) -> None:
        # CHAT-048: an empty line has no position
        self._lines = [(entry, line) for entry, line in self.job.lines if line.chars > 0]
        # CHAT-035: the first ref is the job's id
        self.positions[hashlib.sha256(self.job.job_id.encode()).hexdigest()] = 0
        for number, (entry, body) in enumerate(pages):
            self._page(number, entry, body)

    def _broken(self, seen: str, due: str, *entries: int) -> None:
        agents = [self.view.agent_of(one) for one in self.view.connections.values()]
        self.tally.broken(agents[0] if len(set(agents)) == 1 else LOCAL_AGENT, seen, due, entries)

    def _page(self, number: int, entry: Entry, body: BodyAnswered) -> None:
        schema = body.facts.get("schema", "ok")
        if schema != "ok":
            # CHAT-032, CHAT-033, CHAT-034
            self._broken(f"page {number} breaks its schema at {_where(schema)}", "{events, nextRef, done}", entry.n)
            return
        start = self.positions.get(body.ref)
        if start is None:
            self.tally.unsure()
            return
        events: Sequence[Mapping[str, Any]] = body.facts.get("events", ())
        due = start
        for place, event in enumerate(events):
            if event.get("i") != due:
                self._misplaced(number, place, event.get("i"), due, entry, body)
                due = event["i"] if isinstance(event.get("i"), int) else due
            else:
                self._event(number, place, event, entry)
            due += 1
        self._cursor(number, body, due, entry)
        if body.facts.get("done") is True:
            self._done(number, due, entry)
        if not events:
            self.tally.held()

    def _misplaced(self, number: int, place: int, i: object, due: int, entry: Entry, body: BodyAnswered) -> None:
        entries = (self.pages_at[body.ref], entry.n) if body.ref in self.pages_at else (entry.n,)
        word = "again" if isinstance(i, int) and i < due else "too early"
        self._broken(
            f"event {i} {word}: page {number} entry {place}", f"event {due} at page {number} entry {place}", *entries
        )

    def _event(self, number: int, place: int, event: Mapping[str, Any], entry: Entry) -> None:
        i: int = event["i"]
        at = f"page {number} entry {place}"
        if self.closed is not None and i >= self.closed[0]:
            # CHAT-041
            self._broken(f"event {i} at {at} after done:true", "no further event", self.closed[1], entry.n)
            return
        if not self.view.has_agent2:
            self.tally.held()
            return
        if i >= len(self._lines) or self._lines[i][0].n > entry.n:
            self._broken(f"event {i} at {at}", f"one of the {len(self._lines)} lines of agent2", entry.n)
            return
        line_entry, line = self._lines[i]
        self._compare(i, at, event, entry, line_entry, line)

    def _compare(
        self, i: int, at: str, event: Mapping[str, Any], entry: Entry, line_entry: Entry, line: Agent2Line
    ) -> None:
        same = event.get("sha256") == line.sha256
        source = f" ({line.source})" if line.source else ""
        if line.secret and same:
            # CHAT-025, CHAT-060: a secret leaves masked
            self._broken(f"event {i} at {at} unmasked", f"line {line.i}{source} masked", line_entry.n, entry.n)
        elif not line.secret and not same and line.chars <= LONGEST_EVENT:
            # CHAT-027
            other = next((one.i for _, one in self._lines if one.sha256 == event.get("sha256")), None)
            seen = f"event {i} at {at} with " + (f"line {other}" if other is not None else "other text")
            self._broken(seen, f"line {line.i}{source} as agent2 wrote it", line_entry.n, entry.n)
        else:
            self.tally.held()

    def _cursor(self, number: int, body: BodyAnswered, position: int, entry: Entry) -> None:
        cursor = body.facts.get("next")
        if not isinstance(cursor, str):
            return
        known = self.positions.get(cursor)
        if known is not None and known != position:
            # CHAT-046
            self._broken(
                f"the nextRef of page {number} stands for events {known} and {position}",
                "one position a cursor",
                self.pages_at.get(cursor, entry.n),
                entry.n,
            )
            return
        self.positions[cursor] = position
        self.pages_at.setdefault(cursor, entry.n)

    def _done(self, number: int, length: int, entry: Entry) -> None:
        if self.closed is None:
            self.closed = (length, entry.n)
        if length >= len(self._lines):
            self.tally.held()
            return
        missing = self._lines[length]
        if self._all_given(entry):
            # CHAT-069: what remains comes before done
            self._broken(
                f"done:true at page {number} after {length} events",
                f"all {len(self._lines)} lines of agent2",
                missing[0].n,
                entry.n,
            )
        else:
            # CHAT-030, CHAT-066: what the agent could not read it need not have
            self.tally.unsure()

    def _all_given(self, done: Entry) -> bool:
        """Whether agent2 gave its whole stream to a reader, over links that nothing disturbed meanwhile."""
        opened: dict[int, float] = {}
        for entry, stream in self.job.streams:
            if stream.stream != "stream" or entry.n > done.n:
                continue
            if stream.change == "opened":
                opened[stream.reader] = entry.t
            elif stream.change == "ended" and stream.sent >= len(self.job.lines):
                since = opened.get(stream.reader, entry.t)
                broken = self.view.disturbed(since, done.t, "agent2") or self.view.delayed(since, done.t, "agent2")
                return not broken
        return False


def _where(schema: object) -> str:
    return f"{schema.get('path') or 'the body'} ({schema.get('keyword')})" if isinstance(schema, dict) else "?"


LAWS = (
    Law(
        LAW,
        "No event of a job's stream is lost, doubled or out of order",
        LOCAL_AGENT,
        (
            "CHAT-025",
            "CHAT-027",
            "CHAT-032",
            "CHAT-033",
            "CHAT-034",
            "CHAT-035",
            "CHAT-036",
            "CHAT-040",
            "CHAT-041",
            "CHAT-046",
            "CHAT-069",
        ),
        _stream_complete,
    ),
)
