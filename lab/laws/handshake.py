"""The law of the handshake's beginning: register, and hello right behind it."""

from __future__ import annotations

from lab.laws.codes import FATAL
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

LAW = "handshake"

HELLO_WITHIN = 1.0
"""Seconds from register to hello, which waits for nothing (HS-009); the documents name no time."""


def _handshake(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for connection in view.connections.values():
        register = connection.register
        if register is not None and register.frame.version is not None:
            _judge_hello(tally, view, connection, register)
    return tally.judgement()


def _judge_hello(tally: Tally, view: JournalView, connection: Connection, register: FrameAt) -> None:
    hello = next((seen for seen in connection.made(LOCAL_AGENT) if seen.frame.type == "hello"), None)
    due = register.t + HELLO_WITHIN
    due += view.slack(register.t, due)
    if hello is not None and hello.t <= due:
        tally.held()
        return
    refused = connection.error(FATAL | {"protocol_unsupported"}, GATEWAY)
    came_to_an_end = refused is not None and refused.t <= due and (hello is None or refused.n < hello.n)
    if came_to_an_end or (hello is None and view.horizon(connection, register.t) < due):
        return
    if not view.quiet(register.t, due):
        tally.unsure()
        return
    asked = " with resume" if connection.resume() is not None else ""
    # HS-007, HS-009, HS-040
    seen = f"no hello after register{asked}" if hello is None else f"hello {hello.t - register.t:.1f} s after register"
    entries = (register.n,) if hello is None else (register.n, hello.n)
    tally.broken(view.agent_of(connection), seen, "hello right behind register, on each connection", entries)


LAWS = (
    Law(
        LAW,
        "An agent sends hello right behind register on each connection, also when it resumes",
        LOCAL_AGENT,
        ("HS-007", "HS-009", "HS-040"),
        _handshake,
    ),
)
