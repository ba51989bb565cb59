"""Plays a trace against the lab's own core, in either role: the engine under test speaks for one side (CT-024).

The trace speaks for the other side, on the trace's own time. What the engine writes is held against the trace's frames
of its side, and at the end it must have refused as the trace says, been told so by its peer, or still be ready.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from lab.contract.traces import Side, Step, Trace, load_traces
from lab.contract.vectors import revision_order
from lab.errors import MisuseError
from lab.protocol.agent_side import AgentConnection, Registration
from lab.protocol.connection import PING, PONG, Connection
from lab.protocol.contract import Contract
from lab.protocol.errors import CLOSE_BASE
from lab.protocol.events import Close, Ended, Event, HeartbeatDue, Received, Transmit
from lab.protocol.frames import Chunk, Draft, FrameBuilder, RefusedDraft
from lab.protocol.gateway_side import GatewayConnection, GatewayPolicy, SessionStore
from lab.protocol.outbox import Outbox
from lab.protocol.session import AGENT_SENDER, GATEWAY_SENDER, Session
from lab.protocol.signing import SignatureMode, Signer, Verifier

_SAID = ("type", "seq", "msgId", "requestId", "chunk")
"""Members that an engine's frame shares with the trace's, beside the payload. A piggybacked ack is its own affair."""

_V1_PORT, _V1_PATH = 1, "/"
"""What a v1 register would carry; no trace comes to it."""

_TIMERS_AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What came of a trace. `role` is the side under test, None when the file could not be read."""

    name: str
    role: Side | None
    held: bool
    due: str
    seen: str


class _Broken(Exception):
    """The engine did otherwise than the trace says; the text is what was seen."""


def verify_traces(folder: Path, contract: Contract) -> list[TraceResult]:
    """Play every trace of the contract in `folder` that counts for its revision, in both roles.

    `contract` is one revision of that folder. A file that is no trace is a result too, which does not hold.
    """
    found = load_traces(folder)
    results = [TraceResult("traces", None, False, "a readable trace", fault) for fault in found.faults]
    newest = revision_order(contract.revision)
    for trace in found.traces:
        if revision_order(trace.revision) <= newest:
            results.extend(play_trace(trace, role, contract) for role in Side)
    return results


def play_trace(trace: Trace, role: Side, contract: Contract) -> TraceResult:
    """Play one trace with the lab's core of `contract` as `role`. Never raises for what a trace can hold."""
    player = TracePlayer(trace, role, contract)
    try:
        seen, held = player.play(), True
    except _Broken as broken:
        seen, held = str(broken), False
    return TraceResult(trace.name, role, held, str(trace.expect), seen)


