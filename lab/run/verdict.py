"""From a journal and what the driver holds to a verdict, and to the exit status that the shell sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lab.errors import ExitStatus, LabError, NotApplicable, RemoteError, SutFault, UsageError
from lab.journal.events import FaultFired, FaultPlanned, LinkChanged, StepEnded, StepStarted
from lab.journal.writer import Entry
from lab.laws import Judged, Status
from lab.laws.law import Violation
from lab.run.expectations import Held
from lab.run.figures import Figures
from lab.scenario.model import Scenario

SUT_PARTY = "local_agent"
"""The party whose broken promises are the SUT's; any other party is one of the lab's doubles."""


class Outcome(StrEnum):
    """The word of a verdict."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNKNOWN = "unknown"
    LAB_FAILED = "lab-failed"
    USAGE = "usage"
    INTERRUPTED = "interrupted"

    @property
    def exit_status(self) -> ExitStatus:
        """What the shell sees."""
        return _EXIT[self]


_EXIT = {
    Outcome.PASS: ExitStatus.HELD,
    Outcome.FAIL: ExitStatus.BROKEN,
    Outcome.UNKNOWN: ExitStatus.UNKNOWN,
    Outcome.LAB_FAILED: ExitStatus.LAB_FAILED,
    Outcome.USAGE: ExitStatus.USAGE,
    Outcome.INTERRUPTED: ExitStatus.INTERRUPTED,
}

_WORST_FIRST = (Outcome.LAB_FAILED, Outcome.FAIL, Outcome.UNKNOWN)


@dataclass(frozen=True)
class Finding:
    """One reason for a verdict that is no pass.

    `outcome` is what it makes of the run. `head` is what broke: a law's id, `step`, `expectation`, `must_judge`,
    `fault`, `requires`, or `lab`. `entries` are journal numbers, `line` the scenario's.
    """

    outcome: Outcome
    head: str
    sentence: str
    seen: str = ""
    due: str = ""
    near_miss: str = ""
    requirements: tuple[str, ...] = ()
    participant: str = ""
    entries: tuple[int, ...] = ()
    line: int = 0
    context: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a run came to."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    judged: tuple[Judged, ...]
    held: tuple[Held, ...]
    figures: Figures

    def count(self, *statuses: Status) -> int:
        """How many laws have one of these statuses."""
        return sum(one.status in statuses for one in self.judged)


def reach_verdict(
    entries: Sequence[Entry],
    scenario: Scenario,
    judged: Sequence[Judged],
    held: Sequence[Held],
    figures: Figures,
    stop: BaseException | None,
    interrupted: bool,
) -> Verdict:
    """Put everything together. `stop` is what ended the steps early, None when all were done."""
    early = stop is not None or interrupted
    findings = [
        *_stop_findings(entries, stop),
        *(finding for one in judged for finding in _law_findings(entries, one)),
    ]
    if not early:
        # What is not there because the run ended early is its consequence and no finding of its own.
        findings += _expectation_findings(held)
        findings += _must_judge_findings(scenario, judged)
        findings += _fault_findings(entries)
    return Verdict(_outcome(findings, stop, interrupted), tuple(findings), tuple(judged), tuple(held), figures)


def _outcome(findings: Sequence[Finding], stop: BaseException | None, interrupted: bool) -> Outcome:
    if interrupted:
        return Outcome.INTERRUPTED
    if isinstance(stop, UsageError):
        return Outcome.USAGE
    found = {finding.outcome for finding in findings}
    if _agent_broke_first(findings, stop):
        return Outcome.FAIL
    return next((outcome for outcome in _WORST_FIRST if outcome in found), Outcome.PASS)


def _agent_broke_first(findings: Sequence[Finding], stop: BaseException | None) -> bool:
    """Whether the agent broke a law before a double did, or before it died: what follows may be its doing.

    A defect or a failure of the lab itself still makes the run worth nothing.
    """
    lab_failed = [finding for finding in findings if finding.outcome is Outcome.LAB_FAILED]
    laws = [finding for finding in lab_failed if finding.entries]
    if len(laws) < len(lab_failed) and not isinstance(stop, SutFault):
        return False
    # A break stands when its last entry is there.
    mine = [max(finding.entries) for finding in findings if finding.outcome is Outcome.FAIL and finding.entries]
    return bool(mine) and all(min(mine) <= max(finding.entries) for finding in laws)


