"""The search for what must not stand in an answer: keys, grants, credentials and canaries, plain or encoded."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from lab.tap.canaries import layers

SHORTEST_ENCODED = 8
"""The encoded forms of a shorter value are not looked for: they would be found by chance."""

_DECODED_TIMES = 2
"""Layers of percent encoding that are looked through."""


class SecretSearch:
    """Looks for the values of `secrets` (name to value) as they are, and in the forms that programs give them.

    Forms: JSON escapes, percent encoding, hex in either case, and base64 and base64url wherever in a longer text the
    value began.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._needles: dict[str, tuple[bytes, ...]] = {}
        for name, value in secrets.items():
            self.know(name, value)

    def know(self, name: str, value: str) -> None:
        """Look for a further one; an empty value is none."""
        if value:
            self._needles[name] = tuple(dict.fromkeys(_forms(value.encode("utf-8", "surrogatepass"))))

    def names_in(self, raw: bytes) -> tuple[str, ...]:
        """The names of those that stand in `raw`, in the order in which they were made known."""
        texts = tuple(_readings(raw))
        return tuple(
            name
            for name, needles in self._needles.items()
            if any(needle in text for text in texts for needle in needles)
        )

    def hit(self, text: str) -> bool:
        """Whether any stands in `text`."""
        return bool(self.names_in(text.encode("utf-8", "surrogatepass")))


def _forms(value: bytes) -> Iterator[bytes]:
    yield value
    if len(value) < SHORTEST_ENCODED:
        return
    yield value.hex().encode()
    yield value.hex().upper().encode()
    for shift in range(3):
        # Of a value that begins anywhere in what was encoded, the characters that no neighbour has a bit in.
        first, last = (shift * 8 + 5) // 6, (shift + len(value)) * 8 // 6
        yield base64.b64encode(bytes(shift) + value)[first:last]
        yield base64.urlsafe_b64encode(bytes(shift) + value)[first:last]


def _readings(raw: bytes) -> Iterator[bytes]:
    """The bytes as they are, behind JSON escapes, and behind percent encoding."""
    seen: dict[bytes, None] = {raw: None}
    if b"\\" in raw:
        for layer in layers(raw.decode("utf-8", "replace")):
            seen[layer.encode("utf-8", "replace")] = None
    for text in tuple(seen):
        for _ in range(_DECODED_TIMES):
            if b"%" not in text:
                break
            text = unquote_to_bytes(text)
            seen[text] = None
    yield from seen
