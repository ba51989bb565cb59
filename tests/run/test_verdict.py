"""Every outcome, their order, and what a finding says."""

from __future__ import annotations

import pytest

from lab.errors import EnvironmentFault, ExitStatus, MisuseError, SutFault, UsageError
from lab.faults.plan import Fault, FrameAnchor
from lab.journal.events import Agent2Line, FaultFired, FaultPlanned, LinkChanged, StepEnded, StepStarted
from lab.journal.writer import Entry
from lab.laws.law import Status
from lab.run.step_course import StepFailed
from lab.run.verdict import Finding, Outcome, Verdict
from lab.scenario.model import FaultStep, Scenario
from tests.run.made import STARTED, entries, frame, held, judged, scenario, step_entries, verdict, violation

BROKEN = judged(Status.BROKEN, violation("some-law", "local_agent", 2))
OWN = judged(Status.BROKEN, violation("gateway-law", "gateway", 1), law="gateway-law", party="gateway")
HELD = judged(Status.HELD, law="held-law")


def only(reached: Verdict) -> Finding:
    (finding,) = reached.findings
    return finding


def test_nothing_found_is_a_pass() -> None:
    """Laws that had nothing to judge are no reason against it."""
    reached = verdict(laws=[HELD, judged(Status.NOTHING), judged(Status.EXCUSED), judged(Status.UNKNOWN)])
    assert (reached.outcome, reached.findings) == (Outcome.PASS, ())
    assert reached.count(Status.HELD, Status.NOTHING) == 2


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.PASS, 0),
        (Outcome.FAIL, 1),
        (Outcome.USAGE, 2),
        (Outcome.LAB_FAILED, 3),
        (Outcome.UNKNOWN, 4),
        (Outcome.INTERRUPTED, 130),
    ],
)
def test_each_outcome_has_its_exit_status(outcome: Outcome, status: int) -> None:
    """The numbers that the README promises."""
    assert outcome.exit_status == ExitStatus(status)


def test_the_worst_of_what_was_found_decides() -> None:
    """The lab's own fault before a broken promise before the unknown."""
    unknown, broken = held(None), held(False)
    assert verdict(expectations=[unknown]).outcome is Outcome.UNKNOWN
    assert verdict(expectations=[unknown, broken]).outcome is Outcome.FAIL
    assert verdict(laws=[OWN], expectations=[unknown, broken]).outcome is Outcome.LAB_FAILED
    assert verdict(laws=[BROKEN], stop=UsageError("wrong")).outcome is Outcome.USAGE
    assert verdict(laws=[OWN, BROKEN], stop=UsageError("wrong"), interrupted=True).outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize(
    ("stop", "outcome", "head"),
    [
        (StepFailed("not within 1 s: it did not come"), Outcome.FAIL, "step"),
        (SutFault("it died"), Outcome.LAB_FAILED, "lab"),
        (EnvironmentFault("no port"), Outcome.LAB_FAILED, "lab"),
        (MisuseError("used twice"), Outcome.LAB_FAILED, "lab"),
        (UsageError("a blank is open"), Outcome.USAGE, "lab"),
        (ValueError("the prompt"), Outcome.LAB_FAILED, "lab"),
    ],
)
def test_what_ended_the_steps_early(stop: Exception, outcome: Outcome, head: str) -> None:
    """Each kind of error has its outcome; the text of a defect is not told, it may hold anything."""
    reached = verdict(step_entries(), stop=stop)
    finding = only(reached)
    assert (reached.outcome, finding.outcome, finding.head, finding.line) == (outcome, outcome, head, 12)
    told = finding.sentence + finding.seen
    assert (str(stop) in told) is not isinstance(stop, ValueError)


def test_an_error_of_several_lines_has_a_headline() -> None:
    """The last words of a program stand below it."""
    finding = only(verdict(step_entries(), stop=SutFault("it died; its last lines:\n  one\n  two")))
    assert (finding.sentence, finding.seen) == ("it died; its last lines:", "  one\n  two")


def test_what_had_ended_the_steps_is_told_where_ending_failed_too() -> None:
    """Once, though the second is raised while the first is."""

    def ended(first: Exception, second: Exception) -> str:
        try:
            try:
                raise first
            finally:
                raise second
        except EnvironmentFault as stop:
            return only(verdict(step_entries(), stop=stop)).seen

    left = EnvironmentFault("it hangs. These are left: a")
    assert ended(SutFault("it died\nlast words"), left) == "the steps had ended before: it died"
    assert ended(EnvironmentFault("it hangs."), EnvironmentFault("it hangs. These are left: a")) == ""
    assert ended(ValueError("secret"), EnvironmentFault("it hangs")) == ""


def test_a_stop_before_any_step_has_no_place() -> None:
    """Nothing had begun."""
    finding = only(verdict(stop=StepFailed("too late")))
    assert (finding.line, finding.entries, finding.sentence) == (0, (), "step")


