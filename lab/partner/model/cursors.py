"""Cursors of the history: a signed place in one conversation, opaque to whoever carries it (HIS-005, HIS-027)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass

from lab.partner.model.words import CURSOR_CHARACTERS

VERSION = 1

_FORM = struct.Struct(">BQQ")
_SIGNATURE_BYTES = 16
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Position:
    """An item's place: when it was created, in epoch milliseconds, and its number in order of insertion."""

    created_ms: int
    number: int


class Cursors:
    """Signs and reads cursors. `key` is a secret that outlives a restart, or the cursors do not."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, conversation_id: str, position: Position) -> str:
        """The cursor of `position`, in letters that a query needs no escape for."""
        body = _FORM.pack(VERSION, position.created_ms, position.number)
        return base64.urlsafe_b64encode(body + self._signature(conversation_id, body)).rstrip(b"=").decode()

    def read_untrusted(self, cursor: str, conversation_id: str) -> Position | None:
        """The position in a cursor of `conversation_id`; None for whatever was not written here for it (HIS-028)."""
        if len(cursor) > CURSOR_CHARACTERS or not cursor.isascii():
            return None
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        body, signature = raw[: _FORM.size], raw[_FORM.size :]
        if len(body) < _FORM.size or not hmac.compare_digest(signature, self._signature(conversation_id, body)):
            return None
        version, created_ms, number = _FORM.unpack(body)
        # Base64 has a second pair of letters for the same bits: only one writing counts.
        position = Position(created_ms, number)
        if version != VERSION or max(created_ms, number) > _LARGEST or self.write(conversation_id, position) != cursor:
            return None
        return position

    def _signature(self, conversation_id: str, body: bytes) -> bytes:
        message = body + conversation_id.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, message, hashlib.sha256).digest()[:_SIGNATURE_BYTES]
