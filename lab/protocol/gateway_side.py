"""A connection as the gateway sees it: who registers, which session it resumes, and the signed ready."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lab.errors import MisuseError
from lab.protocol.capabilities import has_capabilities, of_revision
from lab.protocol.connection import Connection, Timer
from lab.protocol.contract import Contract, Direction
from lab.protocol.events import BecameReady, TurnedV1
from lab.protocol.frames import Draft, Frame
from lab.protocol.handshake import TRANSITIONS, State, Step
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Delivery
from lab.protocol.session import FATAL_ENDS_BEFORE_FRESH_START
from lab.protocol.signing import SignatureMode

HANDSHAKE_GRACE = 2.0
"""Seconds beyond a handshake step, so that an agent's fallback still finds the connection open (HS-022)."""

STRICT_TENANT_MODES = frozenset({"hybrid", "client"})
"""Tenant modes whose agents must enforce signatures (SG-012); `hosted` takes any (SG-013)."""

SESSIONS_KEPT = 4096


@dataclass(frozen=True)
class GatewayPolicy:
    """What a gateway asks of agents and offers them."""

    tenant_mode: str = "client"
    signs: bool = True
    """Without a signing key a gateway does not negotiate v2 (SG-019, HS-025)."""
    knows_v2: bool = True
    """One that does not leaves a v2 register unanswered, as a gateway from before v2 does (HS-020)."""
    capabilities: tuple[str, ...] = ("job.assign", "job.options", "job.chat", "job.inline.16k")
    offered: Mapping[str, int] = field(default_factory=dict)
    """Members of ready.limits that differ from the contract's."""


@dataclass
class KeptSession:
    """A session in a gateway's memory, with the outbox that its frames leave by."""

    tenant_id: str
    agent_id: str
    outbox: Outbox


class SessionStore:
    """The sessions of one gateway instance, in memory (RS-009, RS-010)."""

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl = ttl_seconds
        self._kept: OrderedDict[str, KeptSession] = OrderedDict()

    def keep(self, session_id: str, kept: KeptSession) -> None:
        """Remember a session; beyond the bound the oldest is forgotten."""
        self._kept[session_id] = kept
        if len(self._kept) > SESSIONS_KEPT:
            self._kept.popitem(last=False)

    def discard(self, session_id: str) -> None:
        """Forget a session."""
        self._kept.pop(session_id, None)

    def resumable(
        self, resume: Mapping[str, Any] | None, tenant_id: str, agent_id: str, now: float
    ) -> KeptSession | None:
        """The session that a `resume` asks for, None when it is not kept any more (RS-009, RS-018)."""
        kept = None if resume is None else self._kept.get(resume["sessionId"])
        if kept is None or (kept.tenant_id, kept.agent_id) != (tenant_id, agent_id):
            return None
        # Decision 16, mirrored: no progress in this session any more.
        if kept.outbox.session.fatal_ends >= FATAL_ENDS_BEFORE_FRESH_START:
            return None
        dropped_at = kept.outbox.session.dropped_at
        return None if dropped_at is not None and now - dropped_at > self._ttl else kept