def test_an_early_end_explains_what_is_missing() -> None:
    """Expectations, laws and faults that had no chance are no findings of their own."""
    planned = entries(FaultPlanned("f", "drop", "ack #1 from gateway", 9))
    reached = verdict(
        planned,
        [judged(Status.NOTHING, law="never")],
        [held(None), held(False)],
        StepFailed("too late"),
        of=scenario(must_judge=("never",)),
    )
    assert [finding.head for finding in reached.findings] == ["step"]
    assert len(reached.held) == 2
    interrupted = verdict(planned, [judged(Status.NOTHING)], [held(None)], interrupted=True)
    assert interrupted.findings == ()


def test_a_broken_law_names_all_there_is() -> None:
    """Law, sentence, requirements, participant, entries, the scenario's line, and the link's last change."""
    journal = entries(
        STARTED,
        StepStarted(0, "wait", "local agent ready", 11),
        LinkChanged("gateway", "healed"),
        StepEnded(0, "done"),
        StepStarted(1, "stream", "stream q1 to its end", 13),
        LinkChanged("gateway", "cut"),
    )
    finding = only(verdict(journal, [judged(Status.BROKEN, violation("some-law", "local_agent", 3))]))
    assert finding == Finding(
        Outcome.FAIL,
        "some-law",
        "The promise of some-law",
        "seen this",
        "due that",
        "the nearest miss",
        ("SQ-020",),
        "local_agent",
        (3,),
        11,
        "link gateway healed at 2",
    )


def test_a_broken_law_without_entries_has_no_place() -> None:
    """It is told all the same."""
    finding = only(verdict(step_entries(), [judged(Status.BROKEN, violation())]))
    assert (finding.entries, finding.line, finding.context) == ((), 0, "")


def test_each_violation_is_a_finding_and_an_excused_law_is_none() -> None:
    """An order voids a law for the run."""
    twice = judged(Status.BROKEN, violation(), violation())
    assert len(verdict(laws=[twice, judged(Status.EXCUSED, violation())]).findings) == 2


def test_a_law_broken_by_a_double_is_the_labs_fault() -> None:
    """Nobody ordered it, so it says nothing about the agent."""
    finding = only(verdict(laws=[OWN]))
    assert (finding.outcome, finding.head) == (Outcome.LAB_FAILED, "gateway-law")


@pytest.mark.parametrize(
    ("status", "missed"),
    [
        (Status.NOTHING, True),
        (Status.UNKNOWN, True),
        (Status.EXCUSED, True),
        (Status.HELD, False),
    ],
)
def test_a_law_that_had_to_be_judged(status: Status, missed: bool) -> None:
    """Anything but a judgement makes the run unknown."""
    reached = verdict(laws=[judged(status, law="due")], of=scenario(must_judge=("due",), must_judge_line=40))
    assert reached.outcome is (Outcome.UNKNOWN if missed else Outcome.PASS)
    assert [(finding.head, finding.line) for finding in reached.findings] == [("must_judge", 40)] * missed
    assert [finding.due for finding in reached.findings] == ["at least one case of: The promise of due"] * missed


def test_a_planned_fault_that_never_fired() -> None:
    """It is named with its target and line; one that fired is not."""
    journal = entries(
        FaultPlanned("a", "drop", "ack #1 from gateway", 9),
        FaultPlanned("b", "cut", "link gateway", 10),
        FaultFired("b", "cut", "link gateway"),
    )
    reached = verdict(journal)
    finding = only(reached)
    assert reached.outcome is Outcome.UNKNOWN
    assert (finding.head, finding.sentence, finding.due, finding.line) == (
        "fault",
        "fault a never fired",
        "drop ack #1 from gateway",
        9,
    )


def waiting(anchor: FrameAnchor) -> Scenario:
    """A scenario that has a drop wait for a frame."""
    return scenario((FaultStep(9, None, Fault("a", "drop", anchor=anchor, line=9)),))


@pytest.mark.parametrize(
    ("anchor", "near"),
    [
        (FrameAnchor("ack", "gateway", 9), "ack after it was armed: 2 that way, 1 the other way"),
        (FrameAnchor("ack", "local_agent"), "ack after it was armed: 1 that way, 2 the other way"),
        (
            FrameAnchor("ack", "gateway", 9, of="job.result"),
            "ack of job.result after it was armed: 1 that way, 0 the other way",
        ),
        (FrameAnchor("heartbeat", "local_agent"), "heartbeat after it was armed: 0 that way, 0 the other way"),
    ],
)
def test_what_came_in_place_of_the_frame_that_a_fault_waits_for(anchor: FrameAnchor, near: str) -> None:
    """Copies that a fault made, and what came before it was armed, are not counted."""
    journal = entries(
        frame(type="ack", direction="cp-to-la"),
        FaultPlanned("a", "drop", anchor.words(), 9),
        frame(type="job.result", msg_id="m1"),
        frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m1"}),
        frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m0"}),
        frame(type="ack", direction="cp-to-la", fate="copied"),
        frame(type="ack"),
    )
    assert only(verdict(journal, of=waiting(anchor))).near_miss == near


