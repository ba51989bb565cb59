"""The attributes of toxics, read from JSON values as the Go server reads them, and strictly."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from lab.faults.refusals import BadToxic

LARGEST_INTEGER = 2**63 - 1
EXTENSION: Mapping[str, Any] = {"extension": True}
"""Metadata of an attribute that the Go server does not know: it is listed only where it says something."""

_WANTED = {int: "an integer", float: "a number", bool: "true or false"}


@dataclasses.dataclass(frozen=True)
class Attributes:
    """The attributes of a kind of toxic: integers, numbers and flags, each with its default."""

    def fault(self) -> tuple[str, str] | None:
        """The attribute whose value cannot be, and what is due; None where all can."""
        return None

    @property
    def most_held(self) -> float | None:
        """The most seconds by which a byte comes later, unless the line is full; None where nothing bounds it."""
        return None

    @property
    def is_idle(self) -> bool:
        """Whether with these values nothing is changed, whatever flows."""
        return False


A = TypeVar("A", bound=Attributes)


def read_attributes(kind: str, base: A, given: Mapping[str, object]) -> A:
    """`base` with the given values in place of its own. Names match without regard to case.

    Unknown names and null count as not given. Raises `BadToxic` for a value of another type, an integer that is not
    written as one, and a value that the kind cannot work with.
    """
    names = {field.name.casefold(): field.name for field in dataclasses.fields(base)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = names.get(key.casefold())
        if name is not None and value is not None:
            values[name] = _read(kind, name, type(getattr(base, name)), value)
    read = dataclasses.replace(base, **values)
    if (fault := read.fault()) is not None:
        attribute, due = fault
        raise BadToxic(
            "attributes", f"{kind} cannot have {attribute} {getattr(read, attribute)}: {due}", attribute=attribute
        )
    return read


def listed_attributes(attributes: Attributes) -> dict[str, int | float | bool]:
    """What a listing shows of them, in order."""
    return {
        field.name: getattr(attributes, field.name)
        for field in dataclasses.fields(attributes)
        if not field.metadata.get("extension") or getattr(attributes, field.name) != field.default
    }


def _read(kind: str, name: str, wanted: type, value: object) -> int | float | bool:
    read: int | float | bool | None = None
    if wanted is bool or isinstance(value, bool):
        read = value if wanted is bool and isinstance(value, bool) else None
    elif isinstance(value, int):
        read = value if abs(value) <= LARGEST_INTEGER else None
    elif isinstance(value, float) and wanted is float and math.isfinite(value):
        read = value
    if read is None:
        seen = value if isinstance(value, int | float) else type(value).__name__
        raise BadToxic("attributes", f"{kind}: {name} is {seen}, and {_WANTED[wanted]} is due", attribute=name)
    return float(read) if wanted is float else read
