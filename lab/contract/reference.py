"""The reference of frames and errors, `docs/protocol-reference.md`, rendered from schemas and tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lab.contract.schema_shapes import (
    Shape,
    Side,
    as_node,
    bare,
    forbids,
    mark_of,
    members_of,
    plain,
    resolved,
    texts_of,
    type_words,
    values_of,
)
from lab.protocol.contract import BODIES, Contract, Limits, TypeRecord
from lab.protocol.errors import ERROR_CODES, CloseCodes

PAGE = Path("docs/protocol-reference.md")
"""Where the page lies in the project."""

COMMAND = "lab contract reference"
"""What writes the page anew, run in the project's folder."""

ENVELOPE = "envelope"
_DEFS = "defs"
_HEAD = f"""# Reference of the LA protocol v2

Made by `{COMMAND}` from the schemas of a contract folder and the lab's table of codes; edit those, not this page.

- *since* is the revision that brought the member, where it came after its type.
- *choice* names the requirement that records what the lab chose where the sources are silent; the rest is stated.
- A name in `code` under *shape* is one of the [definitions](#definitions). Lengths count Unicode code points.
- Every object is closed: a member that is not listed is refused, unless the shape says otherwise.
"""
_DIRECTIONS = {
    "la-to-cp": "Local Agent to control plane",
    "cp-to-la": "control plane to Local Agent",
    "both": "both ways",
}
_UNITS = {
    "bytes": "bytes",
    "chars": "characters",
    "ms": "ms",
    "seconds": "s",
    "chunks": "chunks",
    "retransmissions": "copies",
    "entries": "entries",
}
_RANGES = (
    ("minLength", "maxLength", "characters"),
    ("minimum", "maximum", ""),
    ("minItems", "maxItems", "entries"),
    ("minProperties", "maxProperties", "members"),
)
_RULES = ("if", "allOf", "anyOf", "dependentRequired", "dependentSchemas")
_BIGGEST_WHOLE = 9007199254740991


@dataclass(frozen=True, slots=True)
class Row:
    """A member: its path, its shape in words, whether it has to be there, and the choice that it is, if it is one."""

    path: str
    shape: str
    required: bool
    requirement: str | None


def reference_page(contracts: Sequence[Contract]) -> str:
    """The page for one contract in its revisions, the newest last."""
    newest = contracts[-1]
    parts = [
        _HEAD,
        _revisions(contracts),
        _limits(newest.limits),
        _errors(newest),
        _section("Envelope", "", _table(contracts, ENVELOPE, _envelope_rows)),
        "## Frames\n",
        *(_frame(contracts, record) for record in newest.types.values()),
        "## Bodies\n\nDecoded from the chunks of a `content.response`; no frames.\n",
        *(_body(contracts, f"{body}.body") for body in BODIES),
        _definitions(contracts),
    ]
    return "\n".join(parts)


def _revisions(contracts: Sequence[Contract]) -> str:
    lines = ["| revision | frame types | new |", "|---|---|---|"]
    before: Mapping[str, TypeRecord] = {}
    for contract in contracts:
        new = ", ".join(f"`{name}`" for name in contract.types if name not in before) if before else ""
        lines.append(f"| {contract.revision} | {len(contract.types)} | {new} |")
        before = contract.types
    return _section("Revisions", "", lines)


def _limits(limits: Limits) -> str:
    lines = ["| limit | figure |", "|---|---|"]
    for field in fields(limits):
        first, *rest = field.name.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        lines.append(f"| `{name}` | {getattr(limits, field.name)} {_UNITS[rest[-1]]} |")
    return _section("Limits", "", lines)