def test_a_step_that_failed_names_the_faults_that_never_fired() -> None:
    """It may have waited for what one of them was to bring about."""
    journal = [*step_entries()[:-1], Entry(3, 1.5, "faults", FaultPlanned("a", "drop", "ack #9 from gateway", 9))]
    made = waiting(FrameAnchor("ack", "gateway", 9))
    near = "fault a never fired: drop ack #9 from gateway; ack after it was armed: 0 that way, 0 the other way"
    finding = only(verdict(journal, stop=StepFailed("too late"), of=made))
    assert (finding.head, finding.near_miss) == ("step", near)
    fired = [*journal, Entry(4, 2, "faults", FaultFired("a", "drop", "ack"))]
    assert only(verdict(fired, stop=StepFailed("too late"), of=made)).near_miss == ""


def test_what_broke_first_is_told_first() -> None:
    """By the entry that completes each break; the lab's own words before, what has no entry behind."""
    laws = [
        judged(Status.BROKEN, violation("late", "local_agent", 1, 9), law="late"),
        judged(Status.BROKEN, violation("nowhere", "local_agent"), law="nowhere"),
        judged(Status.BROKEN, violation("early", "local_agent", 3), law="early"),
    ]
    failed = verdict(step_entries(), laws, [held(False)], StepFailed("too late"))
    assert [finding.head for finding in failed.findings] == ["step", "early", "late", "nowhere"]
    died = verdict(step_entries(), laws, stop=SutFault("it died"))
    assert [finding.head for finding in died.findings] == ["lab", "early", "late", "nowhere"]
    whole = verdict(step_entries(), laws, [held(False)])
    assert [finding.head for finding in whole.findings] == ["early", "late", "nowhere", "expectation"]


def test_content_that_a_finding_tells_by_digest_has_its_place() -> None:
    """Of the finding's own entries."""
    journal = entries(Agent2Line("j", 0, "0" * 64, 9, "a.yaml:6"), Agent2Line("j", 1, "1" * 64, 9, "a.yaml:7"))
    finding = only(verdict(journal, [judged(Status.BROKEN, violation("some-law", "local_agent", 1))]))
    assert finding.content == ("agent2's line 1 is a.yaml:7",)


def test_a_planned_fault_that_did_not_fire_often_enough() -> None:
    """How often it did, of how often it had to."""
    firings = [FaultFired("a", "drop", "job.result")] * 3
    finding = only(verdict(entries(FaultPlanned("a", "drop", "job.result", 9, times=4), *firings)))
    assert (finding.outcome, finding.sentence) == (Outcome.UNKNOWN, "fault a fired 3 of 4 times")
    assert verdict(entries(FaultPlanned("a", "drop", "job.result", 9, times=3), *firings)).findings == ()


def test_expectations_that_hold_are_no_findings() -> None:
    """The others are, with their line."""
    reached = verdict(expectations=[held(True), held(False, "job.q1.runs", 31), held(None, "job.q1.acks", 32)])
    assert [(one.sentence, one.outcome, one.line) for one in reached.findings] == [
        ("job.q1.runs", Outcome.FAIL, 31),
        ("job.q1.acks", Outcome.UNKNOWN, 32),
    ]


@pytest.mark.parametrize(
    ("mine", "theirs", "stop", "outcome"),
    [
        (5, 9, None, Outcome.FAIL),
        (9, 5, None, Outcome.LAB_FAILED),
        (5, None, SutFault("it died"), Outcome.FAIL),
        (None, None, SutFault("it died"), Outcome.LAB_FAILED),
        (5, None, EnvironmentFault("no room"), Outcome.LAB_FAILED),
        (5, 9, ValueError("a defect"), Outcome.LAB_FAILED),
    ],
)
def test_who_broke_first_decides_whose_failure_it_is(
    mine: int | None, theirs: int | None, stop: Exception | None, outcome: Outcome
) -> None:
    """What a double does after the agent broke a law may be the agent's doing; a failure of the lab itself is not."""
    laws = []
    if mine is not None:
        laws.append(judged(Status.BROKEN, violation("some-law", "local_agent", mine)))
    if theirs is not None:
        broken = violation("gateway-law", "gateway", theirs)
        laws.append(judged(Status.BROKEN, broken, law="gateway-law", party="gateway"))
    assert verdict(laws=laws, stop=stop).outcome is outcome


def test_a_break_stands_when_its_last_entry_is_there() -> None:
    """What a double did early is no break until what was due of it did not come."""
    mine = judged(Status.BROKEN, violation("some-law", "local_agent", 6))
    theirs = judged(Status.BROKEN, violation("gateway-law", "gateway", 3, 9), law="gateway-law", party="gateway")
    assert verdict(laws=[mine, theirs]).outcome is Outcome.FAIL
