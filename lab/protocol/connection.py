"""One connection of LA protocol v2: what follows from the checks, acks, liveness and errors, shared by both sides.

The shell's duties: hand every message to `receive_untrusted`, answer each `Received` at once with `accept` or
`reject`, call `handle_timeout` when `next_timeout` is due, and carry out `take_output` after each call. Neither
side ever raises for what a peer sends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from lab.errors import MisuseError, WireError
from lab.protocol import handshake
from lab.protocol.checks import FrameChecks
from lab.protocol.contract import Contract
from lab.protocol.errors import ERROR_CODES, CloseCodes
from lab.protocol.events import (
    Close,
    Ended,
    Event,
    Output,
    Overdue,
    PeerError,
    Received,
    Repeated,
    Settled,
    Transmit,
    V1Message,
)
from lab.protocol.frames import Draft, Frame, read_frame
from lab.protocol.handshake import State, Step
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Delivery, Verdict
from lab.protocol.wire import encode, parse_untrusted

PING, PONG = "ping", "pong"
"""The text messages of v1 that stay as liveness (WS-051, WS-052)."""

MALFORMED_IN_A_ROW = 3
"""Malformed ack or error frames that are dropped before the connection ends (decision 19)."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Timer(Enum):
    """What a connection waits for."""

    HANDSHAKE = auto()
    """The peer's next handshake frame."""
    ACK = auto()
    """The ack of a data frame; its deadline comes from the window."""
    HEARTBEAT = auto()
    """The agent's next heartbeat frame."""
    PING = auto()
    """The agent's next text ping."""
    LIVENESS = auto()
    """Any message of the peer."""


