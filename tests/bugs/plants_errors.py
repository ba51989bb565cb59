"""Slips of a Local Agent in refusing frames, in error frames and in the order of checks."""

from __future__ import annotations

import json

from lab.errors import WireError
from lab.localagent.agent import LocalAgent
from lab.localagent.gateway_link import GatewayLink
from lab.protocol import connection, wire
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Close, Event, Output, Received, Transmit
from lab.protocol.frames import Draft, Frame, read_frame
from lab.protocol.handshake import State
from lab.protocol.reliability import Inbound, Verdict
from tests.bugs.on_wire import Members, change_written, of_type
from tests.bugs.plants import Function, Patch, plant


def _pass_check(patch: Patch, check: str) -> None:
    """Leave a check out."""

    def make(original: Function) -> Function:
        def passes(self: AgentConnection, members: Members, now: float) -> None:
            if original(self, members, now) is not None:
                patch.slipped()

        return passes

    patch.wrap(AgentConnection, f"_check_{check}", make)


@plant("agent-inbound-schema-unchecked", scenario="unknown-member", law="refusals")
def inbound_schema_unchecked(patch: Patch) -> None:
    _pass_check(patch, "schema")


@plant("agent-foreign-tenant-obeyed", scenario="foreign-tenant", law="refusals")
def foreign_tenant_obeyed(patch: Patch) -> None:
    _pass_check(patch, "tenant")


def _read_otherwise(patch: Patch, read: Function) -> None:
    """Change what the agent makes of a message before it parses it; `read(self, message)` gives the other message."""

    def make(original: Function) -> Function:
        def receive(self: AgentConnection, message: str | bytes, now: float) -> list[Event]:
            events: list[Event] = original(self, read(self, message), now)
            return events

        return receive

    patch.wrap(AgentConnection, "receive_untrusted", make)


@plant("agent-binary-taken-as-text", scenario="binary", law="refusals", promise=True)
def binary_taken_as_text(patch: Patch) -> None:
    def read(_self: AgentConnection, message: str | bytes) -> str | bytes:
        if isinstance(message, bytes):
            patch.slipped()
            return message.decode()
        return message

    _read_otherwise(patch, read)


@plant("agent-size-in-characters", scenario="too-large", law="refusals", promise=True)
def size_in_characters(patch: Patch) -> None:
    """The agent's parser alone is changed: it is called with a message that came through the agent's connection."""
    original = wire.parse_untrusted

    def read(_self: AgentConnection, message: str | bytes) -> str | bytes:
        if isinstance(message, str) and len(message) < 49_152 < len(message.encode()):
            patch.slipped()
            known.append(message)
        return message

    known: list[str] = []

    def parse(message: str | bytes, max_bytes: int) -> Members:
        return original(message, 1 << 20 if message in known else max_bytes)

    patch.set(connection, "parse_untrusted", parse)
    _read_otherwise(patch, read)


@plant("agent-type-before-size", scenario="too-large-unknown", law="refusals")
def type_before_size(patch: Patch) -> None:
    original = wire.parse_untrusted

    def parse(message: str | bytes, max_bytes: int) -> Members:
        try:
            return original(message, max_bytes)
        except WireError as error:
            if error.code == "frame_too_large" and '"job.invented"' in str(message):
                patch.slipped()
                raise WireError("unknown_type", "an invented type") from None
            raise

    patch.set(connection, "parse_untrusted", parse)


