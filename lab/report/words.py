"""Findings in words, the same on a terminal, in JUnit and on a page."""

from __future__ import annotations

from collections.abc import Sequence

from lab.laws import Status
from lab.report.numbers import plural
from lab.run.figures import Figures
from lab.run.notices import Notice
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
    Outcome.LAB_FAILED: "the run could not be carried out or trusted: it says nothing of the agent",
    Outcome.USAGE: "the scenario or the command line is wrong",
    Outcome.INTERRUPTED: "stopped before its end: this is no pass",
}


REQUIREMENTS_SHOWN = 4
"""Requirement ids in a headline; `lab explain` has all of a law's."""


def headline(finding: Finding) -> str:
    """What broke, in a line."""
    named = finding.requirements[:REQUIREMENTS_SHOWN]
    left = len(finding.requirements) - len(named)
    numbers = f"   {' '.join(named)}{f' +{left}' if left > 0 else ''}" if named else ""
    who = f" ({finding.participant})" if finding.participant else ""
    return f"{finding.head}{who}   {finding.sentence}{numbers}"


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one broken promise of one participant together, each group where its first stands.

    Expectations, steps and the like stay by themselves: each is a promise of its own.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.head, finding.participant, finding.sentence), []).append(finding)
    return list(groups.values())


def details(finding: Finding, scenario_file: str) -> list[tuple[str, str]]:
    """The lines below a headline: a word and its text."""
    rows = [("seen", finding.seen), ("due", finding.due), ("near", finding.near_miss)]
    rows.append(("text", "\n".join(finding.content)))
    where = []
    if finding.entries:
        entries = ", ".join(str(entry) for entry in finding.entries)
        where.append(f"journal {entries}{f' ({finding.context})' if finding.context else ''}")
    if finding.line:
        where.append(f"{scenario_file}:{finding.line}")
    rows.append(("where", " · ".join(where)))
    return [(word, text) for word, text in rows if text]


def notice_line(notice: Notice) -> str:
    """A notice, with whom it is about and where it shows."""
    return f"{notice.participant} {notice.text} (journal {notice.entry})"


def laws_line(verdict: Verdict) -> str:
    """How many laws held, broke, or had nothing to judge."""
    parts = [
        (verdict.count(Status.HELD), "{} held"),
        (verdict.count(Status.BROKEN), "{} broken"),
        (verdict.count(Status.EXCUSED), "{} excused by a fault"),
        (verdict.count(Status.UNKNOWN), "{} unknown"),
        (verdict.count(Status.NOTHING), "{} had nothing to judge"),
    ]
    # A law that held in what could be told says nothing of the rest, and a reader must know that there is one.
    unsure = sum(one.judgement.unsure for one in verdict.judged if one.status is Status.HELD)
    parts.append((unsure, "{} case could not be told" if unsure == 1 else "{} cases could not be told"))
    return "laws: " + " · ".join(text.format(number) for number, text in parts if number)


def _partner_line(figures: Figures) -> str:
    again = f" ({figures.call_retries} again)" if figures.call_retries else ""
    events, streams = plural(figures.events, "event"), plural(figures.streams, "stream")
    parts = [f"{plural(figures.calls, 'call')}{again}", f"{events} in {streams}"]
    return " · ".join((*parts, plural(figures.store_executed, "tool run")))


def figures_line(figures: Figures) -> str:
    """The numbers of a run in a line."""
    if figures.calls:
        return _partner_line(figures)
    parts = [plural(figures.frames, "frame")]
    if figures.pages:
        events, pages = (plural(*one) for one in ((figures.events, "event"), (figures.pages, "page")))
        parts.append(f"{events} in {pages}")
    again = figures.retransmissions + figures.gateway_retransmissions
    parts.append(f"{again} sent again ({figures.retransmissions} by the agent)" if again else "0 sent again")
    if figures.resumes:
        parts.append(f"resumed in {figures.resume_seconds:.1f} s")
    return " · ".join(parts)
