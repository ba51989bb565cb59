"""Every frame and body with a known verdict, in one list, for tests that hold all of them against something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lab.protocol.contract import Contract
from tests.protocol.body_cases import BODY, BODY_CASES
from tests.protocol.broken_frames import BOUNDS, BROKEN
from tests.protocol.frame_examples import AGENT, GONE, MAX_INTEGER, SECRET_NAME, SIG, altered, examples

Case = tuple[str, Any, bool]
"""Name of the schema, instance, whether it holds."""

ENVELOPE_REQUIRED = ("schemaVersion", "type", "msgId", "seq", "tenantId", "workspaceId", "ts", "payload")
CHUNKED = ("content.response", "webhook.forward")
_FREE_TEXT = ("detail", "paramsRaw", "inline", "e", "text", "name")
_MAPS = ("/payload/options", "/payload/values")


def pointers(value: object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every member and item below `value`, with its JSON pointer."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield f"{prefix}/{key}", member
        yield from pointers(member, f"{prefix}/{key}")


def spoiled(instance: Any) -> Iterator[Any]:
    """Copies of a valid instance, each with one member of the wrong kind, out of every range, or unknown."""
    for pointer, value in pointers(instance):
        if pointer.startswith(tuple(f"{place}/" for place in _MAPS)):
            continue
        for wrong in _wrong_values(pointer, value):
            yield altered(instance, pointer, wrong)
        if isinstance(value, dict):
            yield altered(instance, f"{pointer}/{SECRET_NAME}", 1)


def _wrong_values(pointer: str, value: object) -> list[object]:
    match value:
        case dict() | list():
            return [7]
        case bool():
            return ["true"]
        case int():
            return ["x", -1, MAX_INTEGER + 1]
        case str() if pointer.endswith(tuple(f"/{name}" for name in _FREE_TEXT)):
            return [{}]
        case _:
            return [{}, "two words\n"]


def frame_cases(contract: Contract) -> Iterator[Case]:
    """All cases of frames: the examples, the tables, and what holds for every type alike."""
    for name, record in contract.types.items():
        minimal, full, *_ = examples(name)
        for frame in examples(name):
            yield name, frame, True
            for bad in spoiled(frame):
                yield name, bad, False
        for member in (SECRET_NAME, f"payload/{SECRET_NAME}"):
            yield name, altered(minimal, f"/{member}", 1), False
        yield name, altered(minimal, "/type", "error" if name == "ack" else "ack"), False
        for member in ENVELOPE_REQUIRED:
            yield name, altered(full, f"/{member}", GONE), False
        for seq in (0, 1, MAX_INTEGER):
            yield name, altered(minimal, "/seq", seq), record.control is (seq == 0)
        for member, value in (("sig", SIG), ("paramsRaw", "{}")):
            yield name, altered(full, f"/{member}", GONE if record.signed else value), False
        yield name, altered(full, "/agentId", GONE), name not in ("ack", "error")
        yield name, altered(full, "/agentId", AGENT.upper()), False
        yield name, altered(full, "/chunk", {"index": 0, "total": 1, "last": True}), name in CHUNKED
    for broken in BROKEN:
        of_type, example, at, changed, _ = _values(broken)
        yield of_type, altered(examples(of_type)[example], at, changed), False
    for bound in BOUNDS:
        of_type, at, changed = _values(bound)
        yield of_type, altered(examples(of_type)[1], at, changed), True


def body_cases() -> Iterator[Case]:
    """All cases of bodies."""
    for body, example in BODY.items():
        yield f"{body}.body", example, True
        for bad in spoiled(example):
            yield f"{body}.body", bad, False
    for row in BODY_CASES:
        body, pointer, value, due = _values(row)
        yield f"{body}.body", altered(BODY[body], pointer, value), due is None


def _values(row: Any) -> Any:
    return row.values
