"""What can come of a call: a value, a refusal in the contract's words, or no usable answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The answer that was due. `attempts` counts the tries of the call."""

    value: T
    status: int
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """The API answered with an error code; final but for the recovery of a context (PA-043).

    `org_spend` says that the organization's budget is spent (PA-051). `accepted_types` and `max_bytes` are the extra
    facts of a refused file, wherever the error carried them (PA-035).
    """

    code: str
    status: int
    attempts: int = 1
    org_spend: bool = False
    accepted_types: tuple[str, ...] = ()
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TransportError:
    """No answer of the contract came, and no code is made up for it (PA-057).

    `kind`: refused (nobody listens), reset (the connection ended before an answer), timeout, cut (an answer that ends
    in its midst), not-json, not-envelope (JSON of another form, or an answer without a member that the driver needs),
    too-long. `status` is 0 when no whole answer came.
    """

    kind: str
    status: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The deadline came before a terminal status did; `status` is the last that was seen (MSG-043)."""

    status: str | None
    polls: int


Outcome = Done[T] | ApiRefusal | TransportError
