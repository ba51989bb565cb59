"""Finding a run's canaries in a decoded frame: which one, and in which member."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

ENCODED_MEMBERS: Mapping[str, str] = {"content.response": "data", "webhook.forward": "bodyB64"}
"""The payload members that carry content in base64, by type."""

MOST_FOUND = 32
"""A frame names at most so many places."""

DEEPEST_ESCAPE = 3
"""Layers of JSON in JSON that are looked through."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CHARS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

Found = dict[str, str]


class CanarySearch:
    """Looks for the values of `canaries` (id to value) in messages of any form."""

    def __init__(self, canaries: Mapping[str, str]) -> None:
        self._canaries = tuple((name, value) for name, value in canaries.items() if value)

    def hit(self, text: str) -> bool:
        """Whether any canary stands in `text`."""
        return any(value in text for _, value in self._canaries)

    def ids(self, text: str) -> tuple[str, ...]:
        """The ids of the canaries that stand in `text`."""
        return tuple(name for name, value in self._canaries if value in text)

    def ids_in_body(self, body: bytes) -> tuple[str, ...]:
        """The ids of the canaries that stand in a body, as they are or behind escapes."""
        if not self._canaries:
            return ()
        text = body.decode("utf-8", "replace")
        return tuple(dict.fromkeys(name for layer in layers(text) for name in self.ids(layer)))

    def in_text(self, text: str) -> tuple[Found, ...]:
        """What stands in a message that is no JSON object."""
        return tuple({"id": name, "place": "text"} for name in self.ids(text))

    def in_frame(self, text: str, frame: Mapping[str, Any]) -> tuple[Found, ...]:
        """Each canary in `frame` once a member; array indices are dropped, base64 content is decoded."""
        if not self._canaries:
            return ()
        found: dict[tuple[str, str], None] = {}
        for name, place in self._encoded(frame):
            found[name, place] = None
        # Without an escape in it, what the text does not hold, no member holds.
        if "\\" in text or self.hit(text):
            for place, value in _strings(frame, ""):
                for name in self.ids(value):
                    found[name, self._safe(place)] = None
        return tuple({"id": name, "place": place} for name, place in list(found)[:MOST_FOUND])

    def _safe(self, place: str) -> str:
        """A place whose own name holds a canary must not carry it into the journal."""
        return ".".join("*" if self.hit(step) else step for step in place.split(".")) if self.hit(place) else place

    def _encoded(self, frame: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        type_name = frame.get("type")
        member = ENCODED_MEMBERS.get(type_name) if isinstance(type_name, str) else None
        payload = frame.get("payload")
        if member is None or not isinstance(payload, dict):
            return
        decoded = decoded_base64(payload.get(member))
        if decoded:
            for name in self.ids_in_body(decoded):
                yield name, f"payload.{member}"


def decoded_base64(value: object) -> bytes | None:
    """The bytes of a base64 text; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def layers(text: str) -> Iterator[str]:
    """`text`, and what it says once its JSON escapes are resolved, and theirs: JSON stands in JSON."""
    yield text
    for _ in range(DEEPEST_ESCAPE):
        if "\\" not in text:
            return
        text = _ESCAPE.sub(_resolved, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield text


def _resolved(escape: re.Match[str]) -> str:
    code, char = escape.groups()
    return chr(int(code, 16)) if code else _CHARS.get(char, char)


def _strings(node: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text in `node` with its member path; a member's name counts as a text at its own path."""
    stack: list[tuple[Any, str]] = [(node, place)]
    while stack:
        value, at = stack.pop()
        if isinstance(value, str):
            yield at, value
        elif isinstance(value, dict):
            for name, member in value.items():
                inner = f"{at}.{name}" if at else name
                yield inner, name
                stack.append((member, inner))
        elif isinstance(value, list):
            stack.extend((item, f"{at}[]") for item in value)