class TracePlayer:
    """One playing of a trace; `play` once. `written` are then the engine's frames, each with its step."""

    def __init__(self, trace: Trace, role: Side, contract: Contract) -> None:
        self._trace = trace
        self._role = role
        make = _AgentEngine if role is Side.LA else _GatewayEngine
        self._engine: _AgentEngine | _GatewayEngine = make(trace, contract)
        self._connection = self._engine.connect(0.0)
        self._waiting: deque[str] = deque()
        self._ended: Ended | None = None
        self._ended_at: Step | None = None
        self._close: int | None = None
        self._codes = contract.error_codes
        self.written: list[tuple[Step, Mapping[str, Any]]] = []

    def play(self) -> str:
        """What was seen, in words. Raises for what differs from the trace."""
        for step in self._trace.steps:
            self._advance(step.at)
            if step.reconnects:
                self._reconnect(step)
            elif step.side is not self._role:
                self._hear(step)
            elif step.fault:
                # Whatever the engine has to say in this place, the frame that breaks the rule stands for it.
                self._waiting.clear()
            else:
                self._speak(step)
        return self._verdict()

    # Time

    def _advance(self, now: float) -> None:
        for _ in range(_TIMERS_AT_MOST):
            due = self._connection.next_timeout()
            if due is None or due > now:
                return
            self._handle(self._connection.handle_timeout(due), due)
        raise _Broken(f"its timers never come to rest at {now:g} s")

    # Steps

    def _reconnect(self, step: Step) -> None:
        self._nothing_waits(f"before {step}")
        self._handle(self._connection.closed(step.at), step.at)
        self._connection = self._engine.connect(step.at)
        self._ended = None

    def _is_over(self) -> bool:
        return self._ended is not None

    def _hear(self, step: Step) -> None:
        if self._is_over():
            raise _Broken(f"{self._how_it_ended()}, before {step}")
        if not step.lost:
            self._handle(self._connection.receive_untrusted(step.text(), step.at), step.at)
            self._ended_at = self._ended_at or (step if self._is_over() else None)

    def _speak(self, step: Step) -> None:
        if not self._waiting:
            try:
                self._handle(self._engine.say(self._connection, step), step.at)
            except RefusedDraft as refused:
                raise _Broken(f"it refuses to send {step}: {refused.code}") from None
        if not self._waiting:
            raise _Broken(f"it writes nothing at {step}" + (f": {self._how_it_ended()}" if self._ended else ""))
        members = json.loads(self._waiting.popleft())
        self._compare(step, members)
        self.written.append((step, members))

    def _compare(self, step: Step, members: Mapping[str, Any]) -> None:
        due = step.frame or {}
        for name in _SAID:
            if members.get(name) != due.get(name):
                raise _Broken(f"{_word(members)} at {step}: `{name}` is not the trace's")
        said = members["payload"]
        if step.type == "error":
            if said["code"] not in self._trace.expect.codes:
                raise _Broken(f"it refuses with {said['code']}")
        elif any(said.get(name) != value for name, value in step.payload.items()):
            raise _Broken(f"{_word(members)} at {step}: the payload is not the trace's")

    # What the engine does

    def _handle(self, events: list[Event], now: float) -> None:
        for event in events:
            match event:
                case Received():
                    self._answer(event, now)
                case HeartbeatDue():
                    self._beat(now)
                case Ended():
                    self._ended = event
                case _:
                    pass
        self._take_output()

    def _take_output(self) -> None:
        for output in self._connection.take_output():
            match output:
                case Transmit() if output.text not in (PING, PONG):
                    self._waiting.append(output.text)
                case Close():
                    self._close = output.code
                case _:
                    pass

    def _answer(self, received: Received, now: float) -> None:
        frame = received.frame
        answers = [step for step in self._trace.own(self._role) if step.payload.get("ackMsgId") == frame.msg_id]
        code = answers[0].payload.get("errorCode") if answers else None
        if code is None:
            self._connection.accept(frame, now)
        else:
            self._connection.reject(frame, code, now)

    def _beat(self, now: float) -> None:
        beats = [step for step in self._trace.own(self._role) if step.type == "heartbeat" and step.at >= now]
        if beats:
            self._connection.send(_draft(beats[0]), now)

    # The end

    def _nothing_waits(self, where: str) -> None:
        if self._waiting:
            raise _Broken(f"{_word(json.loads(self._waiting[0]))} {where}, where nothing is due")

    def _how_it_ended(self) -> str:
        ended = self._ended
        if ended is None:
            return "it went on"
        return f"it ended with {ended.code or 'no code'}, {'its own' if ended.by == 'local' else 'as its peer said'}"

    def _verdict(self) -> str:
        self._nothing_waits("at the end")
        due, ended = self._trace.expect, self._ended
        if due.error is None:
            if ended is not None:
                raise _Broken(self._how_it_ended())
            return "went well"
        if ended is None:
            raise _Broken("it went on")
        if self._role is due.by:
            # The frame that breaks the rule stands right before the refusal.
            right = ended.by == "local" and self._ended_at is self._trace.steps[-2]
            right = right and self._close == CLOSE_BASE + self._codes.index(str(ended.code))
        else:
            right = ended.by == "remote"
        if not right or ended.code not in due.codes:
            raise _Broken(f"{self._how_it_ended()}, closed with {self._close}")
        return self._how_it_ended()


class _Ids:
    """Gives the ids of the trace's own frames, in their order, and tells the nonce of the frame that is made."""

    def __init__(self, trace: Trace, role: Side) -> None:
        self._due = iter(_ids(trace, role))
        self._extra = 0
        self._step: Step | None = None

    def id(self) -> str:
        """The next id; a made-up one where the trace has none left."""
        text, self._step = next(self._due, ("", None))
        self._extra += 1
        return text or f"f0f0f0f0-0000-4000-8000-{self._extra:012x}"

    def nonce(self) -> str:
        """The nonce of the frame whose id was given last."""
        sig = (self._step.frame or {}).get("sig", {}) if self._step is not None else {}
        return str(sig.get("nonce", f"made-up-nonce-{self._extra:010d}"))


def _ids(trace: Trace, role: Side) -> Iterator[tuple[str, Step]]:
    seen: set[object] = set()
    for step in trace.own(role):
        msg_id = (step.frame or {}).get("msgId")
        # A copy of a frame is made of what was sent.
        if msg_id in seen:
            continue
        seen.add(msg_id)
        if step.type == "ready" and step.payload.get("resumed") is not True:
            yield str(step.payload.get("sessionId", "")), step
        yield str(msg_id), step


