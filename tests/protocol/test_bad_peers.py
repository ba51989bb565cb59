"""Peers that send anything: never an exception, never an echo, bounded memory, and the code that the checks demand."""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.protocol.connection import Connection
from lab.protocol.events import Close, Transmit
from lab.protocol.handshake import State
from lab.protocol.signing import SignatureMode
from tests.protocol import frame_examples
from tests.protocol.sides import (
    AGENT,
    CONTRACT,
    TENANT,
    Members,
    event_draft,
    heartbeat,
    hello,
    new_agent,
    new_gateway,
    nonce_of,
    ready_agent,
    ready_gateway,
    register,
    sign,
    take,
    text,
)

CANARY = "canaryZ7"
NOTHING_KEPT = settings(max_examples=350, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.just(CANARY),
    st.just("\ud800" + CANARY),
    st.sampled_from([0, -1, 1.0, 0.5, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**400), 1e308, float("nan")]),
    st.sampled_from([[], {}, [[]], {"a": CANARY}, {CANARY: 1}, [CANARY] * 3, "", " ", "A" * 9000]),
    st.integers(1, 90).map(lambda depth: nested(depth)),
    st.sampled_from(["_-8=", "e30", "e31=", "é", "ack", "error", "ready", "register", "heartbeat"]),
)


