"""The table of states, as a whole: every state with every step, and both roles that walk through it."""

from __future__ import annotations

import pytest

from lab.protocol.handshake import TRANSITIONS, State, Step, refusal, step_of
from tests.protocol.sides import (
    CONTRACT,
    ack,
    chunk_frame,
    error,
    heartbeat,
    hello,
    new_agent,
    new_gateway,
    outputs,
    ready,
    ready_agent,
    ready_gateway,
    register,
    signed_cancel,
    take,
    written,
)

R, H, A, OK, V1, END = State
# By state, the state after each step in the order of Step, or the wire code of a refusal.
VIOLATION, NOT_READY = "handshake_violation", "not_ready"
TABLE = {
    R: [H, VIOLATION, VIOLATION, VIOLATION, VIOLATION, R, V1, END],
    H: [VIOLATION, A, VIOLATION, NOT_READY, NOT_READY, H, V1, END],
    A: [VIOLATION, VIOLATION, OK, NOT_READY, NOT_READY, A, V1, END],
    OK: [VIOLATION, VIOLATION, VIOLATION, OK, OK, OK, VIOLATION, END],
}


@pytest.mark.req("HS-001", "HS-016", "HS-017", "HS-018")
@pytest.mark.parametrize(
    ("state", "step", "due"),
    [(state, step, due) for state, row in TABLE.items() for step, due in zip(Step, row, strict=True)],
)
def test_state_times_step(state: State, step: Step, due: State | str) -> None:
    if isinstance(due, State):
        assert TRANSITIONS[(state, step)] is due
        assert refusal(state, step) is None
    else:
        assert (state, step) not in TRANSITIONS
        assert refusal(state, step) == due


@pytest.mark.parametrize("state", [V1, END])
def test_nothing_but_the_end_leaves_the_last_states(state: State) -> None:
    assert {step for one, step in TRANSITIONS if one is state} == {Step.END}


def test_each_type_is_one_step() -> None:
    control = {name for name, record in CONTRACT.types.items() if record.control}
    assert {step_of(name) for name in set(CONTRACT.types) - control} == {Step.DATA}
    assert {name: step_of(name).name.lower() for name in control} == {name: name for name in control}


# Both roles, by frames

GATEWAY_STATES: dict[State, list[str]] = {R: [], H: [register()], OK: [register(), hello()]}
GATEWAY_FRAMES = {
    "register": register(1),
    "hello": hello(2),
    "heartbeat": heartbeat(1),
    "content.response": chunk_frame(1, 5, 0, 1),
}
GATEWAY_TABLE = {
    (R, "register"): None,
    (R, "hello"): VIOLATION,
    (R, "heartbeat"): VIOLATION,
    (R, "content.response"): VIOLATION,
    (H, "register"): VIOLATION,
    (H, "hello"): None,
    (H, "heartbeat"): NOT_READY,
    (H, "content.response"): NOT_READY,
    (OK, "register"): VIOLATION,
    (OK, "hello"): VIOLATION,
    (OK, "heartbeat"): None,
    (OK, "content.response"): None,
}


@pytest.mark.req("HS-001", "HS-016", "HS-017", "HS-018", "WS-065", "WS-066")
@pytest.mark.parametrize(("state", "name"), GATEWAY_TABLE)
def test_gateway_by_state_and_frame(state: State, name: str) -> None:
    gateway = new_gateway()
    for frame in GATEWAY_STATES[state]:
        gateway.receive_untrusted(frame, 0)
    assert gateway.state is state
    written(gateway)
    take(gateway, GATEWAY_FRAMES[name])
    frames, close = outputs(gateway)
    codes = [frame["payload"]["code"] for frame in frames if frame["type"] == "error"]
    due = GATEWAY_TABLE[(state, name)]
    assert codes == ([due] if due else [])
    assert close == {VIOLATION: 4406, NOT_READY: 4407, None: None}[due]


@pytest.mark.req("HS-017", "HS-018")
def test_agent_by_state_and_frame() -> None:
    for frame, before, after in ((ready(3), None, VIOLATION), (signed_cancel(1), NOT_READY, None)):
        waiting, settled = new_agent(), ready_agent()
        waiting.start(0, {})
        assert (waiting.state, settled.state) == (A, OK)
        for agent, due in ((waiting, before), (settled, after)):
            written(agent)
            take(agent, frame)
            codes = [one["payload"]["code"] for one in written(agent) if one["type"] == "error"]
            assert codes == ([due] if due else [])


@pytest.mark.req("WS-085")
def test_ack_before_ready_acks_nothing_and_gets_no_error() -> None:
    gateway, agent = new_gateway(), new_agent()
    agent.start(0, {})
    written(agent)
    for connection in (gateway, agent):
        connection.receive_untrusted(ack(1, "0f0f0f0f-0000-4000-8000-00000000000f"), 0)
        assert outputs(connection) == ([], None)


def test_error_is_welcome_in_every_state() -> None:
    for messages in ([], [register()], [register(), hello()]):
        gateway = new_gateway()
        for message in messages:
            gateway.receive_untrusted(message, 0)
        written(gateway)
        before = gateway.state
        gateway.receive_untrusted(error("internal"), 0)
        assert outputs(gateway) == ([], None)
        assert gateway.state is before
    assert ready_gateway().state is OK
