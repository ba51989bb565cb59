"""Chance as an argument: named sub-streams of a seed, so that one seed gives one run."""

from __future__ import annotations

import base64
import hashlib


class Draws:
    """A named sub-stream of a run's chance: draw n is blake2b(seed, actor, purpose, n).

    A further actor or purpose does not shift what the others draw.
    """

    def __init__(self, seed: int, actor: str, purpose: str) -> None:
        self._key = f"{seed}\x00{actor}\x00{purpose}".encode()
        self._index = 0

    def bytes(self, size: int) -> bytes:
        """`size` bytes."""
        block = b""
        while len(block) < size:
            block += hashlib.blake2b(self._key + b"\x00%d" % self._index, digest_size=64).digest()
            self._index += 1
        return block[:size]

    def uuid(self) -> str:
        """A lower-case UUID (WS-004)."""
        raw = bytearray(self.bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def token(self) -> str:
        """43 characters of base64url: 32 bytes nobody can guess (CHAT-034)."""
        return base64.urlsafe_b64encode(self.bytes(32)).rstrip(b"=").decode()

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return int.from_bytes(self.bytes(7), "big") / (1 << 56)
