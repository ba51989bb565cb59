"""What a connection wants written, and what it tells its application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.protocol.frames import Frame
from lab.protocol.reliability import Delivery

# What a connection wants written


@dataclass(frozen=True)
class Transmit:
    """Write this text message."""

    text: str


@dataclass(frozen=True)
class Close:
    """Close the socket with this code, after all that was written before."""

    code: int
    awaits_peer: bool = False
    """Whether the peer has named a fatal error: its own close with that error's number is due first (WS-042)."""


Output = Transmit | Close


# What a connection tells its application


@dataclass(frozen=True)
class Received:
    """A data frame, in order and once. Answer it at once with `accept` or `reject`. `data` is a chunk's content."""

    frame: Frame
    data: bytes | None = None


@dataclass(frozen=True)
class Repeated:
    """A data frame that was received before; it has been acked duplicate and must not be acted on (SQ-002)."""

    frame: Frame


@dataclass(frozen=True)
class Settled:
    """A data frame of this side is over: delivered, rejected or failed, with its code."""

    delivery: Delivery


@dataclass(frozen=True)
class Overdue:
    """A data frame had no ack after its last retransmission: its caller gets timeout, the session keeps it (SQ-020)."""

    delivery: Delivery


@dataclass(frozen=True)
class ContentFailed:
    """A body will not go out to its end; chunks of it that had a number are told on their own (CH-017, RS-014)."""

    request_id: str
    code: str


@dataclass(frozen=True)
class BecameReady:
    """The handshake is done. `sent_again` counts the frames that a resume repeated."""

    resumed: bool
    session_id: str
    capabilities: tuple[str, ...]
    sent_again: int = 0


@dataclass(frozen=True)
class PeerError:
    """The peer sent an error frame."""

    code: str


@dataclass(frozen=True)
class SignatureWarning:
    """A signature did not hold, and the mode is warn: the frame goes on (SG-010)."""

    code: str
    type: str


@dataclass(frozen=True)
class TurnedV1:
    """The connection goes on in v1."""


@dataclass(frozen=True)
class V1Message:
    """A message without schemaVersion that is for the v1 handler (V1-003, V1-009)."""

    members: Mapping[str, Any]


@dataclass(frozen=True)
class HeartbeatDue:
    """Send a heartbeat frame now (SQ-028)."""


@dataclass(frozen=True)
class Ended:
    """No further frame will be sent or taken. `code` is the wire code, None for a plain end."""

    code: str | None
    by: str


Event = (
    Received
    | Repeated
    | Settled
    | Overdue
    | ContentFailed
    | BecameReady
    | PeerError
    | SignatureWarning
    | TurnedV1
    | V1Message
    | HeartbeatDue
    | Ended
)
