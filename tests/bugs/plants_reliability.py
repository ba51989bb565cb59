"""Slips of a Local Agent in its acks and in sending again."""

from __future__ import annotations

from typing import Any

from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Close, Overdue, Transmit
from lab.protocol.frames import Draft, Frame
from lab.protocol.reliability import Lapse, Outbound, SentFrame
from tests.bugs.on_wire import Members, change_written, leave_unanswered, of_type, on_link
from tests.bugs.plants import Function, Patch, plant

# Acks


@plant("agent-ack-takes-a-number", scenario="fix", law="agent-frames-valid")
def ack_takes_a_number(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def write_ack(self: AgentConnection, *args: Any) -> None:
            original(self, *args)
            output = self._output.pop()
            assert isinstance(output, Transmit)
            patch.slipped()
            outbound = self.session.outbound
            self._output.append(Transmit(output.text.replace('"seq":0', f'"seq":{outbound.next_seq}', 1)))
            outbound.next_seq += 1

        return write_ack

    patch.wrap(AgentConnection, "_write_ack", make)


@plant("agent-no-explicit-ack", scenario="acks-watched", law="acks")
def no_explicit_ack(patch: Patch) -> None:
    def accept(self: AgentConnection, _frame: Frame, now: float) -> None:
        patch.slipped()
        leave_unanswered(self)
        self.flush(now)

    patch.set(AgentConnection, "accept", accept)


@plant("agent-piggyback-before-rejection", scenario="refused-kind-in-a-job", law="acks")
def piggyback_before_rejection(patch: Patch) -> None:
    late: list[tuple[Frame, str]] = []

    def reject(self: AgentConnection, frame: Frame, code: str, _now: float) -> None:
        leave_unanswered(self)
        late.append((frame, code))

    def make(original: Function) -> Function:
        def flush(self: AgentConnection, now: float) -> None:
            before = self.session.outbound.highest_sent
            original(self, now)
            if late and self.session.outbound.highest_sent > before:
                patch.slipped()
                frame, code = late.pop()
                self._write_ack(now, frame.seq, frame.msg_id, frame.workspace_id, "rejected", code)

        return flush

    patch.set(AgentConnection, "reject", reject)
    patch.wrap(AgentConnection, "flush", make)


@plant("agent-acks-an-ack", scenario="fix", law="acks")
def acks_an_ack(patch: Patch) -> None:
    def ack(self: AgentConnection, frame: Frame, now: float) -> None:
        if frame.type == "ack":
            patch.slipped()
            text = self.outbox.builder.build(
                Draft("ack", {"status": "accepted", "ackSeq": 1, "ackMsgId": frame.msg_id}, frame.workspace_id),
                self.outbox.ids(),
                0,
                self.outbox.ack,
                now,
            )
            self._output.append(Transmit(text.replace('"ackSeq":1', '"ackSeq":0')))

    patch.after(AgentConnection, "_accept", ack)


@plant("agent-ack-names-own-message", scenario="fix", law="acks", promise=True)
def ack_names_own_message(patch: Patch) -> None:
    def change(members: Members) -> None:
        members["payload"]["ackMsgId"] = members["msgId"]

    change_written(patch, of_type("ack", change))


def _change_acks(patch: Patch, change: Function) -> None:
    """Change the arguments of each ack: `change` gets (seq, msg_id, workspace_id, status, code), None drops it."""

    def make(original: Function) -> Function:
        def write_ack(
            self: AgentConnection,
            now: float,
            seq: int,
            msg_id: str,
            workspace_id: str,
            status: str,
            code: str | None = None,
        ) -> None:
            arguments = change(seq, msg_id, workspace_id, status, code)
            if arguments is not None:
                original(self, now, *arguments)

        return write_ack

    patch.wrap(AgentConnection, "_write_ack", make)


@plant("agent-duplicate-acked-accepted", scenario="duplicate", law="acks")
def duplicate_acked_accepted(patch: Patch) -> None:
    def change(seq: int, msg_id: str, workspace_id: str, status: str, code: str | None) -> tuple[object, ...]:
        if status == "duplicate":
            patch.slipped()
            status = "accepted"
        return seq, msg_id, workspace_id, status, code

    _change_acks(patch, change)


@plant("agent-duplicate-not-acked", scenario="lost-ack-of-assign", law="acks")
def duplicate_not_acked(patch: Patch) -> None:
    def change(*arguments: object) -> tuple[object, ...] | None:
        if arguments[3] == "duplicate":
            patch.slipped()
            return None
        return arguments

    _change_acks(patch, change)


@plant("agent-rejection-without-code", scenario="refused-kind", law="agent-frames-valid")
def rejection_without_code(patch: Patch) -> None:
    def change(members: Members) -> bool:
        return members.get("type") == "ack" and members["payload"].pop("errorCode", None) is not None

    change_written(patch, change)


@plant(
    "agent-rejected-frame-not-counted",
    scenario="refused-kind",
    law="refusals",
)
def rejected_frame_not_counted(patch: Patch) -> None:
    def uncount(self: AgentConnection, *_: object) -> None:
        patch.slipped()
        self.session.inbound.last_seq -= 1

    patch.after(AgentConnection, "reject", uncount)


@plant("agent-piggyback-ignored", scenario="lost-ack-covered", law="retransmission", promise=True)
def piggyback_ignored(patch: Patch) -> None:
    def ignore(link: GatewayLink) -> None:
        outbound = link._outbox.session.outbound

        def acked_up_to(_ack: int) -> list[object]:
            patch.slipped()
            return []

        patch.set(outbound, "acked_up_to", acked_up_to)

    on_link(patch, ignore)


# Retransmission


def _change_lapse(patch: Patch, lapse: Function) -> None:
    """Decide otherwise which frames are sent again and which are given up."""
    on_link(patch, lambda link: patch.set(link._outbox.session.outbound, "lapse", lapse(link._outbox.session.outbound)))


@plant("agent-retransmits-for-ever", scenario="never-acked", law="retransmission")
def retransmits_for_ever(patch: Patch) -> None:
    def lapse(outbound: Outbound) -> Function:
        def without_limit(now: float, ack_timeout: float) -> Lapse:
            due = Outbound.lapse(outbound, now, ack_timeout)
            if due.exhausted:
                patch.slipped()
            return Lapse((*due.again, *due.exhausted), ())

        return without_limit

    _change_lapse(patch, lapse)


@plant("agent-retransmits-twice", scenario="never-acked", law="timeouts")
def retransmits_twice(patch: Patch) -> None:
    def lapse(outbound: Outbound) -> Function:
        def two(now: float, ack_timeout: float) -> Lapse:
            due = Outbound.lapse(outbound, now, ack_timeout)
            spent = tuple(frame for frame in due.again if frame.retransmissions == 2)
            if spent:
                patch.slipped()
            return Lapse(tuple(frame for frame in due.again if frame not in spent), (*spent, *due.exhausted))

        return two

    _change_lapse(patch, lapse)


@plant("agent-retransmits-with-backoff", scenario="never-acked", law="retransmission")
def retransmits_with_backoff(patch: Patch) -> None:
    def act(link: GatewayLink) -> None:
        outbound = link._outbox.session.outbound

        def due_at(frame: SentFrame, ack_timeout: float) -> float:
            if frame.retransmissions:
                patch.slipped()
            return frame.sent_at + ack_timeout * float(2**frame.retransmissions)

        def deadline(ack_timeout: float) -> float | None:
            return min((due_at(frame, ack_timeout) for frame in outbound.unacked()), default=None)

        def lapse(now: float, ack_timeout: float) -> Lapse:
            due = Outbound.lapse(outbound, now, ack_timeout)
            early = [frame for frame in due.again if due_at(frame, ack_timeout) > now]
            late = [frame for frame in due.exhausted if due_at(frame, ack_timeout) <= now]
            return Lapse(tuple(frame for frame in due.again if frame not in early), tuple(late))

        patch.set(outbound, "deadline", deadline)
        patch.set(outbound, "lapse", lapse)

    on_link(patch, act)


def _change_rewrite(patch: Patch, rewrite: Function) -> None:
    """Write a frame otherwise when it is sent again."""

    def act(link: GatewayLink) -> None:
        def again(frame: SentFrame, now: float) -> str:
            patch.slipped()
            text: str = rewrite(link, frame, now)
            return text

        patch.set(link._outbox, "rewrite", again)

    on_link(patch, act)


@plant("agent-retransmits-with-new-time", scenario="lost-ack", law="retransmission")
def retransmits_with_new_time(patch: Patch) -> None:
    def rewrite(link: GatewayLink, frame: SentFrame, now: float) -> str:
        return link._outbox._build(frame.delivery.draft, frame.msg_id, frame.seq, now)

    _change_rewrite(patch, rewrite)


@plant("agent-retransmits-with-new-id", scenario="lost-ack", law="numbering")
def retransmits_with_new_id(patch: Patch) -> None:
    def rewrite(link: GatewayLink, frame: SentFrame, now: float) -> str:
        frame.msg_id = link._outbox.ids()
        return link._outbox._build(frame.delivery.draft, frame.msg_id, frame.seq, now)

    _change_rewrite(patch, rewrite)


def _change_exhausted(patch: Patch, end: Function) -> None:
    """End otherwise when frames are given up."""

    def make(original: Function) -> Function:
        def retransmit(self: AgentConnection, now: float) -> None:
            lapse = self.session.outbound.lapse(now, self.ack_timeout)
            if not lapse.exhausted:
                original(self, now)
                return
            patch.slipped()
            self._events.extend(Overdue(frame.delivery) for frame in lapse.exhausted)
            end(self, lapse, now)

        return retransmit

    patch.wrap(AgentConnection, "_retransmit", make)


@plant("agent-exhausted-socket-left-open", scenario="never-acked", law="retransmission")
def exhausted_socket_left_open(patch: Patch) -> None:
    def end(self: AgentConnection, lapse: Lapse, _now: float) -> None:
        for frame in lapse.exhausted:
            self.session.outbound._unacked.pop(frame.seq)

    _change_exhausted(patch, end)


@plant("agent-exhausted-close-normal", scenario="never-acked", law="after-fatal", promise=True)
def exhausted_close_normal(patch: Patch) -> None:
    def end(self: AgentConnection, _lapse: Lapse, now: float) -> None:
        self.fail("timeout", now)
        self._output[-1] = Close(1000)

    _change_exhausted(patch, end)


@plant("agent-timeout-close-without-error", scenario="never-acked", law="after-fatal")
def timeout_close_without_error(patch: Patch) -> None:
    _change_exhausted(patch, lambda self, _lapse, _now: self.end("timeout", "local"))


@plant("agent-exhausted-frame-forgotten", scenario="never-acked", law="resume-rules")
def exhausted_frame_forgotten(patch: Patch) -> None:
    def end(self: AgentConnection, lapse: Lapse, now: float) -> None:
        for frame in lapse.exhausted:
            self.session.outbound._unacked.pop(frame.seq)
        self.fail("timeout", now)

    _change_exhausted(patch, end)
