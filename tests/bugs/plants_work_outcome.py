"""Slips of an agent in what it tells of a job: outcomes, counts and progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lab.errors import Agent2Error
from lab.localagent import runner, watching
from lab.localagent.agent import _Uplink
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.conversation import AnswerText
from lab.localagent.frames import FrameGate
from lab.localagent.job import CancelSignal, Job
from lab.localagent.jobs import Jobs
from lab.localagent.outcome import CANCELLED, Outcome, failed
from lab.localagent.runner import Runner
from lab.localagent.watching import Watch
from lab.localagent.work import AgentWork
from lab.protocol.frames import FrameBuilder
from lab.protocol.wire import encode
from tests.bugs.plants import Function, Patch, plant


def unchecked(patch: Patch) -> None:
    """An agent that does not validate what it sends; without that it would catch some slips itself (LA-007)."""

    def make(original: Function) -> Function:
        def checked(self: Any, type_name: str, members: Mapping[str, object]) -> str:
            return encode(members) if self._signer is None else str(original(self, type_name, members))

        return checked

    patch.wrap(FrameBuilder, "_checked", make)


# Outcomes


def results(patch: Patch, alter: Callable[[Mapping[str, object], Outcome], Outcome]) -> None:
    """Let `alter` change what a job.result of agent2 comes to."""

    def make(original: Function) -> Function:
        def of_result(payload: Mapping[str, object], *, chat: bool, most_files: int) -> Outcome:
            outcome: Outcome = original(payload, chat=chat, most_files=most_files)
            altered = alter(payload, outcome)
            if altered != outcome:
                patch.slipped()
            return altered

        return of_result

    patch.wrap(watching, "of_result", make)


def with_members(outcome: Outcome, **members: object) -> Outcome:
    """The outcome with further members."""
    return replace(outcome, members={**outcome.members, **members})


def cancelled_as(patch: Patch, outcome: Outcome) -> None:
    """What a cancel that agent2 carried out comes to."""

    def after_cancel(_self: Any, _timed_out: bool) -> Outcome:
        patch.slipped()
        return outcome

    patch.set(Watch, "_after_cancel", after_cancel)


@plant("agent-cancelled-called-failed", scenario="fix-cancelled", law="job-outcome")
def cancelled_called_failed(patch: Patch) -> None:
    """agent2's cancelled is a failure."""
    cancelled_as(patch, failed("unknown"))


@plant("agent-cancelled-with-members", scenario="fix-cancelled", law="job-outcome")
def cancelled_with_members(patch: Patch) -> None:
    """A count in each result."""
    cancelled_as(patch, with_members(CANCELLED, filesChangedCount=0))


def counts(patch: Patch, most_files: Callable[[Any], int]) -> None:
    """Let `most_files` say what the events of a job come to."""

    def make(original: Function) -> Function:
        def outcome(self: Any) -> object:
            count = most_files(self)
            if count != self._most_files:
                patch.slipped()
                self._most_files = count
            return original(self)

        return outcome

    patch.wrap(Watch, "_outcome", make)


@plant("agent-changes-from-result-only", scenario="chat-changes", law="job-outcome")
def changes_from_result_only(patch: Patch) -> None:
    """Events do not count."""
    counts(patch, lambda _: 0)


@plant("agent-changes-last-event", scenario="chat-changes", law="job-outcome")
def changes_last_event(patch: Patch) -> None:
    """The latest event counts."""
    latest = [0]

    def note(_self: Any, frame: Any) -> None:
        changed = frame.payload.get("filesChanged")
        if isinstance(changed, int) and frame.payload.get("terminal") is not True:
            latest[0] = changed

    patch.after(Watch, "_on_event", note)
    counts(patch, lambda _: latest[0])


@plant("agent-changes-from-terminal-event", scenario="chat-changes", law="job-outcome")
def changes_from_terminal_event(patch: Patch) -> None:
    """The terminal event counts too."""
    most = [0]

    def note(_self: Any, frame: Any) -> None:
        most[0] = max(most[0], frame.payload.get("filesChanged", 0))

    patch.after(Watch, "_on_event", note)
    counts(patch, lambda _: most[0])


@plant("agent-zero-changes-left-out", scenario="chat", law="job-outcome")
def zero_changes_left_out(patch: Patch) -> None:
    """A count is asked whether it is true."""

    def alter(_payload: object, outcome: Outcome) -> Outcome:
        return replace(outcome, members={name: value for name, value in outcome.members.items() if value})

    results(patch, alter)


@plant("agent-chat-pull-request-hidden", scenario="chat-pull-request", law="job-outcome")
def chat_pull_request_hidden(patch: Patch) -> None:
    """A chat has no pull request."""
    results(
        patch,
        lambda _, outcome: (
            Outcome("no_change", members={"filesChangedCount": 1}) if outcome.outcome == "pr_opened" else outcome
        ),
    )


