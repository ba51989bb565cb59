"""From a journal and what the driver holds to a verdict, and to the exit status that the shell sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lab.errors import ExitStatus, LabError, NotApplicable, RemoteError, SutFault, UsageError
from lab.faults.plan import FAULT_KINDS, Fault
from lab.journal.events import FaultFired, FaultPlanned, Frame, LinkChanged, StepEnded, StepStarted
from lab.journal.partner_events import StoreRequest
from lab.journal.writer import Entry
from lab.laws import Judged, Status
from lab.laws.law import Violation
from lab.run.expectations import Held
from lab.run.figures import Figures
from lab.run.notices import Notice, notices_of
from lab.run.places import NO_PLACES, Places, content_rows
from lab.scenario.model import FaultStep, InjectStep, Scenario
from lab.scenario.partner_model import MisbehaviourSpec, StoreStep

SUT_PARTIES = ("local_agent", "partner_api")
"""The parties whose broken promises are the SUT's; any other party is one of the lab's doubles."""


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
    `fault`, `requires`, or `lab`. `entries` are journal numbers, `line` the scenario's. `content` says of texts that
    the entries tell by digest where they are written.
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
    content: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What a run came to."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    judged: tuple[Judged, ...]
    held: tuple[Held, ...]
    figures: Figures
    notices: tuple[Notice, ...] = ()
    """What a reader must know although no promise is about it; they make no outcome."""

    @property
    def not_applicable(self) -> bool:
        """Whether the scenario needs what the program under test, or a double of the lab in its place, has not."""
        return self.outcome is Outcome.UNKNOWN and any(finding.head == "requires" for finding in self.findings)

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
    places: Places = NO_PLACES,
) -> Verdict:
    """Put everything together. `stop` is what ended the steps early, None when all were done."""
    early = stop is not None or interrupted
    broken = [finding for one in judged for finding in _law_findings(entries, one)]
    findings = _first_break_first([*_stop_findings(entries, scenario, stop), *broken])
    if not early:
        # What is not there because the run ended early is its consequence and no finding of its own.
        findings += _expectation_findings(held)
        findings += _must_judge_findings(scenario, judged)
        findings += _fault_findings(entries, scenario)
        findings += _misbehaviour_findings(entries, scenario)
    return Verdict(
        _outcome(findings, stop, interrupted),
        tuple(replace(finding, content=content_rows(entries, finding.entries, places)) for finding in findings),
        tuple(judged),
        tuple(held),
        figures,
        notices_of(entries),
    )


def _first_break_first(findings: Sequence[Finding]) -> list[Finding]:
    """In the order in which the journal completes them: what broke first is likely the cause of what follows it.

    The lab's own words stand before all, since they have no entry and explain the most.
    """
    last = max((max(finding.entries, default=0) for finding in findings), default=0)

    def key(finding: Finding) -> tuple[bool, int]:
        return finding.head not in ("lab", "requires"), max(finding.entries, default=last + 1)

    return sorted(findings, key=key)


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


def _stop_findings(entries: Sequence[Entry], scenario: Scenario, stop: BaseException | None) -> list[Finding]:
    if stop is None:
        return []
    step = next((entry for entry in reversed(entries) if isinstance(entry.event, StepEnded)), None)
    where = _step_at(entries, step.n) if step is not None else None
    line = where.line if where is not None else 0
    if isinstance(stop, RemoteError):
        title = where.title if where is not None else "step"
        # A step may wait in vain for what a fault was to bring about.
        near = "\n".join(f"{one.sentence}: {one.due}; {one.near_miss}" for one in _fault_findings(entries, scenario))
        at = (step.n,) if step is not None else ()
        return [Finding(Outcome.FAIL, "step", title, seen=str(stop), near_miss=near, entries=at, line=line)]
    if isinstance(stop, NotApplicable):
        return [Finding(Outcome.UNKNOWN, "requires", str(stop), line=line)]
    if isinstance(stop, LabError):
        outcome = Outcome.USAGE if isinstance(stop, UsageError) else Outcome.LAB_FAILED
        sentence, _, more = str(stop).partition("\n")
        return [Finding(outcome, "lab", sentence, seen=more or _ended_before(stop), line=line)]
    return [Finding(Outcome.LAB_FAILED, "lab", f"a defect of the lab: {type(stop).__name__}", line=line)]


def _ended_before(stop: LabError) -> str:
    """What had ended the steps when ending the run failed as well."""
    before = stop.__context__
    if not isinstance(before, LabError) or stop.__suppress_context__ or str(before) in str(stop):
        return ""
    return f"the steps had ended before: {str(before).partition(chr(10))[0]}"


def _law_findings(entries: Sequence[Entry], judged: Judged) -> list[Finding]:
    if judged.status is not Status.BROKEN:
        return []
    outcome = Outcome.FAIL if judged.law.party in SUT_PARTIES else Outcome.LAB_FAILED
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


_NOT_JUDGED = {
    Status.NOTHING: "nothing to judge",
    Status.UNKNOWN: "cases, none of which could be told",
    Status.EXCUSED: "excused by a fault of this scenario",
}


def _must_judge_findings(scenario: Scenario, judged: Sequence[Judged]) -> list[Finding]:
    by_id = {one.law.id: one for one in judged}
    return [
        Finding(
            Outcome.UNKNOWN,
            "must_judge",
            f"law {law} had to be judged and was not",
            seen=_NOT_JUDGED[by_id[law].status],
            due=f"at least one case of: {by_id[law].law.sentence}",
            line=scenario.must_judge_line,
        )
        for law in scenario.must_judge
        if by_id[law].status in _NOT_JUDGED
    ]


def _fault_findings(entries: Sequence[Entry], scenario: Scenario) -> list[Finding]:
    fired = Counter(entry.event.fault for entry in entries if isinstance(entry.event, FaultFired))
    plan = {step.fault.id: step.fault for step in scenario.steps if isinstance(step, FaultStep | InjectStep)}
    return [
        _unfired(entry, entry.event, fired[entry.event.fault], _missed(entries[entry.n :], plan, scenario, entry.event))
        for entry in entries
        if isinstance(entry.event, FaultPlanned) and fired[entry.event.fault] < entry.event.times
    ]


def _misbehaviour_findings(entries: Sequence[Entry], scenario: Scenario) -> list[Finding]:
    """What the store was told to do wrong and had no occasion to."""
    if scenario.partner is None:
        return []
    requests = [(entry.n, entry.event) for entry in entries if isinstance(entry.event, StoreRequest)]
    rules = [*scenario.partner.store.misbehave]
    rules += [rule for step in scenario.steps if isinstance(step, StoreStep) for rule in step.misbehave or ()]
    return [_never_wrong(rule, requests) for rule in rules if not any(_met(rule, event) for _, event in requests)]


def _met(rule: MisbehaviourSpec, event: StoreRequest) -> bool:
    return event.misbehaved == rule.do and rule.tool in (None, event.tool) and rule.method in (None, event.method)


def _never_wrong(rule: MisbehaviourSpec, requests: Sequence[tuple[int, StoreRequest]]) -> Finding:
    asked = Counter(event.tool or event.method or event.http for _, event in requests)
    came = ", ".join(f"{name} {number} times" for name, number in asked.items()) or "nothing"
    which = rule.tool or rule.method or "request"
    due = f"{rule.do} at {f'{which} #{rule.nth}' if rule.nth else f'each {which}'}"
    sentence = f"the store had no occasion for {rule.do}"
    return Finding(Outcome.UNKNOWN, "fault", sentence, f"the store got: {came}", due, line=rule.line)


def _missed(after: Sequence[Entry], plan: Mapping[str, Fault], scenario: Scenario, planned: FaultPlanned) -> str:
    """How many frames came that a fault waits for, so that a wrong number or sender in the scenario is seen."""
    fault = plan.get(planned.fault)
    if fault is None or fault.anchor is None:
        return ""
    anchor = fault.anchor
    frames = [entry.event for entry in after if isinstance(entry.event, Frame) and not entry.event.by_lab]
    types = {frame.msg_id: frame.type for frame in frames}
    came = [
        frame
        for frame in frames
        if frame.type == anchor.type and anchor.of in (None, types.get(frame.payload.get("ackMsgId")))
    ]
    way = "la-to-cp" if anchor.sender in scenario.local_agents else "cp-to-la"
    this_way = sum(frame.direction == way for frame in came)
    name = f"{anchor.type} of {anchor.of}" if anchor.of else anchor.type
    return f"{name} after it was armed: {this_way} that way, {len(came) - this_way} the other way"


def _unfired_words(planned: FaultPlanned, fired: int, *, anchored: bool) -> str:
    if not FAULT_KINDS[planned.what].touches:
        return "no further moment came" if fired else "no such moment came"
    nothing = "it touched no byte and no connection"
    return f"no such moment came, or {nothing}" if anchored else nothing


def _unfired(entry: Entry, planned: FaultPlanned, fired: int, missed: str) -> Finding:
    sentence = f"fault {planned.fault} never fired"
    if fired:
        sentence = f"fault {planned.fault} fired {fired} of {planned.times} times"
    return Finding(
        Outcome.UNKNOWN,
        "fault",
        sentence,
        seen=_unfired_words(planned, fired, anchored=bool(missed)),
        due=f"{planned.what} {planned.target}",
        near_miss=missed,
        entries=(entry.n,),
        line=planned.line,
    )
