"""Slips of a Local Agent in the form of its frames, in chunks and in its signs of life."""

from __future__ import annotations

import base64
from typing import Any

from lab.localagent.agent import LocalAgent
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.connection import Timer
from lab.protocol.events import Event, HeartbeatDue, Repeated, Transmit
from lab.protocol.frames import Draft, Frame
from tests.bugs.on_wire import Members, change_written, every_frame, of_type
from tests.bugs.plants import Function, Patch, plant

# The envelope


@plant("agent-upper-case-ids", scenario="fix", law="agent-frames-valid")
def upper_case_ids(patch: Patch) -> None:
    change_written(patch, every_frame(lambda members: members.update(msgId=members["msgId"].upper())))


@plant("agent-time-with-offset", scenario="fix", law="agent-frames-valid")
def time_with_offset(patch: Patch) -> None:
    change_written(patch, every_frame(lambda members: members.update(ts=members["ts"].replace("Z", "+00:00"))))


@plant("agent-ack-without-agent", scenario="fix", law="agent-frames-valid")
def ack_without_agent(patch: Patch) -> None:
    change_written(patch, of_type("ack", lambda members: members.pop("agentId")))


@plant("agent-hello-state-as-text", scenario="ready", law="agent-frames-valid", promise=True)
def hello_state_as_text(patch: Patch) -> None:
    change_written(patch, of_type("hello", lambda members: members["payload"].update(graphify="ready")))


@plant("agent-heartbeat-unnumbered", scenario="heartbeat", law="numbering")
def heartbeat_unnumbered(patch: Patch) -> None:
    change_written(patch, of_type("heartbeat", lambda members: members.update(seq=0)))


# Chunks


def _change_chunks(patch: Patch, change: Function) -> None:
    """Change the agent's content.response frames; `change` says whether it did."""
    change_written(patch, lambda members: members.get("type") == "content.response" and change(members))


@plant(
    "agent-total-rounded-down",
    scenario="small-chunks",
    law="chunks",
)
def total_rounded_down(patch: Patch) -> None:
    def change(members: Members) -> bool:
        chunk = members["chunk"]
        members["chunk"] = {**chunk, "total": max(1, chunk["total"] - 1)}
        return bool(chunk["total"] > 1)

    _change_chunks(patch, change)


@plant("agent-last-missing-on-exact-size", scenario="exact-chunks", law="chunks")
def last_missing_on_exact_size(patch: Patch) -> None:
    def change(members: Members) -> bool:
        exact = members["chunk"]["last"] and members["payload"]["byteLength"] == 64
        members["chunk"] = {**members["chunk"], "last": members["chunk"]["last"] and not exact}
        return bool(exact)

    _change_chunks(patch, change)


@plant(
    "agent-byte-length-of-base64",
    scenario="chat",
    law="chunks",
)
def byte_length_of_base64(patch: Patch) -> None:
    def change(members: Members) -> bool:
        members["payload"]["byteLength"] = len(members["payload"]["data"])
        return True

    _change_chunks(patch, change)


@plant(
    "agent-byte-length-of-body",
    scenario="small-chunks",
    law="chunks",
)
def byte_length_of_body(patch: Patch) -> None:
    def change(members: Members) -> bool:
        members["payload"]["byteLength"] = members["payload"]["totalBytes"]
        return bool(members["chunk"]["total"] > 1)

    _change_chunks(patch, change)


@plant("agent-total-bytes-in-characters", scenario="umlauts", law="chunks")
def total_bytes_in_characters(patch: Patch) -> None:
    def change(members: Members) -> bool:
        body = base64.b64decode(members["payload"]["data"])
        members["payload"]["totalBytes"] = len(body.decode())
        return len(body.decode()) < len(body)

    _change_chunks(patch, change)


@plant("agent-base64-of-the-wrong-kind", scenario="chat", law="agent-frames-valid")
def base64_of_the_wrong_kind(patch: Patch) -> None:
    def change(members: Members) -> bool:
        before = members["payload"]["data"]
        members["payload"]["data"] = before.translate(str.maketrans("+/", "-_")).rstrip("=")
        return bool(members["payload"]["data"] != before)

    _change_chunks(patch, change)


