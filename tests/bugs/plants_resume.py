"""Slips of a Local Agent in resuming a session."""

from __future__ import annotations

from typing import Any

from lab.localagent import gateway_link
from lab.localagent.agent import LocalAgent
from lab.localagent.gateway_link import GatewayLink
from lab.protocol import agent_side
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Transmit
from lab.protocol.reliability import Delivery, Inbound, Outbound, SentFrame, Verdict
from lab.protocol.session import Session
from tests.bugs.plants import Function, Patch, plant


def _change_resume(patch: Patch, change: Function) -> None:
    """Change the payload of a register that has a resume."""

    def make(original: Function) -> Function:
        def register(self: AgentConnection) -> dict[str, Any]:
            payload: dict[str, Any] = original(self)
            if "resume" in payload:
                patch.slipped()
                change(payload)
            return payload

        return register

    patch.wrap(AgentConnection, "_register", make)


@plant("agent-resume-never-asked", scenario="cut", law="resume-rules")
def resume_never_asked(patch: Patch) -> None:
    _change_resume(patch, lambda payload: payload.pop("resume"))


@plant(
    "agent-resume-names-next-expected",
    scenario="cut",
    law="resume-rules",
    promise=True,
)
def resume_names_next_expected(patch: Patch) -> None:
    def change(payload: dict[str, Any]) -> None:
        payload["resume"]["lastRecvSeq"] += 1

    _change_resume(patch, change)


@plant(
    "agent-resume-names-zero",
    scenario="cut",
    law="resume-rules",
    promise=True,
)
def resume_names_zero(patch: Patch) -> None:
    def change(payload: dict[str, Any]) -> None:
        payload["resume"]["lastRecvSeq"] = 0

    _change_resume(patch, change)


@plant("agent-resume-skips-hello", scenario="cut", law="handshake")
def resume_skips_hello(patch: Patch) -> None:
    def skip(self: AgentConnection, *_: object) -> None:
        if self.session.session_id is not None:
            patch.slipped()
            self._output.pop()

    patch.after(AgentConnection, "start", skip)


@plant(
    "agent-resume-starts-at-one",
    scenario="cut",
    law="numbering",
)
def resume_starts_at_one(patch: Patch) -> None:
    def restart(self: AgentConnection, *_: object) -> None:
        if self._events and getattr(self._events[-1], "resumed", False):
            patch.slipped()
            self.session.outbound.next_seq = 1

    patch.after(AgentConnection, "_on_handshake", restart)


def _when_dropped(patch: Patch, act: Function) -> None:
    """Act on the connection when its socket is gone and it had a session."""

    def dropped(self: AgentConnection, *_: object) -> None:
        if self.session.session_id is not None:
            act(self)

    patch.after(AgentConnection, "closed", dropped)


@plant("agent-resume-resends-nothing", scenario="cut", law="resume-rules")
def resume_resends_nothing(patch: Patch) -> None:
    def empty(self: AgentConnection) -> None:
        if self.session.outbound._unacked:
            patch.slipped()
        self.session.outbound._unacked.clear()

    _when_dropped(patch, empty)


@plant("agent-resume-resends-received-frames", scenario="unacked-cut", law="resume-rules")
def resume_resends_received_frames(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def handshake(self: AgentConnection, step: object, frame: Any, now: float) -> None:
            outbound = self.session.outbound
            if frame.payload["resumed"]:
                blind = Patch()

                def resume(peer_last_seq: int, now: float) -> tuple[list[Delivery], tuple[SentFrame, ...]]:
                    if any(sent.seq <= peer_last_seq for sent in outbound.unacked()):
                        patch.slipped()
                    return Outbound.resume(outbound, 0, now)

                blind.set(outbound, "resume", resume)
                original(self, step, frame, now)
                blind.undo()
            else:
                original(self, step, frame, now)

        return handshake

    patch.wrap(AgentConnection, "_on_handshake", make)


@plant("agent-resume-fresh-message-ids", scenario="cut", law="resume-rules")
def resume_fresh_message_ids(patch: Patch) -> None:
    def write_again(self: AgentConnection, now: float) -> int:
        frames = self.session.outbound.unacked()
        for frame in frames:
            patch.slipped()
            frame.msg_id = self.outbox.ids()
            frame.raw = self.outbox._build(frame.delivery.draft, frame.msg_id, frame.seq, now)
            self._output.append(Transmit(frame.raw))
        return len(frames)

    patch.set(AgentConnection, "_write_again", write_again)


@plant("agent-resume-newest-first", scenario="cut", law="resume-rules")
def resume_newest_first(patch: Patch) -> None:
    def write_again(self: AgentConnection, now: float) -> int:
        frames = self.session.outbound.unacked()[::-1]
        if len(frames) > 1:
            patch.slipped()
        self._output.extend(Transmit(frame.raw) for frame in frames)
        return len(frames)

    patch.set(AgentConnection, "_write_again", write_again)


@plant("agent-job-stopped-by-cut", scenario="cut", law="cancel-at-agent2")
def job_stopped_by_cut(patch: Patch) -> None:
    agents: list[LocalAgent] = []
    patch.after(LocalAgent, "__init__", lambda self, *_: agents.append(self))

    jobs: list[str] = []

    def note(self: AgentConnection, frame: Any, _now: float) -> None:
        if frame.type == "job.assign":
            jobs.append(frame.payload["jobId"])

    patch.after(AgentConnection, "_on_data", note)

    def stop(_self: AgentConnection) -> None:
        for job in jobs:
            patch.slipped()
            agents[0]._work.cancel({"jobId": job, "reason": "user"})

    _when_dropped(patch, stop)


@plant("agent-resume-forgets-received-pairs", scenario="assigned-again", law="acks")
def resume_forgets_received_pairs(patch: Patch) -> None:
    """What is not among the pairs is new to the planted receiver."""

    def forget(link: GatewayLink) -> None:
        inbound = link._outbox.session.inbound

        def judge(seq: int, msg_id: str) -> Verdict:
            verdict = Inbound.judge(inbound, seq, msg_id)
            if verdict is Verdict.REPLAYED and seq not in inbound._pairs:
                patch.slipped()
                return Verdict.FRESH
            return verdict

        patch.set(inbound, "judge", judge)

    patch.after(GatewayLink, "__init__", lambda self, *_: forget(self))
    _when_dropped(patch, lambda self: self.session.inbound._pairs.clear())


@plant("agent-fresh-session-counts-on", scenario="forgotten", law="resume-rules")
def fresh_session_counts_on(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def lose(self: AgentConnection) -> None:
            outbound = self.session.outbound
            number = outbound.next_seq
            original(self)
            if number > 1:
                patch.slipped()
                outbound.next_seq = number

        return lose

    patch.wrap(AgentConnection, "_lose_session", make)


@plant("agent-session-kept-too-long", scenario="back-too-late", law="resume-rules")
def session_kept_too_long(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def may_resume(session: Session, now: float) -> bool:
            if session.session_id is not None and not original(session, now):
                patch.slipped()
            return session.session_id is not None

        return may_resume

    patch.wrap(agent_side, "may_resume", make)


@plant("agent-result-lost-with-session", scenario="forgotten-with-result", law="result-renewed")
def result_lost_with_session(patch: Patch) -> None:
    class Nothing(frozenset[str]):
        def __contains__(self, _type: object) -> bool:
            patch.slipped()
            return False

    patch.set(gateway_link, "RENEWED_TYPES", Nothing())
