"""Slips of a gateway in what it does for its callers: assignments, and the content that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lab.gateway.jobs
from lab.gateway import core, relay
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Order
from lab.gateway.relay import Answer, ContentRelay
from lab.protocol.events import Received
from tests.bugs.plants import Function, Patch, plant
from tests.bugs.plants_gateway import Members, written

# What is assigned


@plant("gateway-chat-gate-missing", scenario="gateway-no-chat", law="gateway-capabilities")
def chat_gate_missing(patch: Patch) -> None:
    """Any agent is good for a chat."""

    def make(original: Function) -> Function:
        def refuse(order: Order, announced: tuple[str, ...]) -> None:
            if "job.chat" not in announced:
                patch.slipped()
            original(order, (*announced, "job.chat"))

        return refuse

    patch.wrap(core, "refuse_unsupported", make)


@plant("gateway-16k-gate-missing", scenario="gateway-no-16k", law="gateway-capabilities")
def gate_of_16k_missing(patch: Patch) -> None:
    """job.chat is enough for a long inline."""

    def make(original: Function) -> Function:
        def needed(order: Order) -> list[str]:
            names: list[str] = original(order)
            if "job.inline.16k" in names:
                patch.slipped()
            return [name for name in names if name != "job.inline.16k"]

        return needed

    patch.wrap(lab.gateway.jobs, "_needed", make)


def orders(patch: Patch, alter: Callable[[Order, Members], Members]) -> None:
    """Let `alter` change the payload of each job.assign."""

    def make(original: Function) -> Function:
        def payload(self: Order) -> Members:
            altered = alter(self, original(self))
            patch.slipped()
            return altered

        return payload

    patch.wrap(Order, "payload", make)


@plant("gateway-inline-without-transient", scenario="gateway-assign", law="gateway-frames-valid", promise=True)
def inline_without_transient(patch: Patch) -> None:
    """An inline has no member beside it."""
    orders(patch, lambda order, payload: {**payload, "inputs": [{"inline": text} for text in order.inputs]})
    written(patch, lambda type_name, members: members if type_name == "job.assign" else None)


@plant("gateway-chat-with-incident", scenario="chat", law="assigned-as-ordered")
def chat_with_incident(patch: Patch) -> None:
    """A chat has an incident, as other kinds do."""
    orders(patch, lambda _, payload: {**payload, "incidentRef": {"id": "incident-1"}})


# Content


@plant("gateway-first-chunk-limit-missing", scenario="gateway-page-never-comes", law="gateway-content-limits")
def first_chunk_limit_missing(patch: Patch) -> None:
    """The limit of the whole answer is the only one."""

    def asked(*_: object) -> None:
        patch.slipped()

    patch.set(relay, "FIRST_CHUNK_SECONDS", relay.WHOLE_ANSWER_SECONDS)
    patch.after(ContentRelay, "asked", asked)


@plant("gateway-content-timeout-ends-session", scenario="chat-lost-page", law="gateway-timeouts", promise=True)
def content_timeout_ends_session(patch: Patch) -> None:
    """A request without an answer costs the connection."""
    late: list[str] = []

    def make(original: Function) -> Function:
        def handle_timeout(self: Any, now: float) -> list[Answer]:
            answers: list[Answer] = original(self, now)
            late.extend(answer.request_id for answer in answers)
            return answers

        return handle_timeout

    def end(self: Any, now: float) -> None:
        while late:
            late.pop()
            patch.slipped()
            for conn, connection in list(self._connections.items()):
                self._touch(conn)
                connection.fail("timeout", now)
                self._handle(conn, connection, connection._take_events(now), now)

    patch.wrap(ContentRelay, "handle_timeout", make)
    patch.after(GatewayCore, "handle_timeout", end)


@plant("gateway-late-chunks-refused", scenario="chat-lost-page", law="gateway-refusals", promise=True)
def late_chunks_refused(patch: Patch) -> None:
    """A chunk of a request that is over breaks a rule."""

    def make(original: Function) -> Function:
        def on_received(self: Any, connection: Any, received: Received, now: float) -> None:
            frame = received.frame
            if frame.type == "content.response" and frame.request_id not in self._relay._pending:
                patch.slipped()
                connection.fail("chunk_out_of_order", now, frame.msg_id)
                return
            original(self, connection, received, now)

        return on_received

    patch.wrap(GatewayCore, "_on_received", make)