class GatewayConnection(Connection):
    """One agent's connection at the gateway. `fresh_outbox` makes the outbox of a session that does not resume."""

    receives = Direction.LA_TO_CP
    # WS-030
    checks = ("allowlist", "schema", "tenant", "agent", "direction", "state", "seq", "chunks")

    def __init__(
        self,
        contract: Contract,
        tenant_id: str,
        agent_id: str,
        epoch_ms: int,
        policy: GatewayPolicy,
        sessions: SessionStore,
        fresh_outbox: Callable[[], Outbox],
        now: float,
    ) -> None:
        super().__init__(contract, tenant_id, agent_id, fresh_outbox(), epoch_ms)
        self._policy = policy
        self._sessions = sessions
        self._register: Mapping[str, Any] = {}
        self._skewed = False
        self.ack_timeout = self._limit("ackTimeoutMs", contract.limits.ack_timeout_ms) / 1000
        self.capabilities: tuple[str, ...] = ()
        """What both sides can do (HS-032)."""
        self.announced: tuple[str, ...] = ()
        """What the agent announced; hello wins over register (HS-034)."""
        self._told_any = False
        self._await_step(now)
        self._timers[Timer.LIVENESS] = now + contract.limits.session_ttl_seconds

    def _limit(self, name: str, own: int) -> int:
        return self._policy.offered.get(name, own)

    def _await_step(self, now: float) -> None:
        # WS-023: 10 s for each handshake step.
        self._timers[Timer.HANDSHAKE] = now + self.contract.limits.handshake_timeout_ms / 1000 + HANDSHAKE_GRACE

    def send(self, draft: Draft, now: float) -> Delivery:
        """As every connection's; raises `MisuseError` before READY, when it is open which session will serve."""
        if self.state not in (State.READY, State.ENDED):
            raise MisuseError("a gateway's connection has no session before READY; use the outbox of the last one")
        return super().send(draft, now)

    # Checks

    def _check_agent(self, members: Mapping[str, Any], _now: float) -> str | None:
        # WS-009: whatever an agent sends names it.
        return None if members.get("agentId") == self.agent_id else "agent_mismatch"

    # Handshake

    def _on_handshake(self, step: Step, frame: Frame, now: float) -> None:
        self.workspace_id = frame.workspace_id
        self._skewed = self._skewed or self._is_skewed(frame.ts, now)
        if step is Step.REGISTER:
            self._on_register(frame, now)
        elif step is Step.HELLO:
            self._on_hello(frame, now)

    def _on_register(self, frame: Frame, now: float) -> None:
        self._register = frame.payload
        self._await_step(now)
        if self._policy.knows_v2 and not self._policy.signs:
            # HS-025, SG-019: no key, no v2; the agent falls back on this connection.
            self.fail("protocol_unsupported", now)

    def _is_skewed(self, ts: str, now: float) -> bool:
        # WS-025, HS-012: judged on register and hello only.
        try:
            stated = datetime.fromisoformat(ts).timestamp() * 1000
        except ValueError:
            return True
        return abs(stated - (self.epoch_ms + now * 1000)) > self.contract.limits.clock_skew_seconds * 1000

    def _on_hello(self, frame: Frame, now: float) -> None:
        # HS-012: hello may state its clock once more.
        clock = frame.payload.get("clock", {}).get("utc")
        self._skewed = self._skewed or (clock is not None and self._is_skewed(clock, now))
        # HS-010, HS-011: tenant and agent were checked on the frame; then skew, then the signature mode.
        if not (self._policy.knows_v2 and self._policy.signs):
            return
        if self._skewed:
            self.fail("clock_skew", now)
        elif (
            self._policy.tenant_mode in STRICT_TENANT_MODES and frame.payload["signatureMode"] != SignatureMode.ENFORCE
        ):
            # HS-044: hello's mode counts.
            self.fail("signature_mode_insufficient", now)
        else:
            self._become_ready(frame.payload, now)

    def _become_ready(self, hello: Mapping[str, Any], now: float) -> None:
        self.announced = tuple(hello.get("capabilities", self._register.get("capabilities", ())))
        # CP-018: one that names no capability at all may be of a revision whose ready has no place for them.
        self._told_any = bool(self.announced or self._register.get("capabilities"))
        # HS-031, HS-032: listed only for an agent that announced it.
        able = of_revision(self._policy.capabilities, self.contract.revision)
        self.capabilities = tuple(name for name in able if name in self.announced)
        resume = self._register.get("resume")
        kept = self._sessions.resumable(resume, self.tenant_id, self.agent_id, now)
        had: list[Delivery] = []
        if kept is not None and resume is not None:
            if _impossible(resume, kept):
                # RS-019, decision 24: what was never sent, or less than was acked, cannot have been received last.
                self._sessions.discard(resume["sessionId"])
                self.fail("handshake_violation", now)
                return
            self.outbox = kept.outbox
            # RS-004: lastRecvSeq is an ack of all up to it.
            had, _ = self.session.outbound.resume(int(resume["lastRecvSeq"]), now)
        else:
            self.session.session_id = self.outbox.ids()
            self._sessions.keep(self.session.session_id, KeptSession(self.tenant_id, self.agent_id, self.outbox))
        session_id = self.session.session_id or ""
        self._own_session()
        self._write_ready(session_id, kept is not None, now)
        self.state = TRANSITIONS[(self.state, Step.READY)]
        self._timers.pop(Timer.HANDSHAKE, None)
        sent_again = self._write_again(now) if kept is not None else 0
        self._events.append(BecameReady(kept is not None, session_id, self.capabilities, sent_again))
        self._settle(had)

    def _write_ready(self, session_id: str, resumed: bool, now: float) -> None:
        limits = self.contract.limits
        payload: dict[str, Any] = {
            "sessionId": session_id,
            "resumed": resumed,
            "peerLastSeq": self.session.inbound.last_seq,
            "limits": {
                "maxFrameBytes": self._limit("maxFrameBytes", limits.max_frame_bytes),
                "chunkRawBytes": self._limit("chunkRawBytes", limits.chunk_raw_bytes),
                "maxChunks": self._limit("maxChunks", limits.max_chunks),
                "ackTimeoutMs": self._limit("ackTimeoutMs", limits.ack_timeout_ms),
                "maxRetransmissions": self._limit("maxRetransmissions", limits.max_retransmissions),
                "heartbeatSeconds": self._limit("heartbeatSeconds", limits.heartbeat_seconds),
            },
        }
        # HS-030: from revision 2.1 on.
        if self._told_any and has_capabilities(self.contract.revision):
            payload["capabilities"] = list(self.capabilities)
        self.write_control(Draft("ready", payload, self.workspace_id), now, ack=False)

    def _on_data(self, frame: Frame, now: float) -> None:
        if frame.type == "content.response" and frame.request_id is not None:
            settled = self.session.outbound.settle_request(frame.request_id)
            self._settle([settled] if settled is not None else [])
        super()._on_data(frame, now)

    # v1

    def _on_v1(self, members: Mapping[str, Any]) -> None:
        step = (self.state, Step.V1_REGISTER)
        if members.get("type") == "register" and step in TRANSITIONS:
            self.state = TRANSITIONS[step]
            self._timers.pop(Timer.HANDSHAKE, None)
            self._events.append(TurnedV1())
        else:
            super()._on_v1(members)


def _impossible(resume: Mapping[str, Any], kept: KeptSession) -> bool:
    outbound = kept.outbox.session.outbound
    return not outbound.highest_acked <= int(resume["lastRecvSeq"]) <= outbound.highest_sent