def _errors(contract: Contract) -> str:
    closes = CloseCodes(contract.error_codes)
    lines = ["| code | close code | ends the connection | worth trying again | at fault | meaning |"]
    lines.append("|---|---|---|---|---|---|")
    for name in contract.error_codes:
        code = ERROR_CODES[name]
        ends, again = (("yes" if flag else "no") for flag in (code.fatal, code.retryable))
        lines.append(f"| `{name}` | {closes.of(name)} | {ends} | {again} | {code.at_fault} | {code.doc} |")
    about = (
        "The order of the contract's enum gives the close codes (WS-040); what is fatal is a choice (WS-043, WS-044)."
    )
    return _section("Error codes", about, lines)


def _frame(contracts: Sequence[Contract], record: TypeRecord) -> str:
    newest, name = contracts[-1], record.name
    facts = [_DIRECTIONS[record.direction.value], "signed" if record.signed else "not signed"]
    facts += ["control frame, `seq` 0"] if record.control else []
    facts += [f"content class {record.content_class}"] if record.content_class != "none" else []
    since = next(contract.revision for contract in contracts if name in contract.types)
    facts += [f"since {since}"] if since != contracts[0].revision else []
    schema = newest.schema(name)
    required = [f"`{member}`" for member in texts_of(schema.get("required"))]
    told = "; ".join(facts)
    words = [f"{told[0].upper()}{told[1:]}."]
    words += [f"Of the envelope it needs {', '.join(required)} as well."] if required else []
    payload = _resolved_payload(Side(_schemas(newest)), name)
    odd = [f"`{rule}`" for rule in _RULES if rule in payload.node or rule in schema]
    words += [f"The schema has further rules: {', '.join(odd)}."] if odd else []
    rows = _table(contracts, name, lambda side: _shape_rows(side, _resolved_payload(side, name), ""))
    return _section(f"`{name}`", " ".join(words), rows, level=3)


def _body(contracts: Sequence[Contract], name: str) -> str:
    return _section(f"`{name}`", "", _table(contracts, name, lambda side: _rows(side, name)), level=3)


def _definitions(contracts: Sequence[Contract]) -> str:
    side = Side(_schemas(contracts[-1]))
    lines = ["| name | shape | required | choice |", "|---|---|---|---|"]
    found: list[tuple[str, Any]] = sorted(side.find(_DEFS, "/$defs").items())
    for name, node in found:
        if name == "errorCode" or forbids(plain(Shape(node, _DEFS))):
            continue
        shape = Shape(node, _DEFS)
        lines.append(f"| `{name}` | {_cell(_words(side, shape))} |  | {mark_of(shape) or ''} |")
        lines += [
            f"| `{name}.{row.path}` | {_cell(row.shape)} | {'yes' if row.required else ''} | {row.requirement or ''} |"
            for row in _shape_rows(side, shape, "")
        ]
    lines.append("| `errorCode` | one of the [error codes](#error-codes) |  |  |")
    return _section("Definitions", "", lines)


def _section(title: str, about: str, lines: Sequence[str], level: int = 2) -> str:
    parts = [f"{'#' * level} {title}\n", *([f"{about}\n"] if about else []), *lines]
    return "\n".join(parts) + "\n"


def _table(contracts: Sequence[Contract], name: str, rows_of: Callable[[Side], Iterable[Row]]) -> list[str]:
    """The rows of the newest revision, each with the first one that has it and how it was before."""
    having = [contract for contract in contracts if name in contract.types or name not in contracts[-1].types]
    by_revision = [
        (contract.revision, {row.path: row for row in rows_of(Side(_schemas(contract)))}) for contract in having
    ]
    newest = by_revision[-1][1]
    if not newest:
        return ["The payload has no members."]
    lines = ["| member | shape | required | since | choice |", "|---|---|---|---|---|"]
    for path, row in newest.items():
        since = next(revision for revision, rows in by_revision if path in rows)
        shown_since = since if since != by_revision[0][0] else ""
        earlier = _earlier(path, row, by_revision)
        shape = f"{row.shape}; {earlier}" if earlier else row.shape
        required = "yes" if row.required else ""
        lines.append(f"| `{path}` | {_cell(shape)} | {required} | {shown_since} | {row.requirement or ''} |")
    return lines


