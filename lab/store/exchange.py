"""What goes over the border of the store's core: a request as it came, and what the shell is to do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lab.journal.partner_events import StoreRequest
from lab.store.sessions import Session


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request at the MCP endpoint. `body` is None for one that was too long to read."""

    method: str
    fields: tuple[tuple[str, str], ...]
    body: bytes | None = b""
    # A call looks for fifteen headers.
    _by_name: Mapping[str, Sequence[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[str, list[str]] = {}
        for name, value in self.fields:
            by_name.setdefault(name.lower(), []).append(value)
        object.__setattr__(self, "_by_name", by_name)

    def all(self, name: str) -> Sequence[str]:
        """The values of a header; its name in any case."""
        return self._by_name.get(name.lower(), ())

    def one(self, name: str) -> str | None:
        """The header's value. None where it is missing, and where it comes twice: nobody says which counts."""
        values = self.all(name)
        return values[0].strip() if len(values) == 1 else None


class Ending(StrEnum):
    """How an answer ends once its chunks are written."""

    WHOLE = "whole"
    CUT = "cut"
    """The connection is closed, and what was announced is not there."""
    RESET = "reset"
    """The connection is reset."""
    NEVER = "never"
    """Nothing more comes, and the connection stays."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the shell writes. A status of 0 writes nothing, not even a head.

    After `wait` seconds the head, then `chunks`, then the ending. `streamed` bodies are chunked; of others
    `length` bytes are announced, which may be more than there are. `listening` is the session whose own stream
    this is: it stays open until the session ends.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[bytes, ...] = ()
    streamed: bool = False
    length: int = 0
    wait: float = 0.0
    ending: Ending = Ending.WHOLE
    listening: Session | None = None

    @property
    def whole_body(self) -> bytes | None:
        """The body of an ordinary answer: one that is known, is all that is announced, and ends well."""
        if self.status == 0 or self.streamed or self.ending is not Ending.WHOLE or len(self.chunks) != 1:
            return None
        return self.chunks[0] if len(self.chunks[0]) == self.length else None


@dataclass(frozen=True, slots=True)
class Handled:
    """How a request is answered, and its entry of the journal."""

    delivery: Delivery
    event: StoreRequest


@dataclass(slots=True)
class Seen:
    """What the journal hears of a request, gathered on the way."""

    http: str
    era: str = ""
    method: str | None = None
    tool: str | None = None
    rpc_error: int | None = None
    is_error: bool = False
    refused: str | None = None
    executed: bool = False
    duplicate: bool = False
    misbehaved: str | None = None
    grant: str | None = None
    binding: dict[str, object] | None = None
    turn_id: str | None = None
    call_id: str | None = None
    conversation_header: str | None = None
    session: str | None = None
    facts: dict[str, object] = field(default_factory=dict)

    def event(self, delivery: Delivery) -> StoreRequest:
        """The entry, for this answer."""
        # An answer that is torn on purpose has no status of its own.
        status = delivery.status if delivery.ending is Ending.WHOLE else 0
        return StoreRequest(
            http=self.http,
            era=self.era,
            method=self.method,
            status=status,
            tool=self.tool,
            rpc_error=self.rpc_error,
            is_error=self.is_error,
            refused=self.refused,
            executed=self.executed,
            duplicate=self.duplicate,
            misbehaved=self.misbehaved,
            grant=self.grant,
            binding=self.binding,
            turn_id=self.turn_id,
            call_id=self.call_id,
            conversation_header=self.conversation_header,
            session=self.session,
            facts=self.facts,
        )
