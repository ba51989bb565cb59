"""What flows in one direction of a connection: chunks of bytes, and at last one end."""

from __future__ import annotations

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


def size_of(item: Item) -> int:
    """Bytes that an item counts for against a bound."""
    return 0 if isinstance(item, End) else len(item)
