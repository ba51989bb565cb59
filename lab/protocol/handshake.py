"""The states of a connection as one table (HS-001): both sides follow it, one as writer, one as reader of each step."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType


class State(Enum):
    """Where a connection stands."""

    AWAIT_REGISTER = auto()
    AWAIT_HELLO = auto()
    AWAIT_READY = auto()
    READY = auto()
    V1 = auto()
    """The session went on in v1; no v2 frame is due (V1-010)."""
    ENDED = auto()


class Step(Enum):
    """What moves a connection."""

    REGISTER = auto()
    HELLO = auto()
    READY = auto()
    DATA = auto()
    ACK = auto()
    ERROR = auto()
    V1_REGISTER = auto()
    END = auto()


_OPEN = (State.AWAIT_REGISTER, State.AWAIT_HELLO, State.AWAIT_READY, State.READY)

TRANSITIONS: Mapping[tuple[State, Step], State] = MappingProxyType(
    {
        (State.AWAIT_REGISTER, Step.REGISTER): State.AWAIT_HELLO,
        (State.AWAIT_HELLO, Step.HELLO): State.AWAIT_READY,
        (State.AWAIT_READY, Step.READY): State.READY,
        (State.READY, Step.DATA): State.READY,
        (State.READY, Step.ACK): State.READY,
        # V1-002, V1-010: a v1 register is welcome until the connection is READY.
        (State.AWAIT_REGISTER, Step.V1_REGISTER): State.V1,
        (State.AWAIT_HELLO, Step.V1_REGISTER): State.V1,
        (State.AWAIT_READY, Step.V1_REGISTER): State.V1,
        **{(state, Step.ERROR): state for state in _OPEN},
        **{(state, Step.END): State.ENDED for state in State},
    }
)

_STEP_OF_TYPE = {
    "register": Step.REGISTER,
    "hello": Step.HELLO,
    "ready": Step.READY,
    "ack": Step.ACK,
    "error": Step.ERROR,
}


def step_of(type_name: str) -> Step:
    """The step that a frame of this type makes."""
    return _STEP_OF_TYPE.get(type_name, Step.DATA)


def refusal(state: State, step: Step) -> str | None:
    """The wire code due for a step that the table does not have, None when it has it."""
    if (state, step) in TRANSITIONS:
        return None
    # HS-017: a data frame before ready. An ack then acks nothing that can have been sent.
    # HS-016, HS-018: a handshake frame out of place; the very first frame must be register.
    early = step in (Step.DATA, Step.ACK) and state is not State.AWAIT_REGISTER
    return "not_ready" if early else "handshake_violation"
