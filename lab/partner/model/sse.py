"""The bytes of a run's event stream, and the place at which a reader continues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

# SSE-039: a comment while nothing happens
KEEP_ALIVE = b": keep-alive\n\n"
LARGEST_SEQUENCE = (1 << 53) - 1

_SEQUENCE = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)


def compact(data: Mapping[str, object]) -> str:
    """`data` as one line of JSON; line ends inside of texts are escaped (SSE-053)."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode(run_id: str, sequence: int, kind: str, data: str) -> bytes:
    """One event: id, event and data lines and an empty one (SSE-002, SSE-003, SSE-004). `data` is `compact` JSON."""
    return f"id: {run_id}:{sequence}\nevent: {kind}\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def continue_after(header: str | None, run_id: str, last: int) -> int | None:
    """The sequence that a stream continues after, for its Last-Event-ID; None when that is not acceptable.

    `last` is the sequence of the last event that the run has. Without a header, and with 0, everything is sent.
    """
    if header is None:
        return 0
    # SSE-031, SSE-032: this run's id, a colon and a plain number
    named, colon, number = header.rpartition(":")
    if not colon or named != run_id or not _SEQUENCE.fullmatch(number):
        return None
    # SSE-033: beyond what was stored nothing can have been delivered
    sequence = int(number)
    return sequence if sequence <= min(last, LARGEST_SEQUENCE) else None
