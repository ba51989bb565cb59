"""The moments around a finding: the last frames before it, and what came right after, on its agent's connections."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.journal.events import (
    BodyAnswered,
    Event,
    Frame,
    JobAssigned,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    TextMessage,
    Undelivered,
)
from lab.journal.writer import Entry
from lab.report.event_words import LEGEND, PARTNER_LEGEND, Words, words_of
from lab.report.numbers import plural
from lab.report.partner_words import LISTED
from lab.run.verdict import Finding

BEFORE, AFTER = 3, 2
"""Frames around a finding's first entry."""
BEFORE_LAST, AFTER_LAST = 2, 1
"""Frames around its last entry, which completes the break."""
OWN_SHOWN = 6
"""Entries of a finding that are shown: its first and its last ones."""
CHANGES_SHOWN = 4
"""Changes of links and sockets between the first and the last entry: the last ones."""

_OF_GATEWAY = (Frame, TextMessage, SocketOpened, SocketClosed, BodyAnswered, SessionChanged, Undelivered)
_LISTED = (Frame, TextMessage, SocketOpened, SocketClosed)
PARTNER = "the partner leg"
"""In the place of an agent, where there is none."""
_CHANGES = (LinkChanged, SocketOpened, SocketClosed)


@dataclass(frozen=True)
class Moment:
    """A line: entry and time, what happened, and whether the finding names it. Without an entry it is a gap."""

    n: int | None
    t: float
    text: str
    note: str = ""
    own: bool = False

    def line(self) -> str:
        """The moment as a line of fixed columns."""
        if self.n is None:
            return f"{'…':>9}     {self.text}"
        return f"{self.t:9.3f} s {'▸' if self.own else ' '} {self.text:<24} {self.note}".rstrip()


class Moments:
    """Finds moments in a journal; made once for all findings of a run."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = {entry.n: entry for entry in entries}
        self._frames: list[Entry] = []
        self._by_agent: dict[str, list[Entry]] = {}
        """What was on the sockets of one agent: a new one goes on where the last one ended."""
        self._agents: dict[str, str] = {}
        """By connection; one whose opening is not in the journal stands for itself."""
        self._changes: list[Entry] = []
        self._first: dict[int, int] = {}
        self._labels: dict[str, str] = {}
        """The scenario's names of jobs, by id."""
        seen: dict[tuple[str, str], int] = {}
        for entry in entries:
            event = entry.event
            if isinstance(event, JobAssigned):
                self._labels[event.job_id] = event.label
            if isinstance(event, SocketOpened):
                self._agents[event.conn] = event.agent
            if isinstance(event, LISTED):
                self._by_agent.setdefault(PARTNER, []).append(entry)
            elif isinstance(event, _LISTED):
                self._by_agent.setdefault(self._agents.get(event.conn, event.conn), []).append(entry)
            if isinstance(event, _CHANGES):
                self._changes.append(entry)
            if isinstance(event, Frame):
                self._frames.append(entry)
                if event.msg_id is not None:
                    first = seen.setdefault((event.direction, event.msg_id), entry.n)
                    if first != entry.n:
                        self._first[entry.n] = first

    @property
    def legend(self) -> str:
        """What the marks of a moment's line mean."""
        return PARTNER_LEGEND if PARTNER in self._by_agent else LEGEND

    def words(self, entry: Entry) -> Words:
        """An entry in words, with what only the rest of the journal knows: its job, and the frame that it repeats."""
        words = words_of(entry.event, self._first.get(entry.n))
        label = self._labels.get(_job_of(entry.event) or "")
        # In a run of one job its name says nothing.
        if label is None or len(self._labels) == 1:
            return words
        return replace(words, note=f"{label} · {words.note}" if words.note else label)

    def around(self, finding: Finding) -> tuple[Moment, ...]:
        """The moments around a finding, empty where it has no place in the journal or is about what never came."""
        own = sorted(n for n in set(finding.entries) if n in self._entries)
        if not own or finding.head == "fault":
            return ()
        first, last = own[0], own[-1]
        if len(own) > OWN_SHOWN:
            own = [*own[: OWN_SHOWN // 2], *own[-OWN_SHOWN // 2 :]]
        chosen = {*own, *self._near(first, BEFORE, AFTER)}
        if last != first:
            chosen.update(self._near(last, BEFORE_LAST, AFTER_LAST))
            chosen.update([entry.n for entry in self._changes if first < entry.n < last][-CHANGES_SHOWN:])
        return tuple(self._lines(sorted(chosen), frozenset(own)))

    def _near(self, n: int, before: int, after: int) -> list[int]:
        listed = [entry.n for entry in self._by_agent.get(self._agent(n), ())]
        at = bisect_left(listed, n)
        behind = at + 1 if at < len(listed) and listed[at] == n else at
        return listed[max(0, at - before) : at] + listed[behind : behind + after]

    def _agent(self, n: int) -> str:
        """Whose connection an entry is on; else that of the last frame before it, of its job where it has one."""
        event = self._entries[n].event
        if PARTNER in self._by_agent:
            return PARTNER
        if isinstance(event, _OF_GATEWAY):
            return self._agents.get(event.conn, event.conn)
        before = [entry.event for entry in self._frames if entry.n < n and isinstance(entry.event, Frame)]
        job = _job_of(event)
        of_job = [frame for frame in before if job is not None and _job_of(frame) == job]
        nearest = of_job or before
        return self._agents.get(nearest[-1].conn, nearest[-1].conn) if nearest else ""

    def _lines(self, chosen: Sequence[int], own: frozenset[int]) -> Iterable[Moment]:
        agents = dict.fromkeys(self._agent(n) for n in chosen)
        listed = [entry for agent in agents for entry in self._by_agent.get(agent, ())]
        for place, n in enumerate(chosen):
            entry = self._entries[n]
            if place:
                left = sum(chosen[place - 1] < other.n < n for other in listed)
                if left:
                    yield Moment(
                        None, entry.t, f"{left} more" if PARTNER in self._by_agent else plural(left, "more frame")
                    )
            words = self.words(entry)
            yield Moment(n, entry.t, words.text, words.note, n in own)


def _job_of(event: Event) -> str | None:
    job = event.payload.get("jobId") if isinstance(event, Frame) else getattr(event, "job_id", None)
    return job if isinstance(job, str) else None