def nested(depth: int) -> Any:
    value: Any = CANARY
    for _ in range(depth):
        value = [value]
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every member and item below a value."""
    found = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in pairs:
        found += [(*path, name), *places(child, (*path, name))]
    return found


@st.composite
def altered_members(draw: st.DrawFn) -> Members:
    """A valid frame of any type with up to three members replaced, removed or added."""
    type_name = draw(st.sampled_from(frame_examples.example_types()))
    frame: Members = draw(st.sampled_from(frame_examples.examples(type_name)))
    frame["seq"] = 0 if CONTRACT.types[type_name].control else draw(st.sampled_from([1, 1, 1, 2]))
    if CONTRACT.types[type_name].signed:
        frame = sign(frame, nonce_of(draw(st.integers(1, 2))))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(places(frame)))
        target: Any = frame
        for step in path[:-1]:
            target = target[step]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove":
            del target[path[-1]]
        elif action == "replace":
            target[path[-1]] = copy.deepcopy(draw(odd_values))
        elif isinstance(target, dict):
            target[CANARY] = copy.deepcopy(draw(odd_values))
        if not frame:
            break
    return frame


@st.composite
def messages(draw: st.DrawFn) -> str | bytes:
    message = json.dumps(draw(altered_members()), ensure_ascii=draw(st.booleans()))
    action = draw(st.sampled_from(["none", "none", "none", "flip", "cut", "double", "binary", "splice"]))
    place = draw(st.integers(0, max(0, len(message) - 1)))
    if action == "flip":
        message = message[:place] + draw(st.characters()) + message[place + 1 :]
    elif action == "cut":
        message = message[:place]
    elif action == "double":
        message = message[:-1] + f',"{CANARY}":1,"{CANARY}":2' + "}"
    elif action == "splice":
        message = message[:place] + draw(st.sampled_from(['"', "{", "}", "[", "\\ud800", "1e999", ",", "\x00"]))
    return message.encode("utf-8", "surrogatepass") if action == "binary" else message


def waiting_agent() -> Connection:
    agent = new_agent()
    agent.start(0, {})
    return agent


def registered_gateway() -> Connection:
    gateway = new_gateway()
    gateway.receive_untrusted(register(), 0)
    return gateway


def v1_agent() -> Connection:
    agent = new_agent()
    agent.start_v1(0)
    return agent


SIDES: dict[str, Callable[[], Connection]] = {
    "gateway": new_gateway,
    "gateway after register": registered_gateway,
    "gateway ready": ready_gateway,
    "agent": waiting_agent,
    "agent ready": ready_agent,
    "agent ready, warn": lambda: ready_agent(mode=SignatureMode.WARN),
    "agent ready, off": lambda: ready_agent(mode=SignatureMode.OFF),
    "agent in v1": v1_agent,
}


def judge_output(connection: Connection) -> int | None:
    """What was written is frames of the contract without the canary; the close code, if it closes."""
    close = None
    for output in connection.take_output():
        assert close is None, "something follows the close"
        if isinstance(output, Close):
            close = output.code
            continue
        assert isinstance(output, Transmit)
        if output.text in ("ping", "pong"):
            continue
        frame = json.loads(output.text)
        # An ack stands in the workspace of what it acks; that the id is in order was checked before.
        said = {name: value for name, value in frame.items() if name != "workspaceId" or frame["type"] != "ack"}
        assert CANARY not in json.dumps(said)
        if "schemaVersion" in frame:
            assert CONTRACT.check_frame(frame["type"], frame) is None
            assert (frame["tenantId"], frame["agentId"]) == (TENANT, AGENT)
    return close


@pytest.mark.req("WS-045")
@pytest.mark.parametrize("side", SIDES)
@settings(parent=NOTHING_KEPT, max_examples=250)
@given(data=st.lists(messages(), min_size=1, max_size=4))
def test_no_message_raises_or_is_echoed(side: str, data: list[str | bytes]) -> None:
    receive_all(side, data)


MANY = 100_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("role", ["gateway", "agent"])
def test_a_hundred_thousand_messages_a_role(role: str) -> None:
    sides = [side for side in SIDES if side.startswith(role)]
    received = 0

    @settings(parent=NOTHING_KEPT, max_examples=MANY)
    @given(side=st.sampled_from(sides), message=messages())
    def one(side: str, message: str | bytes) -> None:
        nonlocal received
        received += 1
        receive_all(side, [message])

    one()
    assert received >= MANY


def receive_all(side: str, data: list[str | bytes]) -> None:
    """Hand over messages until the side closes; what it wrote is judged each time."""
    connection = SIDES[side]()
    connection.take_output()
    if connection.state is State.READY and side.startswith("agent"):
        connection.send(event_draft(1), 0)
    for message in data:
        take(connection, message, 1)
        close = judge_output(connection)
        assert (close is not None) == (connection.state is State.ENDED)
        if close is not None:
            assert close == 1000 or 4400 <= close <= 4422
            break
    due = connection.next_timeout()
    if due is not None:
        connection.handle_timeout(due)
        judge_output(connection)
    connection.closed(200)


def due_code(message: str, gateway: bool) -> str | None:
    """The code of the first checks, worked out from the contract alone; None when a later check decides."""
    if len(message.encode("utf-8", "surrogatepass")) > 49152:
        return "frame_too_large"
    try:
        frame = strict(message)
    except (ValueError, RecursionError):
        return "bad_frame"
    if not isinstance(frame, dict):
        return "bad_frame"
    if "schemaVersion" not in frame:
        return None
    type_name = frame.get("type")
    if type_name not in frame_examples.example_types() if isinstance(type_name, str) else True:
        return "unknown_type"
    record = CONTRACT.types[str(type_name)]
    if type_name in ("ack", "error"):
        return None
    wrong = record.direction == ("cp-to-la" if gateway else "la-to-cp")
    if wrong and not gateway:
        return "wrong_direction"
    if CONTRACT.check_frame(str(type_name), frame) is not None:
        return "schema_violation"
    if frame["tenantId"] != TENANT:
        return "tenant_mismatch"
    if frame.get("agentId", None if gateway else AGENT) != AGENT:
        return "agent_mismatch"
    return "wrong_direction" if wrong else None


def strict(message: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    value = json.loads(message, object_pairs_hook=unique)
    again = json.dumps(value, ensure_ascii=False, allow_nan=False)
    again.encode()
    depth = deepest = 0
    inside = escaped = False
    for letter in again:
        if inside:
            escaped, inside = (letter == "\\" and not escaped), not (letter == '"' and not escaped)
        elif letter == '"':
            inside = True
        elif letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    if deepest > 64:
        raise ValueError("deep")
    return value


@pytest.mark.req("WS-029", "WS-030", "WS-031")
@pytest.mark.parametrize("gateway", [True, False])
@settings(parent=NOTHING_KEPT)
@given(message=messages().filter(lambda message: isinstance(message, str)))
def test_code_is_that_of_the_first_check(gateway: bool, message: str) -> None:
    connection: Connection = ready_gateway() if gateway else ready_agent()
    due = due_code(message, gateway)
    connection.receive_untrusted(message, 0)
    codes = [
        json.loads(output.text)["payload"]["code"]
        for output in connection.take_output()
        if isinstance(output, Transmit) and '"type":"error"' in output.text
    ]
    if due is not None:
        assert codes == [due]


def size_of(value: object, seen: set[int]) -> int:
    """Characters and bytes that an object holds on to."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(one, seen) for pair in value.items() for one in pair)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return sum(size_of(one, seen) for one in value)
    slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    return size_of([*getattr(value, "__dict__", {}).values(), *slots], seen)


def test_memory_does_not_grow_with_what_a_peer_sends() -> None:
    gateway = ready_gateway()

    def feed(first: int, last: int) -> int:
        for seq in range(first, last):
            take(gateway, heartbeat(seq))
            gateway.receive_untrusted("ping", 0)
            gateway.receive_untrusted('{"type":"' + "x" * 1000 + '"}', 0)
            gateway.receive_untrusted(heartbeat(seq), 0)
            gateway.take_output()
        return size_of(vars(gateway.session), set())

    full = feed(1, 700)
    assert feed(700, 1400) <= full + 1000


def test_hello_text_of_the_hand_is_valid() -> None:
    """The valid frames that are spoilt above do hold, or the codes would show nothing."""
    gateway = new_gateway()
    for message in (register(), hello(), heartbeat(1)):
        take(gateway, message)
    assert judge_output(gateway) is None
    assert gateway.state is State.READY
    for type_name in frame_examples.example_types():
        for frame in frame_examples.examples(type_name):
            signed = sign(frame, nonce_of(1)) if CONTRACT.types[type_name].signed else frame
            assert CONTRACT.check_frame(type_name, json.loads(text(signed))) is None