class Connection(FrameChecks):
    """What both sides share."""

    def __init__(self, contract: Contract, tenant_id: str, agent_id: str, outbox: Outbox, epoch_ms: int) -> None:
        super().__init__(contract, tenant_id, agent_id, outbox)
        self.close_codes = CloseCodes(contract.error_codes)
        self.epoch_ms = epoch_ms
        self.workspace_id = "unknown"
        """What session-level frames carry (WS-013)."""
        self.ack_timeout = contract.limits.ack_timeout_ms / 1000
        self._output: list[Output] = []
        self._events: list[Event] = []
        self._timers: dict[Timer, float] = {}
        self._unanswered: Frame | None = None
        self._malformed = 0

    # Messages in

    def receive_untrusted(self, message: str | bytes, now: float) -> list[Event]:
        """Take one WebSocket message: text as str, binary as bytes. Never raises for what the peer sent."""
        if self.state is State.ENDED:
            return []
        # SQ-030: any message is a sign of life.
        self._timers[Timer.LIVENESS] = now + self.contract.limits.session_ttl_seconds
        if message in (PING, PONG):
            self._pong_if(message == PING)
            return self._take_events(now)
        try:
            members = parse_untrusted(message, self.contract.limits.max_frame_bytes)
        except WireError as error:
            # V1-012: a v1 peer knows no error frame; what it garbles is dropped.
            if self.state is not State.V1:
                self.fail(error.code, now)
            return self._take_events(now)
        # V1-002: without schemaVersion it is no v2 frame.
        if "schemaVersion" not in members:
            self._take_v1(members)
        else:
            self._take_frame(members, now)
        return self._take_events(now)

    def _take_events(self, now: float) -> list[Event]:
        self.flush(now)
        events, self._events = self._events, []
        return events

    def _pong_if(self, ping: bool) -> None:
        if ping:
            self._output.append(Transmit(PONG))

    def _take_v1(self, members: Mapping[str, Any]) -> None:
        if members.get("type") in (PING, PONG):
            self._pong_if(members["type"] == PING)
        else:
            self._on_v1(members)

    def _on_v1(self, members: Mapping[str, Any]) -> None:
        self._events.append(V1Message(members))

    def _take_frame(self, members: Mapping[str, Any], now: float) -> None:
        if self.state is State.V1:
            # V1-012: a late v2 frame finds a v1 peer, which does not know it.
            return
        code = self._refusal(members, now)
        if code is None:
            self._malformed = 0
            self._accept(read_frame(members), now)
        elif self._refused_before(members):
            self._consume_refused(members, now)
        elif members.get("type") in ("ack", "error"):
            self._drop_malformed(now)
        else:
            self._refuse(members, code, now)

    # A frame that passed

    def _accept(self, frame: Frame, now: float) -> None:
        step = handshake.step_of(frame.type)
        # SQ-015: the frame that an ack names first, or its own piggyback would hide a rejection.
        if step is Step.ACK:
            self._on_ack(frame)
        if frame.ack is not None and self.state is State.READY:
            self._settle(self.session.outbound.acked_up_to(frame.ack))
        if step is Step.ACK:
            return
        if step is Step.ERROR:
            self._on_error(frame)
        elif step is Step.DATA:
            self._on_data(frame, now)
        else:
            self.state = handshake.TRANSITIONS[(self.state, step)]
            self._on_handshake(step, frame, now)

    def _on_handshake(self, step: Step, frame: Frame, now: float) -> None:
        raise NotImplementedError

    def _on_ack(self, frame: Frame) -> None:
        # SQ-014: an ack frame settles the frame that it names; a rejection needs one.
        payload = frame.payload
        rejected = payload.get("errorCode", "internal") if payload["status"] == "rejected" else None
        delivery = self.session.outbound.acked_one(int(payload["ackSeq"]), payload["ackMsgId"], rejected)
        if delivery is not None:
            self._settle([delivery])

    def _settle(self, deliveries: list[Delivery]) -> None:
        if deliveries:
            self.session.fatal_ends = 0
        self._events.extend(Settled(delivery) for delivery in deliveries)

    def _on_error(self, frame: Frame) -> None:
        # WS-085: an error is never answered by an error; a fatal one just ends the connection.
        code = frame.payload["code"]
        self._events.append(PeerError(code))
        if ERROR_CODES[code].fatal:
            self.session.fatal_ends += 1
            self.end(code, "remote")

    def _on_data(self, frame: Frame, now: float) -> None:
        inbound = self.session.inbound
        if inbound.judge(frame.seq, frame.msg_id) is Verdict.DUPLICATE:
            # SQ-002, SQ-008: acked again, never acted on.
            self._write_ack(now, frame.seq, frame.msg_id, frame.workspace_id, "duplicate")
            self._events.append(Repeated(frame))
            return
        inbound.received(frame.seq, frame.msg_id)
        self.session.fatal_ends = 0
        if frame.type == "content.response" and frame.chunk is not None and frame.request_id is not None:
            self.session.chunks.advance(frame.request_id, frame.chunk)
        self._unanswered = frame
        self._events.append(Received(frame, self._data))

    # Answers to what was received

    def accept(self, frame: Frame, now: float) -> None:
        """Ack a received data frame as accepted (SQ-007, SQ-010)."""
        self._answer(frame, "accepted", None, now)

    def reject(self, frame: Frame, code: str, now: float) -> None:
        """Ack a received data frame as rejected; its seq is used up all the same (SQ-009, SQ-012)."""
        self._answer(frame, "rejected", code, now)

    def _answer(self, frame: Frame, status: str, code: str | None, now: float) -> None:
        if self.state is State.ENDED:
            # The peer sends it again after the resume and learns that it is a duplicate.
            return
        if self._unanswered is not frame:
            raise MisuseError(f"{frame.type} seq {frame.seq} was answered already, or never received")
        self._unanswered = None
        self._write_ack(now, frame.seq, frame.msg_id, frame.workspace_id, status, code)
        self.flush(now)

    def _write_ack(
        self, now: float, seq: int, msg_id: str, workspace_id: str, status: str, code: str | None = None
    ) -> None:
        payload = {"status": status, "ackSeq": seq, "ackMsgId": msg_id}
        if code is not None:
            payload["errorCode"] = code
        self.write_control(Draft("ack", payload, workspace_id), now)

    def write_control(self, draft: Draft, now: float, ack: bool = True) -> None:
        """Write a handshake or control frame: seq 0, never acked or repeated (HS-014, SQ-013)."""
        if self.state is State.ENDED:
            return
        piggyback = self.outbox.ack if ack else None
        text = self.outbox.builder.build(draft, self.outbox.ids(), 0, piggyback, now)
        self._output.append(Transmit(text))

    # Refusals

    def _refused_before(self, members: Mapping[str, Any]) -> bool:
        place = _place(members)
        return self.state is State.READY and place is not None and self.session.inbound.refused_code(*place) is not None

    def _consume_refused(self, members: Mapping[str, Any], now: float) -> None:
        # Decision 16: the same frame after a resume, refused again, is acked rejected and used up, without a second
        # close. A sound copy with the same seq and msgId never comes here (WS-033).
        seq, msg_id = int(members["seq"]), members["msgId"]
        inbound = self.session.inbound
        inbound.consume_refused(seq, msg_id)
        self._write_ack(now, seq, msg_id, self.workspace_id, "rejected", inbound.refused_code(seq, msg_id))

    def _refuse(self, members: Mapping[str, Any], code: str, now: float) -> None:
        place = _place(members)
        if place is not None and self.state is State.READY and place[0] == self.session.inbound.last_seq + 1:
            self.session.inbound.refuse(*place, code)
        self.fail(code, now, None if place is None else place[1])

    def _drop_malformed(self, now: float) -> None:
        self._malformed += 1
        if self._malformed >= MALFORMED_IN_A_ROW:
            self.fail("schema_violation", now)

    def fail(self, code: str, now: float, ref_msg_id: str | None = None) -> None:
        """Tell the peer a wire code and, if it is fatal, end: the error frame first, then the close (WS-042).

        The frame names the code and at most the refused msgId, never any of its content (WS-045).
        """
        if self.state is State.ENDED:
            return
        if self.state is State.V1:
            # V1-012: no v2 frame to a v1 peer.
            self.end(code, "local")
            return
        row = ERROR_CODES[code]
        payload: dict[str, Any] = {"code": code, "retryable": row.retryable}
        if ref_msg_id is not None:
            payload["refMsgId"] = ref_msg_id
        self.write_control(Draft("error", payload, self.workspace_id), now)
        if row.fatal:
            self.session.fatal_ends += 1
            self.end(code, "local")

    def end(self, code: str | None, by: str) -> None:
        """No more: close with the code's number when this side ends it for `code`, plainly otherwise (WS-040)."""
        if self.state is State.ENDED:
            return
        self.state = State.ENDED
        self._timers.clear()
        self._unanswered = None
        own = code is not None and by == "local"
        number = self.close_codes.of(code) if own and code is not None else 1000
        self._output.append(Close(number, awaits_peer=code is not None and by == "remote"))
        self._events.append(Ended(code, by))

    def closed(self, now: float) -> list[Event]:
        """The socket is gone, whoever closed it. The session may be resumed for a while."""
        if self.state is not State.ENDED:
            self.state = State.ENDED
            self._timers.clear()
            self._events.append(Ended(None, "remote"))
        if self.session.owner is self:
            self.session.owner, self.session.dropped_at = None, now
        events, self._events = self._events, []
        return events

    # Data frames out

    def send(self, draft: Draft, now: float) -> Delivery:
        """Queue a data frame and write what the window allows; see `Outbox.enqueue` for what it raises."""
        delivery = self.outbox.enqueue(draft, now)
        self.flush(now)
        return delivery

    def flush(self, now: float) -> None:
        """Write what the window allows. Nothing overtakes the ack of a frame that waits for its answer (SQ-015)."""
        while self._serves_session and self._unanswered is None:
            text = self.outbox.write_next(now)
            if text is None:
                return
            self._output.append(Transmit(text))

    def _own_session(self) -> None:
        """From READY on the session is this connection's, until another takes it over and this one ends (RS-021)."""
        older = self.session.owner
        if isinstance(older, Connection) and older is not self:
            older.end(None, "local")
        self.session.owner, self.session.dropped_at = self, None

    @property
    def _serves_session(self) -> bool:
        return self.state is State.READY and self.session.owner is self

    def _write_again(self, now: float) -> int:
        """After resumed:true: all unacked frames once more, in order (RS-002)."""
        frames = self.session.outbound.unacked()
        for frame in frames:
            frame.raw = self.outbox.rewrite(frame, now)
            self._output.append(Transmit(frame.raw))
        return len(frames)

    # Time

    def next_timeout(self) -> float | None:
        """Lab time of the next `handle_timeout`, None when nothing is waited for."""
        deadlines = list(self._timers.values())
        if self.state is State.READY:
            ack = self.session.outbound.deadline(self.ack_timeout)
            if ack is not None:
                deadlines.append(ack)
        return min(deadlines, default=None)

    def handle_timeout(self, now: float) -> list[Event]:
        """Do what is due at `now`; calling early does nothing."""
        if self.state is State.READY:
            self._retransmit(now)
        for timer in [timer for timer in Timer if self._timers.get(timer, now + 1) <= now]:
            if self.state is not State.ENDED:
                self._on_timer(timer, now)
        return self._take_events(now)

    def _retransmit(self, now: float) -> None:
        lapse = self.session.outbound.lapse(now, self.ack_timeout)
        if lapse.exhausted:
            # SQ-020, SQ-022: the frame stays with the session for the resume.
            self._events.extend(Overdue(frame.delivery) for frame in lapse.exhausted)
            self.fail("timeout", now)
            return
        for frame in lapse.again:
            text = self.outbox.rewrite(frame, now)
            self.session.outbound.resent(frame, text, now)
            self._output.append(Transmit(text))

    def _on_timer(self, _timer: Timer, now: float) -> None:
        # SQ-029 for silence, WS-023 for a handshake step: the timeout close either way.
        self.fail("timeout", now)

    def take_output(self) -> list[Output]:
        """What to write, in order; taken once."""
        output, self._output = self._output, []
        return output


def _place(members: Mapping[str, Any]) -> tuple[int, str] | None:
    """The seq and msgId of a frame that broke some rule, None unless both have their form."""
    seq, msg_id = members.get("seq"), members.get("msgId")
    # A schema takes 1.0 for an integer.
    if isinstance(seq, bool) or not (isinstance(seq, int) or (isinstance(seq, float) and seq.is_integer())):
        return None
    if not isinstance(msg_id, str) or _UUID.fullmatch(msg_id) is None:
        return None
    return int(seq), msg_id


def v1_text(members: Mapping[str, Any]) -> str:
    """A v1 message as text."""
    return encode(members)
