"""Slips of a Local Agent in its window and its queue, in what it offers unasked, and in metadata."""

from __future__ import annotations

from typing import Any

from lab.localagent import approvals, work
from lab.localagent.agent import LocalAgent
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.connection import Timer
from lab.protocol.events import BecameReady, Event, HeartbeatDue, Transmit
from lab.protocol.frames import Draft, Frame
from lab.protocol.reliability import Delivery, Outbound, QueueFull
from lab.protocol.wire import encode
from tests.bugs.on_wire import Members, change_written, of_type
from tests.bugs.plants import Function, Patch, plant

SMALL_QUEUE = 4
"""In place of the 256 of the contract, so that a run fills it quickly."""


def _on_outbound(patch: Patch, act: Function) -> None:
    """Act on the agent's sender once it is made."""
    patch.after(GatewayLink, "__init__", lambda self, *_: act(self._outbox.session.outbound))


@plant("agent-window-off-by-one", scenario="acks-lost", law="window")
def window_off_by_one(patch: Patch) -> None:
    def widen(outbound: Outbound) -> None:
        def take() -> Delivery | None:
            if not outbound._queue or len(outbound._unacked) > outbound.window:
                return None
            if len(outbound._unacked) == outbound.window:
                patch.slipped()
            return outbound._queue.popleft()

        patch.set(outbound, "take", take)

    _on_outbound(patch, widen)


