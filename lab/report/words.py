"""Findings in words, the same on a terminal, in JUnit and on a page."""

from __future__ import annotations

from lab.laws import Status
from lab.run.figures import Figures
from lab.run.verdict import Finding, Outcome, Verdict

HEADS = {
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.UNKNOWN: "UNKNOWN",
    Outcome.LAB_FAILED: "LAB FAILED",
    Outcome.USAGE: "USAGE",
    Outcome.INTERRUPTED: "INTERRUPTED",
}

MEANINGS = {
    Outcome.PASS: "all promises held",
    Outcome.FAIL: "a promise broke",
    Outcome.UNKNOWN: "nothing broke, but something that had to happen or be judged did not: this is no pass",
    Outcome.LAB_FAILED: "the lab or its environment failed: this says nothing about the agent",
    Outcome.USAGE: "the scenario or the command line is wrong",
    Outcome.INTERRUPTED: "stopped before its end: this is no pass",
}


def headline(finding: Finding) -> str:
    """What broke, in a line."""
    numbers = f"   {' '.join(finding.requirements)}" if finding.requirements else ""
    who = f" ({finding.participant})" if finding.participant else ""
    return f"{finding.head}{who}   {finding.sentence}{numbers}"


def details(finding: Finding, scenario_file: str) -> list[tuple[str, str]]:
    """The lines below a headline: a word and its text."""
    rows = [("seen", finding.seen), ("due", finding.due), ("near", finding.near_miss)]
    where = []
    if finding.entries:
        entries = ", ".join(str(entry) for entry in finding.entries)
        where.append(f"journal {entries}{f' ({finding.context})' if finding.context else ''}")
    if finding.line:
        where.append(f"{scenario_file}:{finding.line}")
    rows.append(("where", " · ".join(where)))
    return [(word, text) for word, text in rows if text]


def laws_line(verdict: Verdict) -> str:
    """How many laws held, broke, or had nothing to judge."""
    parts = [
        (verdict.count(Status.HELD), "{} held"),
        (verdict.count(Status.BROKEN), "{} broken"),
        (verdict.count(Status.EXCUSED), "{} excused by a fault"),
        (verdict.count(Status.UNKNOWN), "{} could not be told"),
        (verdict.count(Status.NOTHING), "{} had nothing to judge"),
    ]
    return "laws: " + " · ".join(text.format(number) for number, text in parts if number)


def figures_line(figures: Figures) -> str:
    """The numbers of a run in a line."""
    parts = [f"{figures.frames} frames"]
    if figures.pages:
        parts.append(f"{figures.events} events in {figures.pages} pages")
    again = figures.retransmissions + figures.gateway_retransmissions
    parts.append(f"{again} sent again ({figures.retransmissions} by the agent)" if again else "0 sent again")
    if figures.resumes:
        parts.append(f"resumed in {figures.resume_seconds:.1f} s")
    return " · ".join(parts)
