"""The rules of a content.response series: judging one that arrives, and cutting a body into one."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass

from lab.protocol.frames import Chunk

STREAMS_REMEMBERED = 256
"""Series that a tracker remembers; the least recently used is forgotten first (CH-005)."""


@dataclass(slots=True)
class _Series:
    total: int
    next_index: int = 0

    @property
    def finished(self) -> bool:
        return self.next_index == self.total


class ChunkTracker:
    """Where each series stands, by requestId."""

    def __init__(self, max_chunks: int, chunk_raw_bytes: int) -> None:
        self._max_chunks = max_chunks
        self._chunk_raw_bytes = chunk_raw_bytes
        self._series: OrderedDict[str, _Series] = OrderedDict()

    def refusal(self, request_id: str, chunk: Chunk, decoded_bytes: int | None, byte_length: int) -> str | None:
        """The wire code due for a chunk, None when it fits; nothing moves by asking.

        `decoded_bytes` is None for data that is not base64. The order of the checks is CH-003's, then CH-004.
        """
        series = self._series.get(request_id)
        if series is not None and series.finished:
            return "chunk_out_of_order"
        if series is not None and series.total != chunk.total:
            return "chunk_inconsistent"
        if chunk.total > self._max_chunks:
            return "chunk_inconsistent"
        # CH-006: the first chunk of a series has index 0.
        if chunk.index != (series.next_index if series is not None else 0):
            return "chunk_out_of_order"
        if chunk.last != (chunk.index == chunk.total - 1):
            return "chunk_inconsistent"
        # CH-020: 43692 characters may decode to one byte too many.
        if decoded_bytes is None or decoded_bytes > self._chunk_raw_bytes or decoded_bytes != byte_length:
            return "chunk_inconsistent"
        return None

    def advance(self, request_id: str, chunk: Chunk) -> None:
        """A chunk that was not refused has been received."""
        series = self._series.setdefault(request_id, _Series(chunk.total))
        series.next_index += 1
        self._series.move_to_end(request_id)
        if len(self._series) > STREAMS_REMEMBERED:
            self._series.popitem(last=False)

    def reset(self) -> None:
        """No series continues across a lost session (RS-014)."""
        self._series.clear()


def chunk_count(size: int, chunk_raw_bytes: int) -> int:
    """Number of chunks of a body; an empty one is one empty chunk (CH-002)."""
    return max(1, -(-size // chunk_raw_bytes))


def cut(body: bytes, index: int, chunk_raw_bytes: int) -> tuple[Chunk, bytes]:
    """One chunk of a body, made when it is asked for (CH-015)."""
    total = chunk_count(len(body), chunk_raw_bytes)
    offset = index * chunk_raw_bytes
    return Chunk(index, total, index == total - 1), body[offset : offset + chunk_raw_bytes]


def decode_base64(data: str) -> bytes | None:
    """Canonical standard base64 (CH-021), None for anything else."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == data else None
