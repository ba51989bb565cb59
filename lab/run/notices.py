"""What a verdict tells beside the promises: no rule is about it, and yet whoever runs the agent must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.journal.events import SutChanged
from lab.journal.writer import Entry


@dataclass(frozen=True)
class Notice:
    """A sentence, whom it is about, and the journal entry that shows it."""

    participant: str
    text: str
    entry: int


def notices_of(entries: Sequence[Entry]) -> tuple[Notice, ...]:
    """Programs that did not end when they were told to, or that left others behind."""
    told: dict[str, float] = {}
    notices = []
    for entry in entries:
        event = entry.event
        if not isinstance(event, SutChanged):
            continue
        if event.change == "stopping":
            told[event.name] = entry.t
        elif event.change == "killed":
            notices.append(Notice(event.name, _killed(event, entry.t - told.get(event.name, entry.t)), entry.n))
    return tuple(notices)


def _killed(event: SutChanged, seconds: float) -> str:
    count = event.detail.get("killed", 0)
    processes = "1 process was" if count == 1 else f"{count} processes were"
    if event.detail.get("signal") == "SIGKILL":
        return f"did not end within {seconds:.1f} s of its stop signal: {processes} killed"
    return f"ended and left others running: {processes} killed"
