"""Messages that no gateway may send: what an agent has to refuse, each for a reason of its own."""

from __future__ import annotations

from lab.protocol.frames import SCHEMA_VERSION
from lab.protocol.wire import encode

JUNK = ("oversize", "no-json", "unknown-type", "binary")
"""The words for them in a scenario."""


def junk(word: str, tenant_id: str, max_frame_bytes: int) -> str | bytes:
    """The message that a word of `JUNK` stands for; the same each time."""
    frame = {"schemaVersion": SCHEMA_VERSION, "type": "no.such.type", "tenantId": tenant_id, "payload": {}}
    match word:
        case "oversize":
            # One byte more than a frame may have.
            text = encode({**frame, "padding": ""})
            return encode({**frame, "padding": "x" * (max_frame_bytes + 1 - len(text))})
        case "no-json":
            return "this is no JSON"
        case "unknown-type":
            return encode(frame)
        case _:
            return b"\x00\x01\x02\x03"
