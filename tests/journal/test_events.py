"""The events: kinds, digests, and that each survives the way through a file."""

from __future__ import annotations

import hashlib
import json
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import pytest

import lab.journal.partner_events  # noqa: F401  registers the events of the partner leg
from lab.journal.events import Event, digest, event_kinds
from lab.journal.reader import HEAD, entry_from_json
from lab.journal.writer import Entry, entry_to_json

KINDS = sorted(event_kinds())


def test_a_digest() -> None:
    assert digest("line", "\u00e9") == {
        "kind": "line",
        "bytes": 2,
        "sha256": hashlib.sha256("\u00e9".encode()).hexdigest(),
    }
    assert digest("line", "\ud800")["bytes"] == 3
    assert digest("line", b"ab")["bytes"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_each_event_is_a_dataclass_with_a_docstring(kind: str) -> None:
    cls = event_kinds()[kind]
    assert cls.kind == kind
    assert is_dataclass(cls)
    assert cls.__doc__
    assert not {member.name for member in fields(cls)} & HEAD


def _least(annotation: Any) -> Any:
    """The emptiest value of an annotation: None where it may be None."""
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        return None if type(None) in typing.get_args(annotation) else _least(typing.get_args(annotation)[0])
    if origin is tuple:
        return ()
    if annotation in (int, float, str, bool):
        return annotation()
    return {}


def _with_least(cls: type[Event]) -> Event:
    hints = typing.get_type_hints(cls)
    return cls(**{member.name: _least(hints[member.name]) for member in fields(cls)})


def _with_defaults(cls: type[Event]) -> Event:
    hints = typing.get_type_hints(cls)
    needed = [one for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING]
    return cls(**{member.name: _least(hints[member.name]) for member in needed})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [_with_least, _with_defaults])
def test_each_event_comes_back_equal(kind: str, make: Any) -> None:
    entry = Entry(3, 1.25, "gw", make(event_kinds()[kind]), 2)
    assert entry_from_json(json.loads(entry_to_json(entry))) == entry
