"""The raw files of the contract folder, and ways to walk them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lab.protocol.contract import default_contract_folder

FOLDER = default_contract_folder()
FROM_LA = """register hello heartbeat job.event job.result content.response incident.candidate alert audit.event
log.stats scan.uploaded policy.check"""
FROM_CP = """ready job.assign job.cancel approval.decision content.request webhook.forward config.update scan.upload
policy.decision llm.key"""
CLASSES = {"content.response": "relay", "job.assign": "transit", "webhook.forward": "transit", "llm.key": "secret"}


def documents() -> dict[str, Any]:
    return {file.name: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def schemas() -> dict[str, Any]:
    return {name: document for name, document in documents().items() if name.endswith(".schema.json")}


def frame_schemas() -> dict[str, Any]:
    return {name: schema for name, schema in schemas().items() if ".body." not in name}


def nodes(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every JSON object below `value`, with the names that lead to it."""
    if isinstance(value, dict):
        yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from nodes(child, (*path, str(name)))


def describing(schema: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The nodes that describe a value, without those that only narrow one under a condition."""
    for path, node in nodes(schema):
        if not {"if", "then", "else", "allOf", "dependentSchemas"} & set(path):
            yield path, node


def marked(keyword: str, among: dict[str, Any]) -> set[tuple[str, str]]:
    found = set()
    for file, schema in among.items():
        for path, node in nodes(schema):
            if keyword in node:
                found.add((file.removesuffix(".schema.json"), path[-1]))
    return found
