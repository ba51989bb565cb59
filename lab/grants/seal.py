"""The seal on a grant, shared by issuer and store: authenticated encryption, so that nobody else reads or alters it."""

from __future__ import annotations

import base64
import binascii
import json
import re

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from lab.errors import MisuseError, UsageError
from lab.grants.binding import NAMES, TIMES, GrantBinding

KEY_BYTES = SecretBox.KEY_SIZE
NONCE_BYTES = SecretBox.NONCE_SIZE

# GR-010: tg1. and base64url
PREFIX = "tg1."
# The bind call takes a grant of at most so many characters.
MAX_CHARACTERS = 8192

_TEXT = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9_-]+")


class GrantTooLong(UsageError):
    """A binding whose texts are too long for a grant."""


class Seal:
    """One sealing key of 32 bytes, made anew at each start (GR-016): it opens no grant of an earlier one."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise MisuseError(f"a sealing key has {KEY_BYTES} bytes, this one {len(key)}")
        self._box = SecretBox(key)

    def seal(self, binding: GrantBinding, nonce: bytes) -> str:
        """The grant. `nonce` has 24 bytes and must never be used twice with one key. Raises `GrantTooLong`."""
        claims = json.dumps([getattr(binding, name) for name in NAMES], separators=(",", ":")).encode()
        sealed = bytes(self._box.encrypt(claims, nonce))
        grant = PREFIX + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()
        if len(grant) > MAX_CHARACTERS:
            raise GrantTooLong(f"a grant of {len(grant)} characters is too long: {MAX_CHARACTERS} are the most")
        return grant

    def open(self, token: str) -> GrantBinding | None:
        """What the grant is for; None for one that is malformed, was altered, or bears another key's seal."""
        if len(token) > MAX_CHARACTERS or not _TEXT.fullmatch(token):
            return None
        text = token[len(PREFIX) :]
        try:
            sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            # The last character's spare bits say nothing: a grant has one spelling only.
            if base64.urlsafe_b64encode(sealed).rstrip(b"=").decode() != text:
                return None
            claims = json.loads(self._box.decrypt(sealed))
        except (binascii.Error, CryptoError, ValueError):
            return None
        return _binding(claims)


def _binding(claims: object) -> GrantBinding | None:
    if not isinstance(claims, list) or len(claims) != len(NAMES):
        return None
    kinds = (type(claim) is (int if name in TIMES else str) for name, claim in zip(NAMES, claims, strict=True))
    return GrantBinding(*claims) if all(kinds) else None
