"""The attributes of each kind of toxic as Go structs, so that a wrong one is refused in Go's words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from lab.faults.go_json import Field, Scalar, Struct
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import Attributes

_SCALARS: Mapping[type, Scalar] = {int: "int64", float: "float64", bool: "bool"}
_NAMES = {"reset_peer": "ResetToxic"}
"""Structs that the Go server does not call by their kind."""
_PLAIN_INTEGERS = {"slicer"}
"""Kinds whose integers are Go's `int`, which only a message tells from `int64`."""


def _struct(kind: str, defaults: Attributes) -> Struct:
    name = _NAMES.get(kind) or f"{kind.title().replace('_', '')}Toxic"
    scalars = {**_SCALARS, int: "int"} if kind in _PLAIN_INTEGERS else _SCALARS
    fields = [Field(field.name, scalars[type(getattr(defaults, field.name))]) for field in dataclasses.fields(defaults)]
    return Struct(f"toxics.{name}", tuple(fields))


ATTRIBUTES: Mapping[str, Struct] = MappingProxyType(
    {name: _struct(name, kind.attributes) for name, kind in KINDS.items()}
)
"""By kind; a kind that is not here does not exist."""
