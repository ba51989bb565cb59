"""Slips of a gateway in what it takes: its checks, its refusals and its closes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.protocol import connection as connection_module
from lab.protocol.chunks import decode_base64
from lab.protocol.connection import _place
from lab.protocol.events import Close
from lab.protocol.frames import Draft, Frame
from lab.protocol.gateway_side import GatewayConnection
from lab.protocol.reliability import Verdict
from tests.bugs import odd_agent
from tests.bugs.plants import Function, Patch, plant


def check(patch: Patch, name: str, forgives: str, unless: str | None = None) -> None:
    """A check of the gateway that never gives the code `forgives`, except for frames of the type `unless`."""

    def make(original: Function) -> Function:
        def judge(self: Any, members: Mapping[str, Any], now: float) -> str | None:
            code: str | None = original(self, members, now)
            if code != forgives or members["type"] == unless:
                return code
            patch.slipped()
            if name == "chunks":
                self._data = decode_base64(members["payload"]["data"])
            return None

        return judge

    patch.wrap(GatewayConnection, f"_check_{name}", make)


@plant("gateway-clock-unchecked", scenario="gateway-late-clock", law="gateway-refusals")
def clock_unchecked(patch: Patch) -> None:
    """No clock is looked at."""

    def make(original: Function) -> Function:
        def is_skewed(*args: Any) -> bool:
            if original(*args):
                patch.slipped()
            return False

        return is_skewed

    patch.wrap(GatewayConnection, "_is_skewed", make)


@plant("gateway-skew-on-data-frames", scenario="gateway-old-report", law="gateway-refusals")
def skew_on_data_frames(patch: Patch) -> None:
    """Each frame's time is judged."""

    def make(original: Function) -> Function:
        def judge(self: Any, members: Mapping[str, Any], now: float) -> str | None:
            if not self.contract.types[members["type"]].control and self._is_skewed(members["ts"], now):
                patch.slipped()
                return "clock_skew"
            code: str | None = original(self, members, now)
            return code

        return judge

    patch.wrap(GatewayConnection, "_check_seq", make)


@plant("gateway-mode-from-register", scenario="gateway-warn-in-hello", law="gateway-refusals")
def mode_from_register(patch: Patch) -> None:
    """hello's signature mode is not read."""

    def make(original: Function) -> Function:
        def on_hello(self: Any, frame: Frame, now: float) -> None:
            mode = self._register["signatureMode"]
            if frame.payload["signatureMode"] != mode:
                patch.slipped()
            original(self, replace(frame, payload={**frame.payload, "signatureMode": mode}), now)

        return on_hello

    patch.wrap(GatewayConnection, "_on_hello", make)


@plant("gateway-foreign-tenant-accepted", scenario="gateway-other-tenant", law="gateway-refusals")
def foreign_tenant_accepted(patch: Patch) -> None:
    """The tenant is compared at register only."""
    check(patch, "tenant", "tenant_mismatch", unless="register")


@plant("gateway-agent-unchecked", scenario="gateway-no-agent", law="gateway-refusals")
def agent_unchecked(patch: Patch) -> None:
    """A frame without agentId is the connection's."""
    check(patch, "agent", "agent_mismatch")


@plant("gateway-duplicate-keys-accepted", scenario="gateway-key-twice", law="gateway-refusals")
def duplicate_keys_accepted(patch: Patch) -> None:
    """The last of two equal keys counts."""

    def make(original: Function) -> Function:
        def parse(message: str | bytes, limit: int) -> object:
            if message[:8] == '{"seq":0':
                patch.slipped()
                return json.loads(message)
            return original(message, limit)

        return parse

    patch.wrap(connection_module, "parse_untrusted", make)


@plant("gateway-chunk-order-unchecked", scenario="gateway-skipped-chunk", law="gateway-refusals", promise=True)
def chunk_order_unchecked(patch: Patch) -> None:
    """Chunks are collected in any order."""
    check(patch, "chunks", "chunk_out_of_order")


@plant("gateway-byte-length-unchecked", scenario="gateway-wrong-length", law="gateway-refusals", promise=True)
def byte_length_unchecked(patch: Patch) -> None:
    """byteLength is trusted."""
    check(patch, "chunks", "chunk_inconsistent")


@plant("gateway-refused-frame-counts", scenario="gateway-content-in-report", law="gateway-resume-rules")
def refused_frame_counts(patch: Patch) -> None:
    """A frame is received before it is judged."""

    def make(original: Function) -> Function:
        def refuse(self: Any, members: Mapping[str, Any], code: str, now: float) -> None:
            place = _place(members)
            inbound = self.session.inbound
            original(self, members, code, now)
            if place is not None and inbound.judge(*place) is Verdict.FRESH:
                patch.slipped()
                inbound.received(*place)

        return refuse

    patch.wrap(GatewayConnection, "_refuse", make)


@plant("gateway-error-quotes-the-frame", scenario="gateway-content-in-report", law="gateway-refusals")
def error_quotes_the_frame(patch: Patch) -> None:
    """An error tells what was wrong in the frame's own words."""
    refused: list[str] = []

    def make_refuse(original: Function) -> Function:
        def refuse(self: Any, members: Mapping[str, Any], code: str, now: float) -> None:
            refused.append(json.dumps(members.get("payload")))
            original(self, members, code, now)

        return refuse

    def make(original: Function) -> Function:
        def write(self: Any, draft: Draft, now: float, ack: bool = True) -> None:
            if draft.type == "error" and refused:
                patch.slipped()
                draft = replace(draft, payload={**draft.payload, "detail": refused[-1][:200]})
            original(self, draft, now, ack)

        return write

    patch.wrap(GatewayConnection, "_refuse", make_refuse)
    patch.wrap(GatewayConnection, "write_control", make)


@plant("gateway-close-code-fixed", scenario="gateway-junk", law="gateway-after-fatal")
def close_code_fixed(patch: Patch) -> None:
    """Every error closes with 1008."""

    def end(self: Any, _code: str | None, _by: str) -> None:
        for place, output in enumerate(self._output):
            if isinstance(output, Close) and output.code != 1000:
                patch.slipped()
                self._output[place] = Close(1008)

    patch.after(GatewayConnection, "end", end)


@plant("gateway-works-after-fatal", scenario="gateway-junk", law="gateway-after-fatal")
def works_after_fatal(patch: Patch) -> None:
    """What comes behind a junk frame is still dealt with."""
    dying: dict[int, str] = {}

    def make_end(original: Function) -> Function:
        def end(self: Any, code: str | None, by: str) -> None:
            if by == "local" and code is not None and id(self) not in dying:
                dying[id(self)] = code
            else:
                original(self, code, by)

        return end

    def ack(self: Any, *_: object) -> None:
        if id(self) in dying:
            patch.slipped()
            self.end(dying[id(self)], "local")

    patch.wrap(GatewayConnection, "end", make_end)
    patch.after(GatewayConnection, "accept", ack)


__all__ = ["odd_agent"]
