"""Rules that hold for every schema of the contract: closed, bounded, marked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lab.protocol.contract import Contract
from tests.protocol.contract_files import (
    CLASSES,
    FOLDER,
    FROM_CP,
    describing,
    documents,
    frame_schemas,
    marked,
    nodes,
    schemas,
)


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load(FOLDER)


@pytest.mark.req("WS-001", "WS-017", "CT-004")
@pytest.mark.parametrize("name", sorted(schemas()))
def test_objects_are_closed(name: str) -> None:
    open_by_design = {("properties", "payload")} if name == "envelope.schema.json" else set()
    for path, node in describing(schemas()[name]):
        if node.get("type") != "object" or path in open_by_design:
            continue
        if node.get("$ref") == "envelope.schema.json":
            assert path == ()
            assert set(node["properties"]) <= set(schemas()["envelope.schema.json"]["properties"])
        elif isinstance(node.get("additionalProperties"), dict):
            # a map: its names, their number and its values are bounded instead
            assert {"propertyNames", "maxProperties"} <= set(node), path
        else:
            assert node.get("additionalProperties") is False, path


@pytest.mark.req("CT-004")
def test_each_frame_is_the_envelope_with_its_payload(contract: Contract) -> None:
    for name in contract.types:
        schema: Any = contract.schema(name)
        assert schema["$ref"] == "envelope.schema.json"
        assert schema["properties"]["payload"]["type"] == "object"


def is_finite(pattern: str) -> bool:
    return not re.search(r"[*+]|\{[0-9]+,\}", re.sub(r"\[[^\]]*\]", "c", pattern))


@pytest.mark.req("WS-047")
@pytest.mark.parametrize("name", sorted(schemas()))
def test_strings_are_bounded(name: str) -> None:
    for path, node in nodes(schemas()[name]):
        if node.get("type") != "string" or path == ("$defs", "base64"):
            continue
        special = "x-content-class" in node or "x-large-metadata" in node
        assert "maxLength" in node or is_finite(node["pattern"]), path
        assert special or node.get("maxLength", 0) <= 512, path


def test_the_one_unbounded_definition_is_bounded_where_it_is_used() -> None:
    for schema in schemas().values():
        for path, node in nodes(schema):
            assert node.get("$ref") != "defs.schema.json#/$defs/base64" or "maxLength" in node, path


def test_numbers_and_lists_are_bounded() -> None:
    for name, schema in schemas().items():
        for path, node in describing(schema):
            if node.get("type") == "integer":
                assert {"minimum", "maximum"} <= set(node), (name, path)
            if node.get("type") == "array":
                assert "maxItems" in node, (name, path)


def test_patterns_are_anchored_and_mean_the_same_in_every_language() -> None:
    for name, schema in schemas().items():
        for path, node in nodes(schema):
            pattern = node.get("pattern")
            if isinstance(pattern, str):
                assert pattern.startswith("^"), (name, path)
                assert pattern.endswith("$"), (name, path)
                assert "\\" not in pattern, (name, path)


@pytest.mark.req("WS-048")
def test_content_fields_are_exactly_three() -> None:
    assert marked("x-content-class", frame_schemas()) == {
        ("content.response", "data"),
        ("job.assign", "inline"),
        ("webhook.forward", "bodyB64"),
    }
    for name, schema in frame_schemas().items():
        for _, node in nodes(schema):
            for member in node.get("properties", {}).values() if isinstance(node.get("properties"), dict) else ():
                if isinstance(member, dict) and "x-content-class" in member:
                    assert member["x-content-class"] == CLASSES[name.removesuffix(".schema.json")]
                    assert (node["properties"].get("transient") == {"const": True}) is (
                        member["x-content-class"] == "transit"
                    )


@pytest.mark.req("CHAT-033", "CHAT-051")
def test_the_text_of_bodies_is_content() -> None:
    bodies = {name: schema for name, schema in schemas().items() if ".body." in name}
    assert marked("x-content-class", bodies) == {
        ("job.stream.body", "e"),
        ("chat.session.body", "text"),
        ("file.list.body", "name"),
    }


@pytest.mark.req("WS-049", "WS-083", "TY-035")
def test_large_metadata_fields() -> None:
    assert marked("x-large-metadata", schemas()) == {
        ("envelope", "paramsRaw"),
        ("scan.upload", "signedPutUrl"),
        ("approval.decision", "token"),
    }


@pytest.mark.req("WS-082")
def test_no_field_from_the_control_plane_is_longer_than_an_inline() -> None:
    for name in FROM_CP.split():
        payload = schemas()[f"{name}.schema.json"]["properties"]["payload"]
        assert max([node["maxLength"] for _, node in nodes(payload) if "maxLength" in node], default=0) <= 16384


def test_every_inferred_choice_names_its_requirement() -> None:
    for name, document in documents().items():
        for path, node in nodes(document):
            if "x-provenance" in node:
                assert node["x-provenance"] in ("inferred", "stated"), (name, path)
                assert re.fullmatch(r"[A-Z]+-[0-9]{3}", node["x-requirement"]), (name, path)


VOCABULARIES = {
    "ack status": "accepted duplicate rejected",
    "alert severity": "info warning critical",
    "approval.decision decision": "approve deny",
    "content.response status": "ok error not_found forbidden",
    "defs contentKind": "file.list file.read diff log.excerpt incident.detail scan.report job.stream chat.session",
    "defs contentType": "application/octet-stream application/json text/plain",
    "defs level": "debug info warn error fatal",
    "defs signatureMode": "off warn enforce",
    "heartbeat state": "idle busy",
    "hello state": "off indexing ready error",
    "job.assign kind": "fix implement quality chat",
    "job.cancel reason": "user timeout policy",
    "job.event state": "queued preparing running waiting_approval done failed cancelled",
    "job.result errorCode": "infra policy_denied unknown timeout workspace llm budget",
    "job.result outcome": "pr_opened no_change failed cancelled",
    "policy.decision decision": "allow deny approval",
    "scan.uploaded status": "uploaded failed",
    "chat.session.body role": "user assistant",
    "file.list.body kind": "file directory",
}


@pytest.mark.req("TY-004", "TY-008", "TY-013", "TY-015", "TY-016", "TY-017", "HS-042", "CH-009", "CH-032", "CHAT-051")
def test_vocabularies() -> None:
    found = {
        f"{file.removesuffix('.schema.json')} {path[-1]}": " ".join(node["enum"])
        for file, schema in schemas().items()
        for path, node in describing(schema)
        if "enum" in node and path[-1] not in ("type", "errorCode" if file == "defs.schema.json" else "")
    }
    assert found == VOCABULARIES
