"""What a law is, and judging a journal by all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lab.journal.events import FaultFired, FaultPlanned
from lab.journal.writer import Entry
from lab.laws.view import JournalView


class Status(StrEnum):
    """What a law says of a journal."""

    HELD = "held"
    BROKEN = "broken"
    NOTHING = "nothing"
    """There was nothing to judge."""
    UNKNOWN = "unknown"
    """There was something, but what the witnesses saw does not tell."""
    EXCUSED = "excused"
    """It was broken by the order of a fault."""


@dataclass(frozen=True)
class Violation:
    """One break of a law: what was seen, what was due, and the journal entries (by number) that show it."""

    law: str
    party: str
    participant: str
    seen: str
    due: str
    entries: tuple[int, ...]
    near_miss: str = ""


@dataclass(frozen=True)
class Judgement:
    """A law's word on a journal; `judged` counts the cases that could be told, `unsure` those that could not."""

    status: Status
    judged: int
    violations: tuple[Violation, ...] = ()
    unsure: int = 0


@dataclass(frozen=True)
class Law:
    """One promise of one party: a sentence, and a pure function from a journal to a judgement."""

    id: str
    sentence: str
    party: str
    requirements: tuple[str, ...]
    judge: Callable[[JournalView], Judgement]


@dataclass(frozen=True)
class Judged:
    """A law with its judgement."""

    law: Law
    judgement: Judgement

    @property
    def status(self) -> Status:
        """The judgement's status."""
        return self.judgement.status


class Tally:
    """What a law's judge counts while it reads."""

    def __init__(self, law: str, party: str) -> None:
        self._law = law
        self._party = party
        self._judged = 0
        self._unsure = 0
        self._violations: list[Violation] = []

    def held(self) -> None:
        """One case was as it was due."""
        self._judged += 1

    def unsure(self) -> None:
        """One case that the witnesses cannot tell."""
        self._unsure += 1

    def broken(self, participant: str, seen: str, due: str, entries: Iterable[int], near_miss: str = "") -> None:
        """One case was not as it was due."""
        self._judged += 1
        self._violations.append(Violation(self._law, self._party, participant, seen, due, tuple(entries), near_miss))

    def judgement(self) -> Judgement:
        """Broken by any violation; unknown only if no case at all could be told."""
        if self._violations:
            return Judgement(Status.BROKEN, self._judged, tuple(self._violations), self._unsure)
        if self._judged:
            return Judgement(Status.HELD, self._judged, unsure=self._unsure)
        return Judgement(Status.UNKNOWN if self._unsure else Status.NOTHING, 0, unsure=self._unsure)


def judge_all(entries: Sequence[Entry], laws: Sequence[Law]) -> list[Judged]:
    """Each law's word on a journal, in the order of `laws`.

    A broken one turns into excused where a fault that fired voids the law for its party.
    """
    view = JournalView(entries)
    excuses = _excuses(entries)
    return [Judged(law, _excused(law, law.judge(view), excuses)) for law in laws]


def _excuses(entries: Sequence[Entry]) -> frozenset[tuple[str, str]]:
    fired = {entry.event.fault for entry in entries if isinstance(entry.event, FaultFired)}
    return frozenset(
        (law, party)
        for entry in entries
        if isinstance(entry.event, FaultPlanned) and entry.event.fault in fired
        for law, party in entry.event.excuses
    )


def _excused(law: Law, judgement: Judgement, excuses: frozenset[tuple[str, str]]) -> Judgement:
    if judgement.status is not Status.BROKEN:
        return judgement
    if (law.id, law.party) in excuses:
        return replace(judgement, status=Status.EXCUSED)
    left = tuple(one for one in judgement.violations if (law.id, one.participant) not in excuses)
    if not left:
        return replace(judgement, status=Status.EXCUSED)
    return replace(judgement, violations=left)