@plant("agent-heartbeat-outside-window", scenario="acks-lost", law="window")
def heartbeat_outside_window(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def on_event(self: GatewayLink, event: Event) -> None:
            outbound, connection = self._outbox.session.outbound, self._connection
            if not isinstance(event, HeartbeatDue) or outbound.has_room or connection is None:
                original(self, event)
                return
            patch.slipped()
            now = self._ctx.now()
            draft = Draft("heartbeat", self.heartbeat(), connection.workspace_id)
            msg_id = self._outbox.ids()
            text = self._outbox._build(draft, msg_id, outbound.next_seq, now)
            outbound.sent(Delivery(draft), msg_id, text, now)
            connection._output.append(Transmit(text))

        return on_event

    patch.wrap(GatewayLink, "_on_event", make)


@plant("agent-window-slot-leaks", scenario="acks-lost", law="window")
def window_slot_leaks(patch: Patch) -> None:
    leaked: list[Delivery] = []

    def on_ack(original: Function) -> Function:
        def take_ack(self: AgentConnection, frame: Frame) -> None:
            sent = self.session.outbound._unacked.get(frame.payload["ackSeq"])
            if sent is not None and frame.payload["status"] == "duplicate":
                leaked.append(sent.delivery)
            original(self, frame)

        return take_ack

    def leak(outbound: Outbound) -> None:
        def acked_up_to(ack: int) -> list[Delivery]:
            settled = Outbound.acked_up_to(outbound, ack)
            leaked.extend(settled)
            return settled

        def take() -> Delivery | None:
            if len(outbound._unacked) + len(leaked) < outbound.window:
                return Outbound.take(outbound)
            if outbound._queue and len(outbound._unacked) < outbound.window:
                patch.slipped()
            return None

        patch.set(outbound, "acked_up_to", acked_up_to)
        patch.set(outbound, "take", take)

    patch.wrap(AgentConnection, "_on_ack", on_ack)
    _on_outbound(patch, leak)


def _full(outbound: Outbound) -> bool:
    return len(outbound._queue) >= SMALL_QUEUE


@plant("agent-queue-drops-oldest", scenario="acks-lost", law="progress")
def queue_drops_oldest(patch: Patch) -> None:
    def shrink(outbound: Outbound) -> None:
        def enqueue(draft: Draft) -> Delivery:
            if _full(outbound):
                patch.slipped()
                outbound._queue.popleft()
            return Outbound.enqueue(outbound, draft)

        patch.set(outbound, "enqueue", enqueue)

    _on_outbound(patch, shrink)


@plant("agent-number-taken-too-early", scenario="acks-lost", law="numbering")
def number_taken_too_early(patch: Patch) -> None:
    def shrink(outbound: Outbound) -> None:
        def enqueue(draft: Draft) -> Delivery:
            if _full(outbound):
                patch.slipped()
                outbound.next_seq += 1
                raise QueueFull
            return Outbound.enqueue(outbound, draft)

        patch.set(outbound, "enqueue", enqueue)

    _on_outbound(patch, shrink)


# What was not agreed


@plant("agent-ready-limits-unclamped", scenario="wide-ready", law="chunks")
def ready_limits_unclamped(patch: Patch) -> None:
    def unclamped(self: AgentConnection, offered: Members) -> None:
        if offered["chunkRawBytes"] > self.contract.limits.chunk_raw_bytes:
            patch.slipped()
        self._chunk_raw_bytes = offered["chunkRawBytes"]
        patch.set(self.session.chunks, "refusal", lambda *_: None)

    def trust(link: GatewayLink) -> None:
        # The check of what leaves would find the chunk, so it is gone too.
        patch.set(link._outbox.builder, "_checked", lambda _type, members: encode(members))

    patch.after(AgentConnection, "_take_limits", unclamped)
    patch.after(GatewayLink, "__init__", lambda self, *_: trust(self))


@plant("agent-optional-feature-unlisted", scenario="fix", law="capabilities")
def optional_feature_unlisted(patch: Patch) -> None:
    def check(self: GatewayLink, event: Event) -> None:
        if isinstance(event, BecameReady) and "policy.check" not in event.capabilities and self._connection:
            patch.slipped()
            payload = {"jobId": self._outbox.ids(), "actionType": "write_file"}
            draft = Draft("policy.check", payload, self._connection.workspace_id, self._outbox.ids())
            self._connection.send(draft, self._ctx.now())

    patch.after(GatewayLink, "_on_event", check)


@plant("agent-unhandled-kind-answered", scenario="unserved-kind", law="unhandled-rejected")
def unhandled_kind_answered(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def take(self: LocalAgent, frame: Frame) -> str | None:
            if frame.payload["kind"] == "scan.report":
                patch.slipped()
                self._link.send_failure(frame.request_id or "", frame.workspace_id, "error", "internal")
                return None
            code: str | None = original(self, frame)
            return code

        return take

    patch.wrap(LocalAgent, "_take_request", make)


@plant("agent-approval-token-unchecked", scenario="approval-forged", law="approvals")
def approval_token_unchecked(patch: Patch) -> None:
    def claims(token: str, _trusted: object) -> approvals.Claims | None:
        patch.slipped()
        return approvals._claims(approvals._decoded(token.split(".")[1]))

    patch.set(work, "verified_claims", claims)


@plant("agent-approval-expired-accepted", scenario="approval-expired", law="approvals")
def approval_expired_accepted(patch: Patch) -> None:
    def allows(claims: approvals.Claims, *due: Any) -> bool:
        if due[-1] >= claims.exp:
            patch.slipped()
        return approvals.allows(claims, due[0], due[1], due[2], due[3], 0.0)

    patch.set(work, "allows", allows)


# Metadata


@plant("agent-event-with-message", scenario="audited", law="agent-frames-valid")
def event_with_message(patch: Patch) -> None:
    change_written(patch, of_type("job.event", lambda members: members["payload"].update(message="Reading on.")))


@plant("agent-audit-with-summary", scenario="audited", law="agent-frames-valid")
def audit_with_summary(patch: Patch) -> None:
    change_written(patch, of_type("audit.event", lambda members: members["payload"].update(summary="A file.")))


@plant("agent-result-hash-with-prefix", scenario="audited", law="agent-frames-valid")
def result_hash_with_prefix(patch: Patch) -> None:
    def change(members: Members) -> None:
        members["payload"]["diffSha256"] = f"sha256:{members['payload']['diffSha256']}"

    change_written(patch, of_type("job.result", change))


# Time


@plant("agent-handshake-wait-too-long", scenario="no-ready", law="v1-fallback")
def handshake_wait_too_long(patch: Patch) -> None:
    def wait(self: AgentConnection, now: float, *_: object) -> None:
        patch.slipped()
        self._timers[Timer.HANDSHAKE] = now + 30.0

    patch.after(AgentConnection, "start", wait)


@plant("agent-text-ping-dropped", scenario="silence", law="heartbeats")
def text_ping_dropped(patch: Patch) -> None:
    def stop(self: AgentConnection, *_: object) -> None:
        patch.slipped()
        self._timers.pop(Timer.PING, None)

    patch.after(AgentConnection, "_on_handshake", stop)
