"""Plays one side of a trace against a live peer, and grades what the peer does.

The frames of the trace are templates (`trace_filling`). Of the peer's frames it is asked that they keep their schema,
are numbered without a gap, and come in the trace's order; how many job.events a job has, or into how many chunks a body
is cut, is the peer's own affair, and data that the trace does not have is acked and passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.contract.trace_filling import Filling, LiveIdentity, Members
from lab.contract.trace_grades import TOO_BIG, CaseResult, Closing, Grade, closing_words, grade_code
from lab.contract.trace_line import Line, Place, Unreachable
from lab.contract.traces import Side, Step, Trace
from lab.protocol.connection import PING, PONG
from lab.protocol.contract import Contract
from lab.protocol.errors import NORMAL_CLOSURE, CloseCodes

BY_ITSELF = frozenset({"heartbeat"})
"""Data that a peer sends of its own accord."""

EARLY_KEPT = 256
"""Frames that came before their step and are kept for it; the oldest is forgotten first."""

_FREE_NUMBER = frozenset({"job.event", "content.response"})
"""Data of which a peer may send more or fewer frames than the trace has."""

_DECLINES = ("protocol_unsupported", "rate_limited")
"""What a peer says of a sound frame that it has nobody or no room for."""

Prompt = Callable[[str, Mapping[str, Any]], Awaitable[bool]]
"""Has the peer's application send a frame of a type with this payload, its ids included; False when it cannot."""


@dataclass(frozen=True)
class LivePeer:
    """A peer, and what the lab needs to talk with it. `side` is the peer's; `patience` bounds each wait in seconds."""

    side: Side
    place: Place
    identity: LiveIdentity
    contract: Contract
    wall_ms: Callable[[], int]
    fresh: Callable[[], str]
    patience: float = 5.0
    prompt: Prompt | None = None
    """None for a peer whose application is out of reach."""


class _Over(Exception):
    """The case is decided."""

    def __init__(self, grade: Grade, seen: str) -> None:
        super().__init__(seen)
        self.grade = grade
        self.seen = seen


async def play_live(trace: Trace, peer: LivePeer) -> CaseResult:
    """Play the trace once, on a connection of its own. Never raises for what the peer does."""
    if trace.expect.error is not None and trace.expect.by is not peer.side:
        who = "agent" if peer.side is Side.LA else "gateway"
        return CaseResult(
            trace.name,
            peer.side,
            Grade.UNKNOWN,
            str(trace.expect),
            f"the {who} itself would have to break the rule",
            "",
        )
    play = _Play(trace, peer)
    try:
        await play.run()
        over = _Over(Grade.PASS, "went well")
    except _Over as decided:
        over = decided
    close, close_as_due = await play.part(over.grade)
    return CaseResult(trace.name, peer.side, over.grade, str(trace.expect), over.seen, close, close_as_due)