@plant("agent-denied-called-infra", scenario="job-denied", law="job-outcome")
def denied_called_infra(patch: Patch) -> None:
    """Every refusal is infra."""

    def of_refusal(_error: Agent2Error) -> Outcome:
        patch.slipped()
        return failed("infra")

    patch.set(runner, "of_refusal", of_refusal)


@plant("agent-busy-retried", scenario="job-busy", law="agent2-client")
def busy_retried(patch: Patch) -> None:
    """409 is tried again."""

    def make(original: Function) -> Function:
        async def post(self: Any, body: Mapping[str, object]) -> object:
            for _ in range(3):
                try:
                    return await original(self, body)
                except Agent2Error as error:
                    if error.status != 409:
                        raise
                    patch.slipped()
                    await asyncio.sleep(0.05)
            return await original(self, body)

        return post

    patch.wrap(Agent2Client, "post_job", make)


@plant("agent-result-twice", scenario="fix", law="job-at-most-once", promise=True)
def result_twice(patch: Patch) -> None:
    """The result frame and the terminal event both make a result."""

    def again(self: Any, job: Job, _outcome: Outcome) -> None:
        patch.slipped()
        self._send_result(job.job_id)

    patch.after(Jobs, "_finish", again)


@plant("agent-absent-members-as-null", scenario="fix", law="agent-frames-valid", promise=True)
def absent_members_as_null(patch: Patch) -> None:
    """An outcome without an error says that its code is null."""
    unchecked(patch)
    results(patch, lambda _, outcome: with_members(outcome, errorCode=None))


@plant(
    "agent-answer-in-result",
    scenario="chat-secret",
    law="content-stays-in-its-fields",
)
def answer_in_result(patch: Patch) -> None:
    """The answer goes along with the outcome."""
    unchecked(patch)

    def make(original: Function) -> Function:
        async def guarded(self: Any, job: Job, cancel: CancelSignal, answer: AnswerText) -> Outcome:
            patch.slipped()
            return with_members(await original(self, job, cancel, answer), answer=answer.text())

        return guarded

    patch.wrap(Runner, "_guarded", make)


# Progress


@plant(
    "agent-answer-in-phase",
    scenario="chat-secret",
    law="content-stays-in-its-fields",
)
def answer_in_phase(patch: Patch) -> None:
    """The latest text stands for the phase."""
    unchecked(patch)
    latest = [""]

    def note(_self: Any, line: str) -> None:
        latest[0] = line[:120]

    def make(original: Function) -> Function:
        def progress(job_id: str, payload: Mapping[str, object]) -> dict[str, object]:
            told: dict[str, object] = original(job_id, payload)
            if latest[0]:
                patch.slipped()
                told["phase"] = latest[0]
            return told

        return progress

    patch.after(AnswerText, "take", note)
    patch.wrap(watching, "progress", make)


@plant("agent-no-context-progress", scenario="fix", law="progress")
def no_context_progress(patch: Patch) -> None:
    """agent2's first event is the first report."""

    def make(original: Function) -> Function:
        def send(self: Any, type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
            if type_name == "job.event" and "iteration" not in payload:
                patch.slipped()
            else:
                original(self, type_name, payload, workspace_id)

        return send

    patch.wrap(_Uplink, "send", make)


@plant("agent-waiting-approval-hidden", scenario="fix-approval", law="progress")
def waiting_approval_hidden(patch: Patch) -> None:
    """All that is not terminal runs."""

    def make(original: Function) -> Function:
        def progress(job_id: str, payload: Mapping[str, object]) -> dict[str, object]:
            told: dict[str, object] = original(job_id, payload)
            if told["state"] != "running":
                patch.slipped()
            return {**told, "state": "running"}

        return progress

    patch.wrap(watching, "progress", make)


@plant("agent-replayed-events-forwarded", scenario="fix-events-torn", law="progress")
def replayed_events_forwarded(patch: Patch) -> None:
    """No frame of agent2 is known from before."""

    def make(original: Function) -> Function:
        def accept(self: Any, value: object) -> object:
            last, self.last_seq = self.last_seq, 0
            frame = original(self, value)
            if frame is not None and frame.seq <= last:
                patch.slipped()
            self.last_seq = max(last, self.last_seq)
            return frame

        return accept

    patch.wrap(FrameGate, "accept", make)


@plant("agent-heartbeat-state-of-its-own", scenario="busy-heartbeats", law="agent-frames-valid")
def heartbeat_state_of_its_own(patch: Patch) -> None:
    """The state is the agent's own word."""
    unchecked(patch)

    def make(original: Function) -> Function:
        def state(self: Any) -> dict[str, object]:
            patch.slipped()
            return {**original(self), "state": "preparing"}

        return state

    patch.wrap(AgentWork, "state", make)
