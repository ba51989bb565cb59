from __future__ import annotations

import hashlib
from itertools import product

import pytest

from lab.agent2.beats import FrameType
from lab.agent2.job import ENDS, TRANSITIONS, Job, JobState, MetadataFrame, Turn, next_state
from lab.agent2.script import Script
from lab.errors import MisuseError
from lab.journal.events import Agent2Frame, Agent2Job, Agent2Line, digest
from tests.agent2.written import NO_CHANGE, script_of


def job_of(script: Script) -> Job:
    return Job("j1", "fix", script, "tenant-1", {"key": "s3cret"}, now=100.0)


def frames_of(job: Job) -> list[tuple[str, object]]:
    return [(frame.type.value, frame.payload) for frame in job.frames.items]


@pytest.mark.parametrize(("state", "turn"), list(product(JobState, Turn)))
def test_the_table_is_all_there_is(state: JobState, turn: Turn) -> None:
    if (state, turn) in TRANSITIONS:
        assert next_state(state, turn) is TRANSITIONS[state, turn]
    else:
        with pytest.raises(MisuseError, match=f"{state} cannot {turn}"):
            next_state(state, turn)


def test_no_state_leads_out_of_an_end() -> None:
    assert not [state for state, _ in TRANSITIONS if state in ENDS]


def test_beats_come_at_their_times() -> None:
    job = job_of(script_of('- text: "a"', "- wait: 2s", '- text: "b"', "- wait: 1s", NO_CHANGE))
    seen = []
    while job.due is not None:
        now = job.due
        job.handle_timeout(now)
        seen.append((now, len(job.lines.items), job.state))
    assert seen == [(100.0, 1, JobState.RUNNING), (102.0, 2, JobState.RUNNING), (103.0, 2, JobState.DONE)]


def test_nothing_happens_before_it_is_due() -> None:
    job = job_of(script_of(NO_CHANGE))
    assert job.handle_timeout(99.9) == []
    assert job.state is JobState.ACCEPTED


def test_a_late_timer_does_not_stretch_the_script() -> None:
    job = job_of(script_of("- wait: 1s", '- text: "a"', "- wait: 1s", '- text: "b"', "- wait: 1s", NO_CHANGE))
    job.handle_timeout(100.0)
    job.handle_timeout(101.7)
    assert (len(job.lines.items), job.due) == (1, 102.0)


@pytest.mark.req("A2-040")
def test_a_frame_has_its_form() -> None:
    frame = MetadataFrame(FrameType.JOB_EVENT, 1, "t", "j", 1.5, {"state": "running"})
    assert frame.to_json(1_000) == {
        "type": "job.event",
        "seq": 1,
        "tenantId": "t",
        "jobId": "j",
        "ts": "1970-01-01T00:00:02.500Z",
        "payload": {"state": "running"},
    }
    audit = MetadataFrame(FrameType.AUDIT_EVENT, 2, "t", "j", 0.0, {"code": "c"})
    assert audit.to_json(0)["payload"] == {"code": "c", "at": "1970-01-01T00:00:00.000Z"}


@pytest.mark.req("A2-040")
def test_frames_count_from_one_and_name_tenant_and_job() -> None:
    job = job_of(script_of("- event: { phase: plan }", "- audit: { code: c }", NO_CHANGE))
    job.handle_timeout(100.0)
    assert [frame.seq for frame in job.frames.items] == [1, 2, 3, 4]
    assert {(frame.tenant_id, frame.job_id, frame.at) for frame in job.frames.items} == {("tenant-1", "j1", 100.0)}


@pytest.mark.req("TY-014")
def test_the_result_comes_before_the_terminal_event() -> None:
    job = job_of(script_of(NO_CHANGE))
    events = job.handle_timeout(100.0)
    assert frames_of(job) == [
        ("job.result", {"outcome": "no_change"}),
        ("job.event", {"state": "done", "terminal": True}),
    ]
    assert events == [
        Agent2Job("j1", "running"),
        Agent2Frame("j1", 1, "job.result", {"outcome": "no_change"}),
        Agent2Frame("j1", 2, "job.event", {"state": "done", "terminal": True}),
        Agent2Job("j1", "done", result={"outcome": "no_change"}),
    ]