class _Play:
    def __init__(self, trace: Trace, peer: LivePeer) -> None:
        self._trace = trace
        self._peer = peer
        self._filling = Filling(trace, peer.identity, peer.fresh)
        self._codes = CloseCodes(peer.contract.error_codes)
        self._line: Line | None = None
        self._closing: Closing | None = None
        self._refused_with: str | None = None
        self._received = 0
        self._early: list[Members] = []
        self._acked: set[str] = set()
        self._missing: str | None = None
        """What the peer's application did not send, though the trace has it."""
        self._at_fault: Step | None = None
        """The step that is to be refused, once it has been sent."""

    async def run(self) -> None:
        """Take the steps in order. Raises `_Over` unless all goes as the trace has it."""
        await self._open()
        for step in self._trace.steps:
            if step.reconnects:
                await self._reconnect()
            elif step.side is self._peer.side:
                await (self._expect_refusal() if self._is_refusal(step) else self._expect(step))
            else:
                await self._say(step)

    def _is_refusal(self, step: Step) -> bool:
        return self._trace.expect.error is not None and step is self._trace.steps[-1]

    async def _open(self) -> None:
        try:
            self._line = await self._peer.place.open()
        except Unreachable as failure:
            raise _Over(Grade.UNKNOWN, str(failure)) from None

    async def _reconnect(self) -> None:
        self._lines().cut()
        self._early.clear()
        await self._open()

    def _lines(self) -> Line:
        assert self._line is not None
        return self._line

    # The lab's steps

    async def _say(self, step: Step) -> None:
        if step.lost or (step.type == "ack" and not self._is_to_ack(step)):
            return
        if self._trace.expect.error is not None and step is self._trace.steps[-2]:
            self._at_fault = step
        await self._lines().send(self._filling.text(step, self._peer.wall_ms(), self._received))

    def _is_to_ack(self, step: Step) -> bool:
        # A duplicate is acked again; anything else once.
        known = self._filling.knows(step.payload.get("ackMsgId"))
        again = step.payload.get("status") == "duplicate"
        return known and (again or self._filling.live(step.payload["ackMsgId"]) not in self._acked)

    async def _ack(self, members: Members) -> None:
        frame = {
            "schemaVersion": 2,
            "type": "ack",
            "msgId": self._peer.fresh(),
            "seq": 0,
            "tenantId": self._peer.identity.tenant,
            "agentId": self._peer.identity.agent,
            "workspaceId": members["workspaceId"],
            "ts": members["ts"],
            "payload": {"status": "accepted", "ackSeq": members["seq"], "ackMsgId": members["msgId"]},
        }
        self._acked.add(members["msgId"])
        await self._lines().send(json.dumps(frame))

    # The peer's steps

    async def _expect(self, step: Step) -> None:
        if step.type in _FREE_NUMBER and not self._is_first_of_its_kind(step):
            return
        asked = await self._ask(step)
        members = await self._next(step)
        if members is None:
            await self._missed(step, asked)
            return
        self._filling.learn(step, members)
        self._judge_ack(step, members)
        if step.type == "content.response":
            await self._rest_of_series(step, members)

    async def _ask(self, step: Step) -> bool:
        """Whether the frame may be waited for as due: the peer owes it, or was brought to send it."""
        is_copy = self._filling.knows((step.frame or {}).get("msgId"))
        if self._is_control(step.type) or is_copy:
            return True
        if step.type in BY_ITSELF or self._peer.prompt is None:
            return False
        return await self._peer.prompt(step.type, self._filling.payload(step, self._peer.wall_ms()))

    def _is_first_of_its_kind(self, step: Step) -> bool:
        before = self._trace.steps[: step.number - 1]
        return not any(other.type == step.type and other.side is step.side for other in before)

    def _is_control(self, type_name: str) -> bool:
        record = self._peer.contract.types.get(type_name)
        return record is None or record.control

    async def _missed(self, step: Step, asked: bool) -> None:
        what = f"no {step.type} came"
        if self._trace.expect.error is not None and not self._is_control(step.type):
            # The frame at fault may still be judged for itself.
            self._missing = what
            return
        if not asked:
            raise _Over(Grade.UNKNOWN, f"{what}, and nothing here can make the peer send one")
        alive = await self._answers_ping()
        grade = Grade.FAIL if alive and self._trace.expect.error is None else Grade.UNKNOWN
        raise _Over(grade, f"{what}, though the peer answers" if alive else f"{what}: the peer never answers")

    async def _rest_of_series(self, step: Step, first: Members) -> None:
        members, index = first, 0
        while True:
            place = members["chunk"]
            if place["index"] != index or place["last"] != (index == place["total"] - 1):
                raise _Over(Grade.FAIL, f"chunk {place['index']} of {place['total']} where chunk {index} is due")
            if place["last"]:
                return
            await self._ack(members)
            index += 1
            following = await self._next(step, fresh=True)
            if following is None:
                raise _Over(Grade.FAIL, f"the series ends behind chunk {index - 1} of {place['total']}")
            members = following

    def _judge_ack(self, step: Step, members: Members) -> None:
        if step.type != "ack":
            return
        due, said = step.payload.get("status"), members["payload"]["status"]
        if said == due:
            return
        if said == "rejected":
            code = members["payload"]["errorCode"]
            # SQ-009, SQ-012: whoever cannot act on a frame may say so.
            grade = Grade.NON_STRICT if code in _DECLINES and due == "accepted" else Grade.FAIL
            raise _Over(grade, f"acked rejected with {code} where {due} is due, so the rest cannot follow")
        raise _Over(Grade.FAIL, f"acked {said} where {due} is due")

    async def _next(self, step: Step, fresh: bool = False) -> Members | None:
        """The peer's frame for a step, whatever else comes before it; None when none comes in time."""
        for early in self._early:
            if self._fits(step, early, fresh):
                self._early.remove(early)
                return early
        deadline = self._deadline()
        while (members := await self._frame(deadline)) is not None:
            if self._fits(step, members, fresh):
                return members
            if not self._is_control(members["type"]):
                self._early = [*self._early[1 - EARLY_KEPT :], members]
                await self._ack(members)
        return None

    def _fits(self, step: Step, members: Members, fresh: bool) -> bool:
        if members["type"] != step.type:
            return False
        frame = step.frame or {}
        if step.type == "ack":
            return bool(members["payload"]["ackMsgId"] == self._filling.live(step.payload["ackMsgId"]))
        pairs = [(frame.get("requestId"), members.get("requestId"))]
        pairs += [(step.payload.get("jobId"), members["payload"].get("jobId"))]
        if not fresh:
            pairs += [(frame.get("msgId"), members["msgId"])]
        return all(new == self._filling.live(old) for old, new in pairs if self._filling.knows(old))

    def _deadline(self) -> float:
        # A peer that has something else to say again and again does not hold the lab up.
        return asyncio.get_running_loop().time() + self._peer.patience

    async def _frame(self, deadline: float) -> Members | None:
        """The peer's next frame that keeps its schema and number; None when none comes in time."""
        while True:
            left = deadline - asyncio.get_running_loop().time()
            message = await self._lines().receive(left) if left > 0 else None
            match message:
                case None:
                    return None
                case Closing():
                    self._closing = message
                    self._gone(message)
                case "ping":
                    await self._lines().send(PONG)
                case "pong":
                    pass
                case _:
                    return self._judged(message)

    def _judged(self, message: str | bytes) -> Members:
        try:
            members = json.loads(message if isinstance(message, str) else message.decode())
            type_name = members["type"]
            broken = self._peer.contract.check_frame(type_name, members)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise _Over(Grade.FAIL, "a message that is no frame of the contract") from None
        if broken is not None:
            raise _Over(Grade.FAIL, f"its {type_name} breaks {broken.keyword} at {broken.path or '/'}")
        if type_name == "error":
            self._refused(members["payload"]["code"])
        if type_name == "ready" and not members["payload"]["resumed"]:
            self._received = 0
        if not self._is_control(type_name):
            self._count(members)
        frame: Members = members
        return frame

    def _count(self, members: Members) -> None:
        seq = members["seq"]
        if seq > self._received + 1:
            raise _Over(Grade.FAIL, f"its {members['type']} has seq {seq} where {self._received + 1} is due")
        self._received = max(self._received, seq)

    # Refusals

    def _refused(self, code: str) -> None:
        self._refused_with = code
        due = self._trace.expect
        if due.error is None:
            raise _Over(Grade.FAIL, f"refused with {code}")
        grade = grade_code(due, code)
        if self._at_fault is None or (grade is Grade.FAIL and self._missing is not None):
            why = f", {self._missing}" if self._missing else ", before the frame at fault was sent"
            raise _Over(Grade.UNKNOWN, f"refused with {code}{why}")
        raise _Over(grade, f"refused with {code}")

    def _gone(self, closing: Closing) -> None:
        if self._at_fault is None:
            grade = Grade.FAIL if self._trace.expect.error is None else Grade.UNKNOWN
            raise _Over(grade, f"the connection ended: {closing}")
        code = self._codes.name(closing.code)
        too_big = closing.code == TOO_BIG and self._trace.expect.error == "frame_too_large"
        told = too_big or (code is not None and grade_code(self._trace.expect, code) is not Grade.FAIL)
        grade = Grade.NON_STRICT if told else Grade.FAIL
        raise _Over(grade, f"closed without an error frame{f', with the number of {code}' if code else ''}")

    async def _expect_refusal(self) -> None:
        """Read on until the frame at fault is refused, or shown to have been taken."""
        deadline = self._deadline()
        while (members := await self._frame(deadline)) is not None:
            self._taken(members)
            if not self._is_control(members["type"]):
                await self._ack(members)
        if await self._answers_ping():
            self._went_on("went on as if nothing had been wrong")
        raise _Over(Grade.UNKNOWN, "the peer never answers")

    def _taken(self, members: Members) -> None:
        at_fault = self._at_fault
        if members["type"] == "ready" and at_fault is not None and at_fault.type in ("register", "hello"):
            self._went_on("answered ready")
        named = (at_fault.frame or {}).get("msgId") if at_fault is not None else None
        if members["type"] != "ack" or members["payload"]["ackMsgId"] != self._filling.live(named):
            return
        if members["payload"]["status"] != "rejected":
            self._went_on(f"acked {members['payload']['status']}")
        code = members["payload"]["errorCode"]
        grade = grade_code(self._trace.expect, code)
        seen = f"acked rejected with {code}, and went on"
        raise _Over(Grade.NON_STRICT if grade is Grade.PASS else grade, seen)

    def _went_on(self, seen: str) -> None:
        if self._missing is not None:
            raise _Over(Grade.UNKNOWN, f"{seen}, but {self._missing}")
        raise _Over(Grade.FAIL, seen)

    async def _answers_ping(self) -> bool:
        await self._lines().send(PING)
        message = await self._lines().receive(self._peer.patience)
        return message is not None and not isinstance(message, Closing)

    # The end

    async def part(self, grade: Grade) -> tuple[str, bool]:
        """End the connection, and tell in words how it ended and whether that is as due."""
        if self._line is None:
            return "", True
        if self._refused_with is None and self._closing is None:
            self._closing = await self._line.close()
            words, right = closing_words(self._closing, None)
            return words, right or grade is Grade.UNKNOWN
        if self._closing is None:
            self._closing = await self._peers_close(self._line)
        due = self._codes.of(self._refused_with) if self._refused_with is not None else self._due_close()
        return closing_words(self._closing, due)

    def _due_close(self) -> int:
        error = self._trace.expect.error
        return NORMAL_CLOSURE if error is None else self._codes.of(error)

    async def _peers_close(self, line: Line) -> Closing | None:
        # WS-042: the error frame first, then the close, which is the refuser's.
        deadline = self._deadline()
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            message = await line.receive(left)
            if isinstance(message, Closing):
                return message
        line.cut()
        return None