def _stop_findings(entries: Sequence[Entry], stop: BaseException | None) -> list[Finding]:
    if stop is None:
        return []
    step = next((entry for entry in reversed(entries) if isinstance(entry.event, StepEnded)), None)
    where = _step_at(entries, step.n) if step is not None else None
    line = where.line if where is not None else 0
    if isinstance(stop, RemoteError):
        title = where.title if where is not None else "step"
        return [Finding(Outcome.FAIL, "step", title, seen=str(stop), entries=(step.n,) if step else (), line=line)]
    if isinstance(stop, NotApplicable):
        return [Finding(Outcome.UNKNOWN, "requires", str(stop), line=line)]
    if isinstance(stop, LabError):
        outcome = Outcome.USAGE if isinstance(stop, UsageError) else Outcome.LAB_FAILED
        sentence, _, more = str(stop).partition("\n")
        return [Finding(outcome, "lab", sentence, seen=more, line=line)]
    return [Finding(Outcome.LAB_FAILED, "lab", f"a defect of the lab: {type(stop).__name__}", line=line)]


def _law_findings(entries: Sequence[Entry], judged: Judged) -> list[Finding]:
    if judged.status is not Status.BROKEN:
        return []
    outcome = Outcome.FAIL if judged.law.party == SUT_PARTY else Outcome.LAB_FAILED
    return [
        Finding(
            outcome,
            judged.law.id,
            judged.law.sentence,
            violation.seen,
            violation.due,
            violation.near_miss,
            judged.law.requirements,
            violation.participant,
            violation.entries,
            _line_at(entries, violation),
            _link_context(entries, violation),
        )
        for violation in judged.judgement.violations
    ]


def _line_at(entries: Sequence[Entry], violation: Violation) -> int:
    step = _step_at(entries, max(violation.entries)) if violation.entries else None
    return step.line if step is not None else 0


def _step_at(entries: Sequence[Entry], n: int) -> StepStarted | None:
    """The step during which entry `n` was recorded."""
    started = None
    for entry in entries[: n + 1]:
        if isinstance(entry.event, StepStarted):
            started = entry.event
    return started


def _link_context(entries: Sequence[Entry], violation: Violation) -> str:
    """The last change of a link before a violation, in words."""
    last = max(violation.entries, default=0)
    for entry in reversed(entries[: last + 1]):
        if isinstance(entry.event, LinkChanged):
            return f"link {entry.event.link} {entry.event.change} at {entry.n}"
    return ""


def _expectation_findings(held: Sequence[Held]) -> list[Finding]:
    findings = []
    for one in held:
        if one.held is True:
            continue
        outcome = Outcome.UNKNOWN if one.held is None else Outcome.FAIL
        path, line = one.expectation.path, one.expectation.line
        findings.append(Finding(outcome, "expectation", path, one.seen, one.due, line=line))
    return findings


def _must_judge_findings(scenario: Scenario, judged: Sequence[Judged]) -> list[Finding]:
    by_id = {one.law.id: one for one in judged}
    return [
        Finding(
            Outcome.UNKNOWN,
            "must_judge",
            f"law {law} had to be judged and was not",
            seen="nothing to judge" if by_id[law].status is Status.NOTHING else by_id[law].status.value,
            due="at least one case",
            line=scenario.must_judge_line,
        )
        for law in scenario.must_judge
        if by_id[law].status in (Status.NOTHING, Status.UNKNOWN, Status.EXCUSED)
    ]


def _fault_findings(entries: Sequence[Entry]) -> list[Finding]:
    fired = Counter(entry.event.fault for entry in entries if isinstance(entry.event, FaultFired))
    return [
        _unfired(entry.n, entry.event, fired[entry.event.fault])
        for entry in entries
        if isinstance(entry.event, FaultPlanned) and fired[entry.event.fault] < entry.event.times
    ]


def _unfired(n: int, planned: FaultPlanned, fired: int) -> Finding:
    sentence = f"fault {planned.fault} never fired"
    if fired:
        sentence = f"fault {planned.fault} fired {fired} of {planned.times} times"
    return Finding(
        Outcome.UNKNOWN,
        "fault",
        sentence,
        seen="no further moment came" if fired else "no such moment came",
        due=f"{planned.what} {planned.target}",
        entries=(n,),
        line=planned.line,
    )
