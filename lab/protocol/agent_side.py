"""A connection as a Local Agent sees it: register and hello, the gateway's ready, heartbeats, content out."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.protocol.chunks import STREAMS_REMEMBERED, chunk_count, cut
from lab.protocol.connection import PING, Connection, Timer, v1_text
from lab.protocol.contract import Contract, Direction
from lab.protocol.errors import ERROR_CODES
from lab.protocol.events import (
    BecameReady,
    ContentFailed,
    Event,
    HeartbeatDue,
    PeerError,
    Settled,
    SignatureWarning,
    Transmit,
    TurnedV1,
)
from lab.protocol.frames import Draft, Frame, RefusedDraft
from lab.protocol.handshake import TRANSITIONS, State, Step
from lab.protocol.outbox import Outbox
from lab.protocol.session import FATAL_ENDS_BEFORE_FRESH_START, Session
from lab.protocol.signing import SignatureMode, Verifier

RESUME_SECONDS = 120.0
"""How long an agent keeps a session after its connection dropped (RS-008)."""

PING_SECONDS = 30.0
"""WS-024."""

MIN_TIME_MS = 50
"""Shortest time that an agent takes from ready.limits (decision 26)."""


@dataclass(frozen=True)
class Registration:
    """What an agent says of itself in register and hello."""

    version: str
    capabilities: tuple[str, ...]
    signature_mode: SignatureMode
    workspaces: tuple[tuple[str, str], ...]
    """Pairs of workspaceId and pathSha256; never a path (HS-004)."""
    v1_port: int
    v1_workspace_path: str
    """Only a v1 register carries the path (decision 20)."""


@dataclass
class ContentSource:
    """A body on its way out. The next chunk is cut when the window has room for it (CH-015)."""

    request_id: str
    workspace_id: str
    content_type: str
    body: bytes
    next_chunk: int = 0
    chunk_raw_bytes: int = 0
    """Size of its chunks, 0 before the first: a series goes on as it began, whatever a later ready offers (RS-015)."""

    @property
    def finished(self) -> bool:
        """Whether its last chunk has been cut."""
        return self.chunk_raw_bytes > 0 and self.next_chunk == chunk_count(len(self.body), self.chunk_raw_bytes)


class AgentConnection(Connection):
    """Start it with `start` once the socket is open."""

    receives = Direction.CP_TO_LA
    # WS-031 for direction before schema, WS-033 for the signature before anything uses a seq.
    checks = ("allowlist", "direction", "schema", "tenant", "agent", "signature", "state", "seq", "chunks")

    def __init__(
        self,
        contract: Contract,
        tenant_id: str,
        agent_id: str,
        outbox: Outbox,
        epoch_ms: int,
        registration: Registration,
        verifier: Verifier,
        handshake_seconds: float,
    ) -> None:
        super().__init__(contract, tenant_id, agent_id, outbox, epoch_ms)
        self._registration = registration
        self._verifier = verifier
        self._handshake_seconds = handshake_seconds
        self._sources: list[ContentSource] = []
        self._heartbeat_seconds = float(contract.limits.heartbeat_seconds)
        self._chunk_raw_bytes = contract.limits.chunk_raw_bytes
        self._max_chunks = contract.limits.max_chunks
        self.workspace_id = registration.workspaces[0][0]

    # Handshake

    def start(self, now: float, hello: Mapping[str, Any]) -> list[Event]:
        """Write register and hello, one right after the other (HS-009). `hello` adds its optional members."""
        if not may_resume(self.session, now):
            self._lose_session()
        register = self._register()
        self.write_control(Draft("register", register, self.workspace_id), now, ack=False)
        self.state = TRANSITIONS[(self.state, Step.REGISTER)]
        members = {"signatureMode": self._registration.signature_mode.value, **self._capabilities(), **hello}
        self.write_control(Draft("hello", members, self.workspace_id), now, ack=False)
        self.state = TRANSITIONS[(self.state, Step.HELLO)]
        self._timers[Timer.HANDSHAKE] = now + self._handshake_seconds
        self._watch(now)
        return self._take_events(now)

    def start_v1(self, now: float) -> list[Event]:
        """Speak v1 from the first message on: v2 is suspended (HS-021)."""
        self._watch(now)
        self.fall_back()
        return self._take_events(now)

    def _watch(self, now: float) -> None:
        # WS-024: the text ping of every state, and a peer that never says a word.
        self._timers[Timer.PING] = now + PING_SECONDS
        self._timers[Timer.LIVENESS] = now + self.contract.limits.session_ttl_seconds

    def _register(self) -> dict[str, Any]:
        registration = self._registration
        payload: dict[str, Any] = {
            "protocol": 2,
            "version": registration.version,
            **self._capabilities(),
            "signatureMode": registration.signature_mode.value,
            "workspaces": [{"workspaceId": name, "pathSha256": path} for name, path in registration.workspaces],
        }
        # HS-006: only with a session from before.
        if self.session.session_id is not None:
            payload["resume"] = {
                "sessionId": self.session.session_id,
                "lastRecvSeq": self.session.inbound.last_seq,
            }
        return payload

    def _capabilities(self) -> dict[str, Any]:
        # HS-033: the same set in both frames.
        return {"capabilities": list(self._registration.capabilities)}

    def _on_handshake(self, _step: Step, frame: Frame, now: float) -> None:
        ready = frame.payload
        if self._impossible(ready):
            # Decision 24
            self._lose_session()
            self.fail("handshake_violation", now)
            return
        self._timers.pop(Timer.HANDSHAKE, None)
        self._take_limits(ready["limits"])
        self._timers[Timer.HEARTBEAT] = now + self._heartbeat_seconds
        sent_again = 0
        if ready["resumed"]:
            had, _ = self.session.outbound.resume(int(ready["peerLastSeq"]), now)
            self._settle(had)
            sent_again = self._write_again(now)
        else:
            self._lose_session()
            self.session.session_id = ready["sessionId"]
        self._own_session()
        capabilities = tuple(ready.get("capabilities", ()))
        self._events.append(BecameReady(bool(ready["resumed"]), ready["sessionId"], capabilities, sent_again))

    def _lose_session(self) -> None:
        # RS-006, RS-014: what was in flight fails, and a body that was on its way is not finished.
        self._events.extend(ContentFailed(source.request_id, "agent_offline") for source in self._sources)
        self._sources.clear()
        self._events.extend(Settled(delivery) for delivery in self.session.lost())

    def _impossible(self, ready: Mapping[str, Any]) -> bool:
        if not ready["resumed"]:
            return False
        outbound = self.session.outbound
        return (
            # Without a session nothing was asked.
            ready["sessionId"] != self.session.session_id
            or not outbound.highest_acked <= int(ready["peerLastSeq"]) <= outbound.highest_sent
        )

    def _take_limits(self, offered: Mapping[str, Any]) -> None:
        # HS-027, decision 26: never above the contract's own, times not below 50 ms.
        limits = self.contract.limits
        self.ack_timeout = _clamp(offered["ackTimeoutMs"], MIN_TIME_MS, limits.ack_timeout_ms) / 1000
        self._heartbeat_seconds = float(_clamp(offered["heartbeatSeconds"], 1, limits.heartbeat_seconds))
        self._chunk_raw_bytes = _clamp(offered["chunkRawBytes"], 1, limits.chunk_raw_bytes)
        self._max_chunks = _clamp(offered["maxChunks"], 1, limits.max_chunks)

    def fall_back(self) -> None:
        """Go on in v1 on the same connection (HS-020)."""
        self.state = TRANSITIONS[(self.state, Step.V1_REGISTER)]
        self._timers.pop(Timer.HANDSHAKE, None)
        self._output.append(
            Transmit(
                v1_text(
                    {
                        "type": "register",
                        "tenantId": self.tenant_id,
                        "port": self._registration.v1_port,
                        "workspacePath": self._registration.v1_workspace_path,
                    }
                )
            )
        )
        self._events.append(TurnedV1())

    def _on_error(self, frame: Frame) -> None:
        code = frame.payload["code"]
        if self.state is State.READY or ERROR_CODES[code].fatal:
            super()._on_error(frame)
            return
        self._events.append(PeerError(code))
        # HS-020, HS-023, decision 25: protocol_unsupported alone falls back; any other refusal ends plainly.
        if code == "protocol_unsupported":
            self.fall_back()
        else:
            self.end(code, "remote")

    # Checks

    def _check_agent(self, members: Mapping[str, Any], _now: float) -> str | None:
        return None if members.get("agentId", self.agent_id) == self.agent_id else "agent_mismatch"

    def _check_signature(self, members: Mapping[str, Any], now: float) -> str | None:
        mode = self._registration.signature_mode
        type_name = members["type"]
        if mode is SignatureMode.OFF or not self.contract.types[type_name].signed:
            return None
        # Decision 21: a byte-true copy is a duplicate before its nonce is judged.
        code = self._verifier.refusal(members, self._wall_ms(now), nonce_once=not self._is_copy(members))
        if code is None or mode is SignatureMode.ENFORCE:
            return code
        self._events.append(SignatureWarning(code, type_name))
        return None

    def _wall_ms(self, now: float) -> int:
        return self.epoch_ms + int(now * 1000)

    # Content out

    def send_content(self, request_id: str, workspace_id: str, content_type: str, body: bytes, now: float) -> None:
        """Answer a content.request with a body. Raises `RefusedDraft` before any chunk, with the code of the reason.

        payload_too_large (CH-013), schema_violation, chunk_out_of_order for a requestId that was answered before, or
        rate_limited beyond the series that a peer remembers. After that `Settled` tells of each chunk, or
        `ContentFailed` of what was not cut.
        """
        source = ContentSource(request_id, workspace_id, content_type, body)
        if len(self._sources) >= STREAMS_REMEMBERED:
            raise RefusedDraft("rate_limited", f"{STREAMS_REMEMBERED} bodies are on their way already")
        if any(other.request_id == request_id for other in self._sources):
            raise RefusedDraft("chunk_out_of_order", "a body for this request is on its way already")
        self.outbox.check(self._next_chunk(source), now)
        self._sources.append(source)
        self.flush(now)

    def send_content_failure(
        self, request_id: str, workspace_id: str, status: str, error_code: str, now: float
    ) -> None:
        """Answer a content.request with one empty chunk (CH-010). `status` error, not_found or forbidden."""
        payload = {"status": status, "errorCode": error_code, "encoding": "base64", "data": "", "byteLength": 0}
        self.send(Draft("content.response", payload, workspace_id, request_id, cut(b"", 0, 1)[0]), now)

    def unfinished_content(self) -> Sequence[ContentSource]:
        """Bodies with chunks still to cut; a new connection goes on with them after resumed:true (RS-015)."""
        return tuple(self._sources)

    def go_on_with(self, sources: Sequence[ContentSource]) -> None:
        """Take over the bodies that a dropped connection had not finished."""
        self._sources.extend(sources)

    def flush(self, now: float) -> None:
        super().flush(now)
        while self._serves_session and self._unanswered is None and self._sources and self.session.outbound.has_room:
            # Bodies take turns, so that a long one does not hold up a short one.
            source = self._sources.pop(0)
            try:
                self.outbox.enqueue(self._next_chunk(source), now)
            except RefusedDraft as refused:
                # A body taken over with `go_on_with` is judged here first.
                self._events.append(ContentFailed(source.request_id, refused.code))
                continue
            source.next_chunk += 1
            if not source.finished:
                self._sources.append(source)
            super().flush(now)

    def _next_chunk(self, source: ContentSource) -> Draft:
        """The draft of the chunk that is due. Raises `RefusedDraft` payload_too_large before the first (CH-013)."""
        if source.next_chunk == 0:
            source.chunk_raw_bytes = self._chunk_raw_bytes
            if chunk_count(len(source.body), source.chunk_raw_bytes) > self._max_chunks:
                raise RefusedDraft("payload_too_large", f"{len(source.body)} bytes are over {self._max_chunks} chunks")
        chunk, data = cut(source.body, source.next_chunk, source.chunk_raw_bytes)
        payload = {
            "status": "ok",
            "contentType": source.content_type,
            "encoding": "base64",
            "data": base64.b64encode(data).decode(),
            "byteLength": len(data),
            "totalBytes": len(source.body),
        }
        return Draft("content.response", payload, source.workspace_id, source.request_id, chunk)

    # Time

    def _on_timer(self, timer: Timer, now: float) -> None:
        if timer is Timer.HANDSHAKE:
            # HS-020: no ready in time.
            self.fall_back()
        elif timer is Timer.PING:
            self._timers[Timer.PING] = now + PING_SECONDS
            self._output.append(Transmit(PING))
        elif timer is Timer.HEARTBEAT:
            self._timers[Timer.HEARTBEAT] = now + self._heartbeat_seconds
            self._events.append(HeartbeatDue())
        else:
            super()._on_timer(timer, now)


def may_resume(session: Session, now: float) -> bool:
    """Whether an agent asks to resume: within 120 s (RS-008), and not after too many fatal ends (decision 16)."""
    if session.session_id is None:
        return False
    recent = session.dropped_at is None or now - session.dropped_at <= RESUME_SECONDS
    return recent and session.fatal_ends < FATAL_ENDS_BEFORE_FRESH_START


def _clamp(value: float, low: int, high: int) -> int:
    return int(min(max(value, low), high))