@plant("agent-content-hash-sent", scenario="chat", law="chunks")
def content_hash_sent(patch: Patch) -> None:
    def change(members: Members) -> bool:
        members["payload"]["sha256"] = "0" * 64
        return True

    _change_chunks(patch, change)


@plant("agent-content-type-with-charset", scenario="chat", law="agent-frames-valid")
def content_type_with_charset(patch: Patch) -> None:
    def change(members: Members) -> bool:
        members["payload"]["contentType"] += "; charset=utf-8"
        return True

    _change_chunks(patch, change)


@plant("agent-failure-with-success-members", scenario="unknown-ref", law="chunks")
def failure_with_success_members(patch: Patch) -> None:
    def change(members: Members) -> bool:
        failed = members["payload"]["status"] != "ok"
        if failed:
            members["payload"] |= {"contentType": "application/json", "totalBytes": 0}
        return bool(failed)

    _change_chunks(patch, change)


@plant("agent-status-as-error-code", scenario="unknown-ref", law="agent-frames-valid")
def status_as_error_code(patch: Patch) -> None:
    def change(members: Members) -> bool:
        failed = members["payload"]["status"] == "not_found"
        if failed:
            members["payload"]["errorCode"] = "not_found"
        return bool(failed)

    _change_chunks(patch, change)


@plant(
    "agent-request-ids-mixed",
    scenario="two-requests",
    law="chunks",
)
def request_ids_mixed(patch: Patch) -> None:
    latest: list[str] = []

    def note(self: AgentConnection, frame: Frame, _now: float) -> None:
        if frame.type == "content.request":
            latest[:] = [frame.request_id or ""]

    def change(members: Members) -> bool:
        mixed = bool(latest) and members["requestId"] != latest[0]
        members["requestId"] = latest[0] if latest else members["requestId"]
        return mixed

    patch.after(AgentConnection, "_on_data", note)
    _change_chunks(patch, change)


