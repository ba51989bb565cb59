"""Slips of a Local Agent in what it makes of duplicates and gaps."""

from __future__ import annotations

from lab.localagent.gateway_link import GatewayLink
from lab.localagent.job import assigned_job
from lab.localagent.jobs import Jobs, _Assigned
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Received
from lab.protocol.frames import Frame
from lab.protocol.reliability import Inbound, Verdict
from tests.bugs.on_wire import Members, leave_unanswered, on_link
from tests.bugs.plants import Function, Patch, plant


def _change_verdict(patch: Patch, judge: Function) -> None:
    """Judge the agent's received numbers otherwise; `judge` gets the inbound, seq, msgId and the right verdict."""

    def act(link: GatewayLink) -> None:
        inbound = link._outbox.session.inbound

        def changed(seq: int, msg_id: str) -> Verdict:
            verdict = Inbound.judge(inbound, seq, msg_id)
            other: Verdict = judge(inbound, seq, msg_id, verdict)
            if other is not verdict:
                patch.slipped()
            return other

        patch.set(inbound, "judge", changed)

    on_link(patch, act)


@plant("agent-duplicate-runs-again", scenario="duplicate", law="job-at-most-once")
def duplicate_runs_again(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def on_data(self: AgentConnection, frame: Frame, now: float) -> None:
            copy = self.session.inbound.judge(frame.seq, frame.msg_id) is Verdict.DUPLICATE
            original(self, frame, now)
            if copy:
                patch.slipped()
                self._unanswered = frame
                self._events[-1] = Received(frame, None)

        return on_data

    def make_accept(original: Function) -> Function:
        answered: list[str] = []

        def accept(self: AgentConnection, frame: Frame, now: float) -> None:
            if frame.msg_id in answered:
                leave_unanswered(self)
                return
            answered.append(frame.msg_id)
            original(self, frame, now)

        return accept

    def make_assign(original: Function) -> Function:
        """The record of job ids, which would catch the copy too, is gone round."""

        def assign(self: Jobs, payload: Members, workspace_id: str) -> str | None:
            if self._active(payload["jobId"]) is None:
                code: str | None = original(self, payload, workspace_id)
                return code
            self._waiting[f"{payload['jobId']} again"] = _Assigned(assigned_job(payload, workspace_id))
            return None

        return assign

    patch.wrap(AgentConnection, "_on_data", make)
    patch.wrap(AgentConnection, "accept", make_accept)
    patch.wrap(Jobs, "assign", make_assign)


@plant("agent-dedupe-by-bytes", scenario="lost-ack-of-assign", law="refusals")
def dedupe_by_bytes(patch: Patch) -> None:
    texts: list[object] = []
    known: list[bool] = []

    def make(original: Function) -> Function:
        def receive(self: AgentConnection, message: str | bytes, now: float) -> object:
            known[:] = [message in texts]
            texts.append(message)
            return original(self, message, now)

        return receive

    def judge(_inbound: Inbound, _seq: int, _msg_id: str, verdict: Verdict) -> Verdict:
        return Verdict.REPLAYED if verdict is Verdict.DUPLICATE and not known[0] else verdict

    patch.wrap(AgentConnection, "receive_untrusted", make)
    _change_verdict(patch, judge)


@plant("agent-nonce-before-duplicate", scenario="duplicate", law="refusals")
def nonce_before_duplicate(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def is_copy(self: AgentConnection, members: Members) -> bool:
            if original(self, members):
                patch.slipped()
            return False

        return is_copy

    patch.wrap(AgentConnection, "_is_copy", make)


@plant("agent-gap-waited-for", scenario="lost-frame-watched", law="refusals")
def gap_waited_for(patch: Patch) -> None:
    early: list[Members] = []

    def make(original: Function) -> Function:
        def take_frame(self: AgentConnection, members: Members, now: float) -> None:
            inbound = self.session.inbound
            if members.get("type") == "job.assign" and members["seq"] > inbound.last_seq + 1:
                patch.slipped()
                early.append(members)
                return
            original(self, members, now)
            if early and early[0]["seq"] == inbound.last_seq + 1 and self._unanswered is None:
                original(self, early.pop(0), now)

        return take_frame

    patch.wrap(AgentConnection, "_take_frame", make)


@plant("agent-gap-accepted", scenario="lost-frame-watched", law="refusals")
def gap_accepted(patch: Patch) -> None:
    def judge(_inbound: Inbound, _seq: int, _msg_id: str, verdict: Verdict) -> Verdict:
        return Verdict.FRESH if verdict is Verdict.GAP else verdict

    _change_verdict(patch, judge)


@plant("agent-counts-refused-frame", scenario="lost-frame", law="resume-rules", promise=True)
def counts_refused_frame(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def take_frame(self: AgentConnection, members: Members, now: float) -> None:
            inbound = self.session.inbound
            seq = members.get("seq", 0)
            if members.get("type") == "job.assign" and seq > inbound.last_seq + 1:
                patch.slipped()
                original(self, members, now)
                inbound.received(seq, members["msgId"])
            else:
                original(self, members, now)

        return take_frame

    patch.wrap(AgentConnection, "_take_frame", make)
