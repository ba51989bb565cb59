"""What flows in one direction of a connection: chunks of bytes, and at last one end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

CHUNK_BYTES = 32 * 1024
"""A chunk that a toxic sees is at most so long."""


class End(Enum):
    """How a direction ends; passed on in order, behind the bytes before it."""

    EOF = "eof"
    """The source has sent FIN: its receiver gets one, and the other direction lives on."""
    RESET = "reset"
    """The source was reset: its receiver gets an RST."""
    CLOSE = "close"
    """A toxic closes the connection: both sides get FIN."""
    BREAK = "break"
    """A toxic breaks the connection: both sides get RST."""


Item = bytes | End


LEAST_CHARGE = 64
"""Bytes for which a chunk counts at least where it is held: to hold it costs about that beside its bytes."""


def size_of(item: Item) -> int:
    """Bytes of an item."""
    return 0 if isinstance(item, End) else len(item)


def charge_of(size: int) -> int:
    """Bytes for which a chunk of that size counts against a bound, so that many small ones are bounded too."""
    return max(size, LEAST_CHARGE) if size else 0


@dataclass(slots=True)
class Load:
    """What is held in one place: `size` in bytes, and the `charge` that it counts for against a bound."""

    size: int = 0
    charge: int = 0

    def put(self, item: Item) -> None:
        """One more."""
        size = size_of(item)
        self.size += size
        self.charge += charge_of(size)

    def take(self, item: Item) -> None:
        """One of those that were put is held no longer."""
        size = size_of(item)
        self.size -= size
        self.charge -= charge_of(size)

    def clear(self) -> None:
        """Nothing is held."""
        self.size = self.charge = 0


@dataclass(slots=True)
class LastByte:
    """When the last byte of a connection came, whichever way; its two directions share it."""

    at: float = -math.inf
