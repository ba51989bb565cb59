"""The page that a run leaves: `report.html`, one file without scripts, made from its verdict and journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lab.journal.events import (
    BodyAnswered,
    FaultFired,
    Frame,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    StepEnded,
    StepStarted,
)
from lab.journal.writer import Entry
from lab.report.words import HEADS, MEANINGS, details, figures_line, headline, laws_line
from lab.run.runner import RunResult

ROWS_SHOWN = 4000
"""Rows of the timeline; a longer journal is cut, and the page says so."""


@dataclass(frozen=True)
class Row:
    """One line of the timeline. `lane` is who it belongs to, `marked` that a finding names it."""

    n: int
    t: float
    lane: str
    text: str
    note: str
    marked: bool


def page_text(result: RunResult) -> str:
    """The whole page."""
    environment = Environment(
        loader=PackageLoader("lab.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    verdict = result.verdict
    marked = {number for finding in verdict.findings for number in finding.entries}
    rows = [row for entry in result.entries if (row := _row(entry, entry.n in marked)) is not None]
    file = str(result.scenario.file)
    return environment.get_template("report.html.j2").render(
        result=result,
        verdict=verdict,
        head=HEADS[verdict.outcome],
        meaning=MEANINGS[verdict.outcome],
        laws_line=laws_line(verdict),
        figures_line=figures_line(verdict.figures),
        findings=[(headline(finding), finding.outcome.value, details(finding, file)) for finding in verdict.findings],
        steps=_steps(result.entries),
        rows=rows[:ROWS_SHOWN],
        cut=max(0, len(rows) - ROWS_SHOWN),
    )


def _steps(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    started: dict[int, tuple[StepStarted, float]] = {}
    steps = []
    for entry in entries:
        event = entry.event
        if isinstance(event, StepStarted):
            started[event.index] = (event, entry.t)
        elif isinstance(event, StepEnded):
            step, since = started[event.index]
            seconds = entry.t - since
            steps.append({"title": step.title, "outcome": event.outcome, "seconds": seconds, "note": event.note})
    return steps


def _row(entry: Entry, marked: bool) -> Row | None:
    words = _words(entry.event)
    if words is None:
        return None
    lane, text, note = words
    return Row(entry.n, entry.t, lane or entry.by, text, note, marked)


def _words(event: object) -> tuple[str, str, str] | None:
    match event:
        case Frame():
            return _frame_words(event)
        case BodyAnswered():
            events = event.facts.get("events", ())
            return "", f"{event.content} body", f"{event.status} · {event.bytes} bytes · {len(events)} events"
        case SessionChanged():
            return "", f"session {event.state}", " ".join(f"{name}={value}" for name, value in event.detail.items())
        case SocketOpened():
            return "", f"socket {event.conn} opened", event.agent
        case SocketClosed():
            return "", f"socket {event.conn} closed", f"code {event.code} by {event.by}"
        case FaultFired():
            return "", f"⚡ {event.what} {event.target}", ""
        case LinkChanged():
            return "", f"link {event.link} {event.change}", ""
        case StepStarted():
            return "step", event.title, ""
        case _:
            return None


def _frame_words(frame: Frame) -> tuple[str, str, str]:
    arrow = "→" if frame.direction == "la-to-cp" else "←"
    name = frame.type or "(no frame)"
    numbers = [f"{word} {value}" for word, value in (("seq", frame.seq or None), ("ack", frame.ack)) if value]
    if frame.chunk is not None:
        numbers.append(f"chunk {frame.chunk['index'] + 1}/{frame.chunk['total']}")
    for member in ("status", "ackSeq", "kind", "state", "outcome", "code", "errorCode"):
        value = frame.payload.get(member)
        if isinstance(value, str | int):
            numbers.append(f"{member} {value}")
    fate = "" if frame.fate == "passed" else f" [{frame.fate}]"
    return "", f"{arrow} {name}{fate}", f"{' · '.join(numbers)} · {frame.size} bytes"