@plant(
    "agent-chunks-restart-after-resume",
    scenario="cut-in-chunks",
    law="chunks",
)
def chunks_restart_after_resume(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def go_on_with(self: AgentConnection, sources: Any) -> None:
            for source in sources:
                if source.next_chunk:
                    patch.slipped()
                    self.session.chunks._series.pop(source.request_id, None)
                    source.next_chunk = 0
            original(self, sources)

        return go_on_with

    patch.wrap(AgentConnection, "go_on_with", make)


@plant("agent-chunks-cross-a-reset", scenario="forgotten-in-chunks", law="chunks")
def chunks_cross_a_reset(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def lose(self: AgentConnection) -> None:
            kept = [source for source in self._sources if source.next_chunk]
            original(self)
            for source in kept:
                patch.slipped()
                self.session.chunks._series.pop(source.request_id, None)
                self._sources.append(source)

        return lose

    def fits(*_: object) -> None:
        """The planted sender has no tracker that would stop it."""

    def drop_tracker(link: GatewayLink) -> None:
        patch.set(link._outbox.session.chunks, "refusal", fits)

    patch.after(GatewayLink, "__init__", lambda self, *_: drop_tracker(self))
    patch.wrap(AgentConnection, "_lose_session", make)


@plant("agent-content-duplicate-answered-again", scenario="request-twice", law="chunks")
def content_duplicate_answered_again(patch: Patch) -> None:
    agents: list[LocalAgent] = []
    patch.after(LocalAgent, "__init__", lambda self, *_: agents.append(self))

    def again(self: GatewayLink, event: Event) -> None:
        if isinstance(event, Repeated) and event.frame.type == "content.request":
            patch.slipped()
            # The planted sender has no tracker that would stop the second series.
            patch.set(self._outbox.session.chunks, "refusal", lambda *_: None)
            agents[0]._answer(event.frame)

    patch.after(GatewayLink, "_on_event", again)


@plant("agent-piggyback-goes-back", scenario="held-request", law="acks")
def piggyback_goes_back(patch: Patch) -> None:
    asked: dict[str, int] = {}

    def note(self: AgentConnection, frame: Frame, _now: float) -> None:
        if frame.type == "content.request":
            asked[frame.request_id or ""] = frame.seq

    def change(members: Members) -> bool:
        before, members["ack"] = members["ack"], asked[members["requestId"]]
        return bool(before != members["ack"])

    patch.after(AgentConnection, "_on_data", note)
    _change_chunks(patch, change)


@plant("agent-acks-when-done", scenario="held-request", law="acks")
def acks_when_done(patch: Patch) -> None:
    held: dict[str, Frame] = {}

    def make(original: Function) -> Function:
        def accept(self: AgentConnection, frame: Frame, now: float) -> None:
            if frame.type != "content.request":
                original(self, frame, now)
                return
            held[frame.request_id or ""] = frame
            self._unanswered = None
            self.flush(now)

        return accept

    def make_content(original: Function) -> Function:
        def send_content(self: AgentConnection, request_id: str, *args: Any) -> None:
            frame = held.pop(request_id, None)
            if frame is not None:
                patch.slipped()
                self._write_ack(args[-1], frame.seq, frame.msg_id, frame.workspace_id, "accepted")
            original(self, request_id, *args)

        return send_content

    patch.wrap(AgentConnection, "accept", make)
    patch.wrap(AgentConnection, "send_content", make_content)


# Signs of life


@plant("agent-no-heartbeat-in-a-job", scenario="heartbeat", law="heartbeats")
def no_heartbeat_in_a_job(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def on_event(self: GatewayLink, event: Event) -> None:
            if isinstance(event, HeartbeatDue) and self.heartbeat()["state"] == "busy":
                patch.slipped()
                return
            original(self, event)

        return on_event

    patch.wrap(GatewayLink, "_on_event", make)


# v1


@plant("agent-never-falls-back", scenario="v1-gateway", law="v1-fallback")
def never_falls_back(patch: Patch) -> None:
    def end(self: AgentConnection) -> None:
        patch.slipped()
        self.end(None, "local")

    patch.set(AgentConnection, "fall_back", end)


@plant("agent-falls-back-on-new-socket", scenario="v1-gateway", law="v1-fallback")
def falls_back_on_new_socket(patch: Patch) -> None:
    fallen: list[bool] = []

    def make(original: Function) -> Function:
        def fall_back(self: AgentConnection) -> None:
            if fallen:
                original(self)
                return
            patch.slipped()
            fallen.append(True)
            self.end(None, "local")

        return fall_back

    def begin(original: Function) -> Function:
        def start(self: AgentConnection, now: float, hello: Any) -> list[Event]:
            events: list[Event] = self.start_v1(now) if fallen else original(self, now, hello)
            return events

        return start

    patch.wrap(AgentConnection, "fall_back", make)
    patch.wrap(AgentConnection, "start", begin)


@plant("agent-falls-back-after-refusal", scenario="mode-refused", law="v1-fallback")
def falls_back_after_refusal(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def on_error(self: AgentConnection, frame: Frame) -> None:
            if self._timers.get(Timer.HANDSHAKE) is not None:
                patch.slipped()
                self.fall_back()
            else:
                original(self, frame)

        return on_error

    patch.wrap(AgentConnection, "_on_error", make)


@plant("agent-offers-v2-too-soon", scenario="v1-gateway-reset", law="v1-fallback")
def offers_v2_too_soon(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def begin(self: GatewayLink, connection: AgentConnection) -> None:
            if self._v1_until is not None:
                patch.slipped()
                self._v1_until = None
            original(self, connection)

        return begin

    patch.wrap(GatewayLink, "_begin", make)


@plant("agent-v2-frames-after-fallback", scenario="v1-gateway", law="v1-fallback")
def v2_frames_after_fallback(patch: Patch) -> None:
    """The timer's first beat is not waited for."""

    def beat(self: AgentConnection) -> None:
        patch.slipped()
        text = self.outbox.builder.build(
            Draft("heartbeat", {"state": "idle"}, self.workspace_id), self.outbox.ids(), 1, None, 0.0
        )
        self._output.append(Transmit(text))

    patch.after(AgentConnection, "fall_back", beat)