def _earlier(path: str, row: Row, by_revision: Sequence[tuple[str, Mapping[str, Row]]]) -> str:
    """How the member was in older revisions, where it was something else."""
    different = [(revision, rows[path]) for revision, rows in by_revision if path in rows and rows[path] != row]
    return f"to {different[-1][0]}: {different[-1][1].shape}" if different else ""


def _schemas(contract: Contract) -> dict[str, Any]:
    names = (ENVELOPE, _DEFS, *contract.types, *(f"{body}.body" for body in BODIES))
    return {name: contract.schema(name) for name in names}


def _resolved_payload(side: Side, name: str) -> Shape:
    payload = members_of(side.schemas[name]).get("payload")
    return resolved(Shape(as_node(payload), name), side)


def _rows(side: Side, name: str) -> Iterator[Row]:
    yield from _shape_rows(side, resolved(Shape(side.schemas[name], name), side), "")


def _envelope_rows(side: Side) -> Iterator[Row]:
    for row in _rows(side, ENVELOPE):
        yield replace(row, shape="one of the [frames](#frames) of the revision") if row.path == "type" else row


def _shape_rows(side: Side, shape: Shape, prefix: str) -> Iterator[Row]:
    """A row for each member, those of objects and of lists of objects below it."""
    required = texts_of(shape.node.get("required"))
    for name, value in members_of(shape.node).items():
        member = Shape(as_node(value), shape.home, mark_of(shape))
        whole = resolved(member, side)
        if forbids(plain(whole)):
            continue
        yield Row(f"{prefix}{name}", _words(side, member), name in required, mark_of(member))
        if "$ref" in member.node:
            continue
        yield from _shape_rows(side, member, f"{prefix}{name}.")
        items = member.node.get("items")
        if isinstance(items, dict) and "$ref" not in items:
            yield from _shape_rows(side, Shape(items, member.home, mark_of(member)), f"{prefix}{name}[].")


def _words(side: Side, shape: Shape) -> str:
    """A shape in words: the definition that it refers to, and what is said beside it."""
    node = plain(shape)
    reference = shape.node.get("$ref")
    said = [f"`{side.target(reference, shape.home)[1].rpartition('/')[2]}`"] if isinstance(reference, str) else []
    values = values_of(node)
    if values is not None:
        said.append(f"always {bare(values[0])}" if len(values) == 1 else f"one of {', '.join(map(bare, values))}")
    elif "anyOf" in node:
        said.append(" or ".join(_words(side, Shape(as_node(one), shape.home)) for one in node["anyOf"]))
    elif not said:
        said.append("list" if node.get("type") == "array" else type_words(node))
    if isinstance(node.get("items"), dict):
        entry = _words(side, Shape(node["items"], shape.home))
        said += [*_bounds(node), f"each: {entry}"]
    else:
        said += _bounds(node)
    if isinstance(node.get("additionalProperties"), dict):
        names = _words(side, Shape(as_node(node.get("propertyNames")), shape.home))
        other = _words(side, Shape(node["additionalProperties"], shape.home))
        said.append(f"further members allowed: names {names}, values {other}")
    if isinstance(node.get("x-content-class"), str):
        said.append(f"content ({node['x-content-class']})")
    return ", ".join(said)


def _bounds(node: Mapping[str, Any]) -> Iterator[str]:
    for low, high, unit in _RANGES:
        least, most = node.get(low), node.get(high)
        if least is None and most is None:
            continue
        if most is None:
            text = f"at least {least}"
        elif least is None:
            text = f"at most {_figure(most)}"
        else:
            text = f"{least} to {_figure(most)}"
        yield f"{text} {unit}".rstrip()
    if "pattern" in node:
        yield f"`{node['pattern']}`"
    if node.get("uniqueItems") is True:
        yield "no entry twice"


def _figure(value: Any) -> str:
    return "2^53-1" if value == _BIGGEST_WHOLE else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