@plant("agent-unknown-type-rejected-softly", scenario="unknown-type", law="refusals")
def unknown_type_rejected_softly(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def refuse(self: AgentConnection, members: Members, code: str, now: float) -> None:
            if code == "unknown_type":
                patch.slipped()
                self.session.inbound.received(members["seq"], members["msgId"])
                self._write_ack(
                    now, members["seq"], members["msgId"], self.workspace_id, "rejected", "protocol_unsupported"
                )
            else:
                original(self, members, code, now)

        return refuse

    patch.wrap(AgentConnection, "_refuse", make)


@plant("agent-same-number-other-message", scenario="used-number", law="refusals")
def same_number_other_message(patch: Patch) -> None:
    def act(link: GatewayLink) -> None:
        inbound = link._outbox.session.inbound

        def judge(seq: int, msg_id: str) -> Verdict:
            verdict = Inbound.judge(inbound, seq, msg_id)
            if verdict is Verdict.REPLAYED:
                patch.slipped()
                return Verdict.DUPLICATE
            return verdict

        patch.set(inbound, "judge", judge)

    patch.after(GatewayLink, "__init__", lambda self, *_: act(self))


@plant("agent-second-ready-accepted", scenario="second-ready", law="refusals")
def second_ready_accepted(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def check(self: AgentConnection, members: Members, now: float) -> str | None:
            if members["type"] == "ready" and self.state is State.READY:
                patch.slipped()
                self.session.outbound.next_seq = 1
                self.state = State.AWAIT_READY
            code: str | None = original(self, members, now)
            return code

        return check

    patch.wrap(AgentConnection, "_check_state", make)


@plant("agent-high-ack-is-fatal", scenario="high-ack", law="refusals")
def high_ack_is_fatal(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def check(self: AgentConnection, members: Members, now: float) -> str | None:
            if members.get("ack", 0) > self.session.outbound.highest_sent:
                patch.slipped()
                return "seq_gap"
            code: str | None = original(self, members, now)
            return code

        return check

    patch.wrap(AgentConnection, "_check_seq", make)


@plant("agent-text-ping-is-junk", scenario="text-ping", law="refusals")
def text_ping_is_junk(patch: Patch) -> None:
    def read(_self: AgentConnection, message: str | bytes) -> str | bytes:
        if message == "ping":
            patch.slipped()
            return "ping "
        return message

    _read_otherwise(patch, read)


@plant("agent-v1-command-refused", scenario="v1-command", law="refusals")
def v1_command_refused(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def take_v1(self: AgentConnection, members: Members) -> None:
            patch.slipped()
            self.fail("bad_frame", self._timers.get(connection.Timer.LIVENESS, 0.0) - 90)

        return take_v1

    patch.wrap(AgentConnection, "_take_v1", make)


# Error frames


@plant("agent-fatal-error-without-close", scenario="junk", law="after-fatal")
def fatal_error_without_close(patch: Patch) -> None:
    def end(self: AgentConnection, code: str | None, by: str) -> None:
        patch.slipped()

    patch.set(AgentConnection, "end", end)


@plant("agent-close-codes-from-one", scenario="junk", law="after-fatal")
def close_codes_from_one(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def take_output(self: AgentConnection) -> list[Output]:
            return [one_more(output) for output in original(self)]

        return take_output

    def one_more(output: Output) -> Output:
        if isinstance(output, Close) and output.code >= 4400:
            patch.slipped()
            return Close(output.code + 1)
        return output

    patch.wrap(AgentConnection, "take_output", make)


@plant("agent-error-quotes-the-frame", scenario="unknown-member", law="refusals")
def error_quotes_the_frame(patch: Patch) -> None:
    refused: list[str] = []

    def note(self: AgentConnection, members: Members, *_: object) -> None:
        refused.append(members["payload"]["inputs"][0]["inline"][-120:])

    def change(members: Members) -> bool:
        if members.get("type") != "error" or not refused:
            return False
        members["payload"]["detail"] = f"not allowed: {refused[0]}"
        return True

    patch.after(AgentConnection, "_refuse", note)
    change_written(patch, change)


@plant("agent-error-without-retryable", scenario="junk", law="agent-frames-valid", promise=True)
def error_without_retryable(patch: Patch) -> None:
    change_written(patch, of_type("error", lambda members: members["payload"].pop("retryable")))


@plant("agent-nonfatal-error-closes", scenario="soft-error", law="goes-on")
def nonfatal_error_closes(patch: Patch) -> None:
    def close(self: AgentConnection, _frame: Frame) -> None:
        if self.state is State.READY:
            patch.slipped()
            self.end(None, "local")

    patch.after(AgentConnection, "_on_error", close)


@plant("agent-error-answered-with-error", scenario="malformed-error", law="refusals")
def error_answered_with_error(patch: Patch) -> None:
    def answer(self: AgentConnection, now: float) -> None:
        patch.slipped()
        self.fail("schema_violation", now)

    patch.set(AgentConnection, "_drop_malformed", answer)


def _around_close(patch: Patch, act: Function) -> None:
    """Put something between the agent's fatal error frame and its close."""

    def make(original: Function) -> Function:
        def fail(self: AgentConnection, code: str, now: float, ref_msg_id: str | None = None) -> None:
            original(self, code, now, ref_msg_id)
            if self._output and isinstance(self._output[-1], Close):
                patch.slipped()
                close = self._output.pop()
                act(self, now)
                self._output.append(close)

        return fail

    patch.wrap(AgentConnection, "fail", make)


@plant("agent-sends-after-fatal", scenario="junk", law="after-fatal")
def sends_after_fatal(patch: Patch) -> None:
    def beat(self: AgentConnection, now: float) -> None:
        self.outbox.enqueue(Draft("heartbeat", {"state": "idle"}, self.workspace_id), now)
        self._output.append(Transmit(self.outbox.write_next(now) or ""))

    _around_close(patch, beat)


@plant("agent-obeys-after-fatal", scenario="junk", law="nothing-behind-fatal")
def obeys_after_fatal(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def receive(self: AgentConnection, message: str, now: float) -> list[Event]:
            if self.state is State.ENDED and '"job.assign"' in message:
                patch.slipped()
                return [Received(read_frame(json.loads(message)), None)]
            events: list[Event] = original(self, message, now)
            return events

        return receive

    patch.wrap(AgentConnection, "receive_untrusted", make)


# Types and kinds without a handler


@plant("agent-unhandled-type-accepted", scenario="config-update", law="unhandled-rejected")
def unhandled_type_accepted(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def on_frame(self: LocalAgent, frame: Frame) -> str | None:
            if frame.type == "config.update":
                patch.slipped()
                return None
            code: str | None = original(self, frame)
            return code

        return on_frame

    patch.wrap(LocalAgent, "_on_frame", make)