@pytest.mark.parametrize(
    ("step", "frames", "state", "outcome"),
    [
        ("end: failed", [("job.event", {"state": "failed", "terminal": True})], JobState.FAILED, None),
        ("end: cancelled", [("job.event", {"state": "cancelled", "terminal": True})], JobState.CANCELLED, None),
        ("end: done", [("job.event", {"state": "done", "terminal": True})], JobState.DONE, None),
        ("end: silent", [], JobState.FAILED, None),
        (
            "result: { outcome: failed, errorCode: llm }",
            [
                ("job.result", {"outcome": "failed", "errorCode": "llm"}),
                ("job.event", {"state": "failed", "terminal": True}),
            ],
            JobState.FAILED,
            "failed",
        ),
    ],
)
def test_every_end_closes_both_streams(step: str, frames: list[object], state: JobState, outcome: str | None) -> None:
    job = job_of(script_of(f"- {step}"))
    job.handle_timeout(100.0)
    assert frames_of(job) == frames
    assert (job.state, job.outcome, job.over, job.due) == (state, outcome, True, None)
    assert job.frames.over
    assert job.lines.over


def test_a_line_is_journalled_without_its_content() -> None:
    job = job_of(script_of('- text: "é"', '- answer: "{canary:key}!"', NO_CHANGE))
    events = [event for event in job.handle_timeout(100.0) if isinstance(event, Agent2Line)]
    text, answer = '{"type":"text","text":"é"}', '{"type":"answer","text":"s3cret!"}'
    assert job.lines.items == [text, answer]
    assert events == [
        Agent2Line("j1", 0, hashlib.sha256(text.encode()).hexdigest(), len(text), "test.yaml:4"),
        Agent2Line(
            "j1",
            1,
            hashlib.sha256(answer.encode()).hexdigest(),
            len(answer),
            "test.yaml:5",
            secret=True,
            role="assistant",
            text=digest("answer", "s3cret!"),
        ),
    ]
    assert "s3cret" not in repr(events)


@pytest.mark.req("A2-050")
@pytest.mark.parametrize("started", [False, True])
def test_a_cancelled_job_reports_it_itself_and_closes(started: bool) -> None:
    job = job_of(script_of("- wait: 9s", "- done", NO_CHANGE))
    if started:
        job.handle_timeout(100.0)
    events = job.cancel(101.0)
    assert [event.state for event in events if isinstance(event, Agent2Job)] == ["cancelling", "cancelled"]
    assert frames_of(job) == [
        ("job.result", {"outcome": "cancelled"}),
        ("job.event", {"state": "cancelled", "terminal": True}),
    ]
    assert job.lines.over
    assert job.due is None
    assert job.cancel(102.0) == []


def test_a_job_waits_for_its_approval_and_goes_on() -> None:
    job = job_of(script_of("- approval: { id: ap }", "- wait: 1s", "- done", NO_CHANGE))
    job.handle_timeout(100.0)
    assert (job.state, job.due, job.pending_approval) == (JobState.WAITING_APPROVAL, None, "ap")
    assert frames_of(job) == [
        ("audit.event", {"code": "approval_requested", "approvalId": "ap"}),
        ("job.event", {"state": "waiting_approval"}),
    ]
    job.decide("approve", 150.0)
    assert (job.state, job.due, frames_of(job)[-1]) == (JobState.RUNNING, 151.0, ("job.event", {"state": "running"}))
    job.handle_timeout(151.0)
    assert job.state is JobState.DONE


def test_a_denied_job_fails_by_policy() -> None:
    job = job_of(script_of("- approval: { id: ap }", NO_CHANGE))
    job.handle_timeout(100.0)
    job.decide("deny", 101.0)
    assert (job.state, frames_of(job)[-2][1]) == (
        JobState.FAILED,
        {"outcome": "failed", "errorCode": "policy_denied"},
    )


def test_a_decision_nobody_waits_for_is_a_defect() -> None:
    with pytest.raises(MisuseError, match="no approval is pending"):
        job_of(script_of(NO_CHANGE)).decide("approve", 100.0)
