"""JSON into a struct and back as Go's encoding/json does it, which is what Toxiproxy's clients are used to.

Keys match without regard to case, unknown ones are ignored, null leaves a member unset, an integer takes neither
1.5 nor "5". Written out there are no spaces, and what a browser could take for markup is escaped.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from lab.faults.go_scan import GoJsonError, Number, Object, Value, scan_untrusted

__all__ = [
    "Field",
    "GoJsonError",
    "List",
    "Object",
    "Raw",
    "Scalar",
    "Struct",
    "decode_later",
    "decode_untrusted",
    "encode",
]

Scalar: TypeAlias = Literal["string", "bool", "int", "int64", "float32", "float64"]


@dataclass(frozen=True)
class Field:
    """A member of a struct and its key in JSON."""

    name: str
    type: Type


@dataclass(frozen=True)
class Struct:
    """A struct. `type_name` is how Go spells its type: `toxiproxy.Proxy`, or `struct {…}` for one without a name."""

    type_name: str
    fields: tuple[Field, ...]

    @property
    def short_name(self) -> str:
        """The name without its package, which is empty for a struct without a name."""
        return "" if self.type_name.startswith("struct {") else self.type_name.rpartition(".")[2]

    def field(self, key: str) -> Field | None:
        """The field that a key means; its case says nothing."""
        folded = _fold(key)
        return next((field for field in self.fields if _fold(field.name) == folded), None)


@dataclass(frozen=True)
class List:
    """A list of structs."""

    of: Struct

    @property
    def type_name(self) -> str:
        """How Go spells it."""
        return f"[]{self.of.type_name}"


@dataclass(frozen=True)
class Raw:
    """An object that is kept as it stands, as `Object`, until it is known what it means."""

    type_name: str


Type: TypeAlias = Scalar | Struct | List | Raw


def decode_untrusted(data: bytes, into: Struct | List) -> Any:
    """What a body sets: a dict with the members that it names, by the fields' own names, or a list of such dicts.

    `null` in place of the whole is an empty one. Raises `GoJsonError` with Go's own words, and nothing else.
    """
    return _decoded(scan_untrusted(data), into, _Where())


def decode_later(value: Object, into: Struct, path: tuple[str, ...]) -> dict[str, Any]:
    """What an object that was kept sets. `path` is where it stands, for messages. Raises `GoJsonError`."""
    return _decoded_struct(value, into, _Where(into.short_name, path))


@dataclass(frozen=True)
class _Where:
    struct: str = ""
    path: tuple[str, ...] = ()

    def refused(self, seen: str, due: Type) -> GoJsonError:
        type_name = due if isinstance(due, str) else due.type_name
        place = f"struct field {self.struct}.{'.'.join(self.path)}" if self.path else "value"
        return GoJsonError(f"json: cannot unmarshal {seen} into Go {place} of type {type_name}")


def _decoded(value: Value, into: Type, where: _Where) -> Any:
    if isinstance(into, Struct):
        return _decoded_struct(value, into, where)
    if isinstance(into, List):
        if value is None:
            return []
        if not isinstance(value, list):
            raise where.refused(_kind(value), into)
        return [_decoded_struct(part, into.of, where) for part in value]
    if isinstance(into, Raw):
        if not isinstance(value, Object):
            raise where.refused(_kind(value), into)
        return value
    return _decoded_scalar(value, into, where)


def _decoded_struct(value: Value, into: Struct, where: _Where) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if value is None:
        return made
    if not isinstance(value, Object):
        raise where.refused(_kind(value), into)
    for key, part in value.members:
        field = into.field(key)
        if field is None or part is None:
            continue
        decoded = _decoded(part, field.type, _Where(into.short_name, (*where.path, field.name)))
        made[field.name] = _joined(made.get(field.name), decoded)
    return made


def _joined(before: Any, decoded: Any) -> Any:
    """A struct that comes twice is filled twice; of anything else the last counts."""
    if isinstance(before, dict):
        return {**before, **decoded}
    if isinstance(before, Object):
        # In place, or a body that names it fifty thousand times would cost their square; nobody else has this tree.
        before.members.extend(decoded.members)
        return before
    return decoded


def _decoded_scalar(value: Value, into: Scalar, where: _Where) -> str | bool | int | float:
    if isinstance(value, str) and into == "string":
        return value
    if isinstance(value, bool) and into == "bool":
        return value
    if isinstance(value, Number) and into not in {"string", "bool"}:
        number = _number(value.literal, into)
        if number is None:
            raise where.refused(f"number {value.literal}", into)
        return number
    raise where.refused(_kind(value), into)


def _number(literal: str, into: Scalar) -> int | float | None:
    if into in {"int", "int64"}:
        # Nothing longer is in the range, and a text of a million digits is dear to read.
        whole = int(literal) if re.fullmatch("-?[0-9]{1,19}", literal) else None
        return whole if whole is not None and -(1 << 63) <= whole < 1 << 63 else None
    number = float(literal)
    if math.isinf(number):
        return None
    return _nearest_float32(number) if into == "float32" else number


def _nearest_float32(number: float) -> float | None:
    """The shortest decimal that means the same 32 bits, as Go would show it; None where they cannot hold it."""
    try:
        bits = struct.pack("<f", number)
    except OverflowError:
        return None
    (exact,) = struct.unpack("<f", bits)
    shown = (float(f"{exact:.{digits}g}") for digits in range(1, 10))
    return next((short for short in shown if _bits(short) == bits), exact)


def _bits(number: float) -> bytes:
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return b""


def _kind(value: Value) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case Number():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _fold(key: str) -> str:
    # Besides the two cases of a letter Go takes the long s and the sign of kelvin for s and k.
    return key.replace("\u017f", "s").lower()


# Writing

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPE = re.compile('["\\\\<>&\x00-\x1f\u2028\u2029]')
_EXPONENT = re.compile(r"e-0(\d)$")


def encode(value: object) -> bytes:
    """`value` as `json.Marshal` writes it; the order of a mapping's keys is kept, as that of a struct's members is.

    It takes None, bool, str, int, finite float, mappings with text keys, and sequences of these.
    """
    return _encoded(value).encode("utf-8", "replace")


def _encoded(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _encoded_text(value)
        case int():
            return str(value)
        case float():
            return _encoded_float(value)
        case Mapping():
            return f"{{{','.join(f'{_encoded_text(str(key))}:{_encoded(part)}' for key, part in value.items())}}}"
        case Sequence():
            return f"[{','.join(map(_encoded, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} has no form in JSON")


def _encoded_text(text: str) -> str:
    return f'"{_ESCAPE.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}")


def _encoded_float(number: float) -> str:
    # Go writes an exponent below 1e-6 and from 1e21 on, and without a leading zero where it is negative.
    if number != 0 and not 1e-6 <= abs(number) < 1e21:
        return _EXPONENT.sub(r"e-\1", repr(number))
    return format(Decimal(repr(number)), "f").removesuffix(".0")
