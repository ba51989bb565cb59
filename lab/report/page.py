"""The page that a run leaves: `report.html`, one file without scripts, made from its verdict and journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lab.journal.events import (
    Agent2Job,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    FaultFired,
    Frame,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    StepEnded,
    StepStarted,
    SutChanged,
    TextMessage,
)
from lab.journal.writer import Entry
from lab.report.event_words import LEGEND
from lab.report.moments import Moments
from lab.report.target import target_of_run
from lab.report.words import HEADS, MEANINGS, details, figures_line, headline, laws_line, notice_line
from lab.run.runner import RunResult
from lab.run.verdict import Finding

ROWS_SHOWN = 4000
"""Rows of the timeline; a longer journal is cut, and the page says so."""
CASES_SHOWN = 50
"""Cases of one broken promise; `result.json` has all."""
TIMELINE = (
    *(Frame, TextMessage, BodyAnswered, SessionChanged, SocketOpened, SocketClosed, SocketRefused),
    *(Agent2Request, Agent2Job, Agent2Stream, SutChanged, FaultFired, LinkChanged, StepStarted),
)
"""Events that have a row; any other has one when a finding names it."""


@dataclass(frozen=True)
class Row:
    """One line of the timeline. `lane` is who it belongs to, `marked` that a finding names it."""

    n: int
    t: float
    lane: str
    text: str
    note: str
    marked: bool


@dataclass(frozen=True)
class Case:
    """One break of a promise: its details, and the moments around it."""

    details: Sequence[tuple[str, str]]
    moments: Sequence[str]


@dataclass(frozen=True)
class Promise:
    """A broken promise with its cases; `hidden` are too many to show."""

    title: str
    outcome: str
    cases: Sequence[Case]
    hidden: int


def page_text(result: RunResult) -> str:
    """The whole page."""
    environment = Environment(
        loader=PackageLoader("lab.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    verdict = result.verdict
    marked = frozenset(number for finding in verdict.findings for number in finding.entries)
    moments = Moments(result.entries)
    target = target_of_run(result.entries)
    rows = _rows(result.entries, marked, moments)
    return environment.get_template("report.html.j2").render(
        result=result,
        verdict=verdict,
        head=HEADS[verdict.outcome],
        meaning=MEANINGS[verdict.outcome],
        laws_line=laws_line(verdict),
        figures_line=figures_line(verdict.figures),
        target_line=target.line() if target else "",
        promises=_promises(verdict.findings, str(result.scenario.file), moments),
        notices=[notice_line(notice) for notice in verdict.notices],
        legend=LEGEND,
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


def _rows(entries: Sequence[Entry], marked: frozenset[int], moments: Moments) -> list[Row]:
    rows = []
    for entry in entries:
        if entry.n not in marked and not isinstance(entry.event, TIMELINE):
            continue
        words = moments.words(entry)
        lane = "step" if isinstance(entry.event, StepStarted) else entry.by
        rows.append(Row(entry.n, entry.t, lane, words.text, words.note, entry.n in marked))
    return rows


def _promises(findings: Sequence[Finding], file: str, moments: Moments) -> list[Promise]:
    """Each broken promise once, with all its cases."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.head, finding.sentence), []).append(finding)
    return [_promise(group, file, moments) for group in groups.values()]


def _promise(group: Sequence[Finding], file: str, moments: Moments) -> Promise:
    alone = len({finding.participant for finding in group}) == 1
    title = headline(group[0] if alone else replace(group[0], participant=""))
    cases = []
    for finding in group[:CASES_SHOWN]:
        rows = details(finding, file)
        if not alone:
            rows.insert(0, ("who", finding.participant))
        cases.append(Case(rows, [moment.line() for moment in moments.around(finding)]))
    return Promise(title, group[0].outcome.value, cases, max(0, len(group) - CASES_SHOWN))