def _draft(step: Step) -> Draft:
    frame = step.frame or {}
    place = frame.get("chunk")
    chunk = Chunk(place["index"], place["total"], place["last"]) if isinstance(place, Mapping) else None
    return Draft(step.type, step.payload, str(frame.get("workspaceId")), frame.get("requestId"), chunk)


def _word(members: Mapping[str, Any]) -> str:
    if members["type"] == "error":
        return f"it refuses with {members['payload']['code']}"
    return f"it writes {members['type']} seq {members['seq']}"


class _GatewayEngine:
    """The core of the gateway, with the trace's tenant, key and ids."""

    def __init__(self, trace: Trace, contract: Contract) -> None:
        self._trace = trace
        self._contract = contract
        self._ids = _Ids(trace, Side.CP)
        self._sessions = SessionStore(contract.limits.session_ttl_seconds)
        ready = next((step.payload for step in trace.own(Side.CP) if step.type == "ready"), {})
        self._policy = GatewayPolicy(trace.mode, offered=ready.get("limits", {}))
        if "capabilities" in ready:
            self._policy = replace(self._policy, capabilities=tuple(ready["capabilities"]))

    def connect(self, now: float) -> Connection:
        """The gateway's end of a new connection."""
        trace = self._trace
        return GatewayConnection(
            self._contract, trace.tenant, trace.agent, trace.start_ms, self._policy, self._sessions, self._outbox, now
        )

    def _outbox(self) -> Outbox:
        trace, contract = self._trace, self._contract
        key_id, seed = next(iter(trace.keys.items()), ("none", bytes(32)))
        signer = Signer(key_id, SigningKey(seed), self._ids.nonce)
        builder = FrameBuilder(contract, trace.tenant, trace.agent, trace.start_ms, signer)
        return Outbox(Session(contract.limits, GATEWAY_SENDER), contract, builder, self._ids.id, signs_anew=True)

    def say(self, connection: Connection, step: Step) -> list[Event]:
        """Have the engine make the step, if that is its application's to do."""
        if _is_data(self._contract, step):
            try:
                connection.send(_draft(step), step.at)
            except MisuseError:
                # Before READY it has no session to send in.
                raise _Broken(f"it is not ready at {step}") from None
        return []


class _AgentEngine:
    """The core of the Local Agent, with the trace's registration, keys and ids; its session outlives a connection."""

    def __init__(self, trace: Trace, contract: Contract) -> None:
        self._trace = trace
        self._contract = contract
        builder = FrameBuilder(contract, trace.tenant, trace.agent, trace.start_ms)
        ids = _Ids(trace, Side.LA)
        self._outbox = Outbox(Session(contract.limits, AGENT_SENDER), contract, builder, ids.id, signs_anew=False)
        public = {key_id: bytes(SigningKey(seed).verify_key) for key_id, seed in trace.keys.items()}
        self._verifier = Verifier(public, contract.limits.clock_skew_seconds)

    def connect(self, _now: float) -> Connection:
        """The agent's end of a new connection; its first word is said at the step that is its register."""
        trace, limits = self._trace, self._contract.limits
        return AgentConnection(
            self._contract,
            trace.tenant,
            trace.agent,
            self._outbox,
            trace.start_ms,
            self._registration(),
            self._verifier,
            limits.handshake_timeout_ms / 1000,
        )

    def _registration(self) -> Registration:
        said = next((step.payload for step in self._trace.steps if step.type == "register"), {})
        spaces = tuple((space["workspaceId"], space["pathSha256"]) for space in said.get("workspaces", ()))
        return Registration(
            version=said.get("version", "0"),
            capabilities=tuple(said.get("capabilities", ())),
            signature_mode=SignatureMode(said.get("signatureMode", "enforce")),
            workspaces=spaces or (("unknown", "0" * 64),),
            v1_port=_V1_PORT,
            v1_workspace_path=_V1_PATH,
        )

    def say(self, connection: Connection, step: Step) -> list[Event]:
        """Have the engine make the step, if that is its application's to do."""
        if step.type == "register" and isinstance(connection, AgentConnection):
            later = (other for other in self._trace.steps if other.number > step.number and other.type == "hello")
            hello = next((other.payload for other in later if not other.fault), {})
            own = {name: value for name, value in hello.items() if name not in ("signatureMode", "capabilities")}
            return connection.start(step.at, own)
        if _is_data(self._contract, step):
            connection.send(_draft(step), step.at)
        return []


def _is_data(contract: Contract, step: Step) -> bool:
    return step.type in contract.types and not contract.types[step.type].control
