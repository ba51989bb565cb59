"""Slips of a gateway in what it writes: signing, numbering, repeating, resuming, and what it offers and assigns."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lab.gateway.core import GatewayCore
from lab.gateway.jobs import CallRefused
from lab.gateway.server import GatewayServer
from lab.protocol.events import Received, Transmit
from lab.protocol.frames import Draft, FrameBuilder
from lab.protocol.gateway_side import GatewayConnection, KeptSession, SessionStore
from lab.protocol.handshake import State
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Outbound
from lab.protocol.session import GATEWAY_SENDER
from lab.protocol.signing import Signer
from lab.protocol.wire import encode
from tests.bugs import odd_agent
from tests.bugs.plants import Function, Patch, plant

Members = dict[str, Any]


def written(patch: Patch, alter: Callable[[str, Members], Members | None]) -> None:
    """Let `alter` change the members of each frame that the gateway builds; None leaves one as it is.

    A frame that was changed is not validated any more.
    """

    def make(original: Function) -> Function:
        def checked(self: Any, type_name: str, members: Mapping[str, Any]) -> str:
            altered = alter(type_name, dict(members)) if self._signer is not None else None
            if altered is None:
                return str(original(self, type_name, members))
            patch.slipped()
            return encode(altered)

        return checked

    patch.wrap(FrameBuilder, "_checked", make)


def in_ready(patch: Patch, alter: Callable[[Any, Members], Members]) -> None:
    """Let `alter` change the payload of each ready; it gets the connection as well."""

    def make(original: Function) -> Function:
        def write(self: Any, draft: Draft, now: float, ack: bool = True) -> None:
            if draft.type == "ready":
                payload = alter(self, dict(draft.payload))
                if payload != draft.payload:
                    patch.slipped()
                draft = replace(draft, payload=payload)
            original(self, draft, now, ack)

        return write

    patch.wrap(GatewayConnection, "write_control", make)


# The handshake


@plant("gateway-ready-before-hello", scenario="ready", law="gateway-refusals")
def ready_before_hello(patch: Patch) -> None:
    """register is answered by ready."""

    def on_register(self: Any, _frame: object, now: float) -> None:
        patch.slipped()
        self.state = State.AWAIT_READY
        self._become_ready({}, now)

    patch.after(GatewayConnection, "_on_register", on_register)


@plant("gateway-ready-unsigned", scenario="ready", law="gateway-frames-signed")
def ready_unsigned(patch: Patch) -> None:
    """ready goes out by the path of ack and error."""

    def alter(type_name: str, members: Members) -> Members | None:
        if type_name != "ready":
            return None
        return {name: value for name, value in members.items() if name not in ("sig", "paramsRaw")}

    written(patch, alter)


@plant("gateway-lists-unannounced-capability", scenario="fix", law="gateway-capabilities")
def lists_unannounced_capability(patch: Patch) -> None:
    """All that it can do is listed."""
    in_ready(patch, lambda connection, payload: {**payload, "capabilities": list(connection._policy.capabilities)})


@plant("gateway-window-in-ready", scenario="ready", law="gateway-frames-valid", promise=True)
def window_in_ready(patch: Patch) -> None:
    """ready.limits tells the window."""

    def alter(type_name: str, members: Members) -> Members | None:
        if type_name != "ready":
            return None
        payload = members["payload"]
        return {**members, "payload": {**payload, "limits": {**payload["limits"], "window": 16}}}

    written(patch, alter)


@plant("gateway-unsupported-closes", scenario="gateway-without-key", law="gateway-goes-on")
def unsupported_closes(patch: Patch) -> None:
    """The refusal of v2 closes the socket."""

    def on_register(self: Any, _frame: object, _now: float) -> None:
        if not self._policy.signs:
            patch.slipped()
            self.end("protocol_unsupported", "local")

    patch.after(GatewayConnection, "_on_register", on_register)


# Signing


@plant("gateway-signature-time-in-seconds", scenario="ready", law="gateway-frames-signed", promise=True)
def signature_time_in_seconds(patch: Patch) -> None:
    """The time of a signature is in seconds."""

    def make(original: Function) -> Function:
        def sign(self: Any, *args: Any) -> Members:
            patch.slipped()
            members: Members = original(self, *args[:-1], args[-1] // 1000)
            return members

        return sign

    patch.wrap(Signer, "sign", make)


@plant("gateway-nonce-repeats", scenario="gateway-link-cut", law="gateway-frames-signed")
def nonce_repeats(patch: Patch) -> None:
    """Nonces are counted, by connection."""
    count = [0]

    def nonce() -> str:
        count[0] += 1
        return base64.urlsafe_b64encode(count[0].to_bytes(16, "big")).rstrip(b"=").decode()

    def make(original: Function) -> Function:
        def sign(self: Any, *args: Any) -> Members:
            patch.slipped()
            self._nonce = nonce
            members: Members = original(self, *args)
            return members

        return sign

    def restart(*_: object) -> None:
        count[0] = 0

    patch.wrap(Signer, "sign", make)
    patch.after(GatewayCore, "connect", restart)


@plant("gateway-params-differ", scenario="gateway-assign", law="gateway-frames-signed")
def params_differ(patch: Patch) -> None:
    """A default comes into the payload when it is signed."""

    def alter(type_name: str, members: Members) -> Members | None:
        if type_name != "job.assign":
            return None
        return {**members, "payload": {**members["payload"], "repoRef": {"repoId": "shop"}}}

    written(patch, alter)


@plant("gateway-repeats-same-signature", scenario="gateway-assign-lost", law="gateway-retransmission")
def repeats_same_signature(patch: Patch) -> None:
    """The copy is the text of the first."""

    def make(original: Function) -> Function:
        def rewrite(self: Any, frame: Any, now: float) -> str:
            if not self._signs_anew:
                return str(original(self, frame, now))
            patch.slipped()
            return str(frame.raw)

        return rewrite

    patch.wrap(Outbox, "rewrite", make)


# Numbering and repeating


@plant("gateway-repeats-with-new-id", scenario="gateway-assign-lost", law="gateway-numbering")
def repeats_with_new_id(patch: Patch) -> None:
    """A copy is a new frame."""

    def make(original: Function) -> Function:
        def rewrite(self: Any, frame: Any, now: float) -> str:
            if not self._signs_anew:
                return str(original(self, frame, now))
            patch.slipped()
            frame.msg_id = self.ids()
            return str(original(self, frame, now))

        return rewrite

    patch.wrap(Outbox, "rewrite", make)


@plant("gateway-repeats-without-end", scenario="gateway-never-heard", law="gateway-retransmission")
def repeats_without_end(patch: Patch) -> None:
    """Copies are not counted."""

    def retransmit(self: Any, now: float) -> None:
        outbound = self.session.outbound
        lapse = outbound.lapse(now, self.ack_timeout)
        if lapse.exhausted:
            patch.slipped()
        for frame in (*lapse.again, *lapse.exhausted):
            text = self.outbox.rewrite(frame, now)
            outbound.resent(frame, text, now)
            self._output.append(Transmit(text))

    patch.set(GatewayConnection, "_retransmit", retransmit)


@plant("gateway-drops-frame-after-timeout", scenario="gateway-never-heard", law="gateway-resume-rules", promise=True)
def drops_frame_after_timeout(patch: Patch) -> None:
    """A frame that is given up is forgotten."""

    def make(original: Function) -> Function:
        def retransmit(self: Any, now: float) -> None:
            outbound = self.session.outbound
            lapse = outbound.lapse(now, self.ack_timeout)
            original(self, now)
            for frame in lapse.exhausted:
                patch.slipped()
                outbound._unacked.pop(frame.seq)

        return retransmit

    patch.wrap(GatewayConnection, "_retransmit", make)


@plant("gateway-refusal-takes-a-number", scenario="gateway-too-large", law="gateway-numbering")
def refusal_takes_a_number(patch: Patch) -> None:
    """A frame that cannot be made has a number already."""

    def make(original: Function) -> Function:
        def send(self: Any, agent_id: str, draft: Draft, now: float) -> object:
            try:
                return original(self, agent_id, draft, now)
            except CallRefused:
                patch.slipped()
                self._agents[agent_id].outbox.session.outbound.next_seq += 1
                raise

        return send

    patch.wrap(GatewayCore, "_send", make)


@plant("gateway-size-by-characters", scenario="gateway-too-large", law="gateway-frames-valid", promise=True)
def size_by_characters(patch: Patch) -> None:
    """Characters are compared with the limit of bytes."""
    written(patch, lambda type_name, members: members if type_name == "job.assign" else None)


@plant("gateway-ack-without-agent", scenario="fix", law="gateway-frames-valid")
def ack_without_agent(patch: Patch) -> None:
    """Acks name no agent."""

    def alter(type_name: str, members: Members) -> Members | None:
        if type_name != "ack":
            return None
        del members["agentId"]
        return members

    written(patch, alter)


@plant("gateway-heartbeat-not-acked", scenario="gateway-heartbeats", law="acked-at-once")
def heartbeat_not_acked(patch: Patch) -> None:
    """Heartbeats are dealt with before the code that acks."""

    def make(original: Function) -> Function:
        def on_received(self: Any, connection: Any, received: Received, now: float) -> None:
            if received.frame.type != "heartbeat":
                original(self, connection, received, now)
                return
            patch.slipped()
            connection._unanswered = None

        return on_received

    patch.wrap(GatewayCore, "_on_received", make)


@plant("gateway-slow-reader-holds-acks", scenario="gateway-slow-reader", law="acked-at-once")
def slow_reader_holds_acks(patch: Patch) -> None:
    """No data is taken while the consumer of a chunk is busy."""
    slow: list[str] = []

    def make(original: Function) -> Function:
        def deliver(self: Any, socket: Any, message: Any, frame: Any, passage: Any) -> None:
            if frame.type == "content.response":
                slow.append(socket.conn)
            # What is no data needs no consumer.
            if not slow or not frame.seq:
                original(self, socket, message, frame, passage)
                return
            patch.slipped()
            # Always as long, so that the order stays.
            self._later(SLOW, lambda: original(self, socket, message, frame, passage))

        return deliver

    patch.wrap(GatewayServer, "_deliver", make)


class _Slow:
    """What `GatewayServer._later` wants to know of a fault."""

    seconds = 1.5


SLOW: Any = _Slow()


# Resuming


@plant("gateway-peer-last-seq-is-next", scenario="gateway-link-cut", law="gateway-resume-rules")
def peer_last_seq_is_next(patch: Patch) -> None:
    """The number expected next goes out."""

    def alter(_connection: Any, payload: Members) -> Members:
        return {**payload, "peerLastSeq": payload["peerLastSeq"] + 1} if payload["resumed"] else payload

    in_ready(patch, alter)


@plant("gateway-fresh-session-keeps-number", scenario="gateway-strange-resume", law="gateway-resume-rules")
def fresh_session_keeps_number(patch: Patch) -> None:
    """A session that begins anew tells the old number."""

    def alter(connection: Any, payload: Members) -> Members:
        fresh_after_resume = not payload["resumed"] and "resume" in connection._register
        return {**payload, "peerLastSeq": 3} if fresh_after_resume else payload

    in_ready(patch, alter)


@plant("gateway-resumes-anything", scenario="gateway-strange-resume", law="gateway-resume-rules")
def resumes_anything(patch: Patch) -> None:
    """Who asks gets a session."""

    def make(original: Function) -> Function:
        def resumable(self: Any, resume: Any, *args: Any) -> KeptSession | None:
            kept: KeptSession | None = original(self, resume, *args)
            if resume is None or kept is not None:
                return kept
            patch.slipped()
            latest: KeptSession = next(reversed(self._kept.values()))
            lost: KeptSession = self._kept.get(resume["sessionId"], latest)
            return lost

        return resumable

    patch.wrap(SessionStore, "resumable", make)


@plant("gateway-resume-sends-acked-again", scenario="gateway-ack-cut", law="gateway-resume-rules")
def resume_sends_acked_again(patch: Patch) -> None:
    """lastRecvSeq is not looked at."""

    def make(original: Function) -> Function:
        def resume(self: Any, peer_last_seq: int, now: float) -> object:
            if self.window != GATEWAY_SENDER.window:
                return original(self, peer_last_seq, now)
            patch.slipped()
            return original(self, 0, now)

        return resume

    patch.wrap(Outbound, "resume", make)


__all__ = ["odd_agent"]
