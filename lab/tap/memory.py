"""The witness of what a part of the lab holds in memory: where canaries stand in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from lab.tap.canaries import MOST_FOUND, CanarySearch

MOST_OBJECTS = 200_000
"""Objects that are looked at."""

Found = dict[str, str]


def canaries_held(root: object, canaries: CanarySearch) -> tuple[Found, ...] | None:
    """Each canary in a text or in bytes that `root` leads to: `id`, and `place` as the names of attributes.

    None where there was too much to look at. What functions keep in closures is not seen.
    """
    contents = list(_contents(root, MOST_OBJECTS))
    if len(contents) and contents[-1] == _TOO_MUCH:
        return None
    # Hardly ever is there one, and a single search is much faster than thousands.
    if not canaries.ids_in_body(b"\n".join(content for _, content in contents)):
        return ()
    found = {(name, place): None for place, content in contents for name in canaries.ids_in_body(content)}
    # Sorted, because the texts of a set come in an order of their own in each process.
    return tuple({"id": name, "place": place} for name, place in sorted(found)[:MOST_FOUND])


_TOO_MUCH = ("", b"")


def _contents(root: object, most: int) -> Iterator[tuple[str, bytes]]:
    waiting: deque[tuple[str, object]] = deque([("", root)])
    known: dict[int, object] = {}
    while waiting:
        if len(known) >= most:
            yield _TOO_MUCH
            return
        place, value = waiting.popleft()
        if isinstance(value, str):
            yield place, value.encode("utf-8", "surrogatepass")
        elif isinstance(value, bytes | bytearray | memoryview):
            yield place, bytes(value)
        elif id(value) not in known:
            # Kept, so that no other object gets its id meanwhile.
            known[id(value)] = value
            waiting.extend(_members(place, value))


def _members(place: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from ((place, part) for item in value.items() for part in item)
    elif isinstance(value, list | tuple | deque | AbstractSet):
        yield from ((place, part) for part in value)
    elif isinstance(value, partial):
        yield from ((place, part) for part in (*value.args, *value.keywords.values()))
    if not isinstance(value, type) and not callable(value):
        for name, part in _attributes(value):
            yield f"{place}.{name}" if place else name, part


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = name.startswith("__") and not name.endswith("__")
            held = f"_{owner.__name__.lstrip('_')}{name}" if mangled else name
            if hasattr(value, held):
                yield name, getattr(value, held)
