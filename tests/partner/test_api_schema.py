import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from lab.contract.requirements import default_requirements_folder, load_requirements
from lab.errors import ContractError
from lab.partner import client
from lab.partner.api_schema import ApiSchema, api_schema, default_document_path
from tests.partner.samples import ACTOR, COST, FILE, ITEM, NOW, PUT, RUN, USAGE

SCOPES = {
    "PUT /memberships": "chat:membership",
    "POST /conversations": "chat:create",
    "GET /conversations/{conversationId}/context": "chat:context",
    "PUT /conversations/{conversationId}/context": "chat:context",
    "POST /conversations/{conversationId}/attachments": "chat:run",
    "GET /conversations/{conversationId}/attachments/{attachmentId}/content": "chat:read",
    "POST /conversations/{conversationId}/messages": "chat:run",
    "GET /conversations/{conversationId}/messages": "chat:read",
    "GET /conversations/{conversationId}/runs/{runId}": "chat:read",
    "GET /conversations/{conversationId}/runs/{runId}/events": "chat:read",
}


@pytest.fixture(scope="module")
def schema() -> ApiSchema:
    return api_schema()


def nodes(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    yield place, node
    if isinstance(node, dict):
        for name, member in node.items():
            yield from nodes(member, f"{place}/{name}")
    elif isinstance(node, list):
        for index, member in enumerate(node):
            yield from nodes(member, f"{place}/{index}")


def members(schema: ApiSchema) -> list[tuple[str, dict[str, Any]]]:
    return [(place, node) for place, node in nodes(schema.document) if isinstance(node, dict)]


def test_the_document_is_openapi_3_1(schema: ApiSchema) -> None:
    OpenAPIV31SpecValidator(schema.document).validate()


def test_a_document_that_is_not_openapi_is_noticed(schema: ApiSchema) -> None:
    broken = copy.deepcopy(schema.document)
    broken["paths"]["/memberships"]["put"]["responses"]["200"].pop("description")
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV31SpecValidator(broken).validate()


@pytest.mark.req("PA-009")
def test_the_ten_operations_and_their_scopes(schema: ApiSchema) -> None:
    assert {route: one.scope for route, one in schema.operations.items()} == SCOPES
    content = schema.document["paths"]["/conversations/{conversationId}/attachments/{attachmentId}/content"]["get"]
    assert content["x-scope-without-actor"] == "chat:conversation:read"


@pytest.mark.req("PA-006")
def test_every_operation_lies_below_the_base(schema: ApiSchema) -> None:
    assert [server["url"] for server in schema.document["servers"]] == ["{apiOrigin}/v1/orgs/{orgId}/chat"]


def test_which_operations_take_an_idempotency_key(schema: ApiSchema) -> None:
    assert [route for route, one in schema.operations.items() if one.keyed] == [
        "POST /conversations",
        "POST /conversations/{conversationId}/messages",
    ]


def test_every_reference_resolves(schema: ApiSchema) -> None:
    for place, node in members(schema):
        if "$ref" in node:
            found: Any = schema.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                assert step in found, place
                found = found[step]


def test_every_component_is_used(schema: ApiSchema) -> None:
    used = {node["$ref"] for _, node in members(schema) if "$ref" in node}
    there = {
        f"#/components/{kind}/{name}"
        for kind, named in schema.document["components"].items()
        if kind != "securitySchemes"
        for name in named
    }
    assert there == used


def test_every_object_is_closed_and_everything_is_bounded(schema: ApiSchema) -> None:
    for place, node in nodes(schema.document["components"]["schemas"]):
        match node:
            case {"type": "object"} if "properties" in node:
                assert node.get("additionalProperties") is False, place
                assert set(node.get("required", ())) <= set(node["properties"]), place
            case {"type": "string"} if "/then/" not in place:
                assert "maxLength" in node, place
            case {"type": "array"} if "/anyOf/" not in place:
                assert "maxItems" in node, place
            case {"type": "integer"}:
                assert {"minimum", "maximum"} <= node.keys(), place


def test_every_choice_names_an_entry_of_the_ledger(schema: ApiSchema) -> None:
    known = load_requirements(default_requirements_folder())
    named = [name for _, node in members(schema) for name in str(node.get("x-requirement", "")).split()]
    assert "PA-035" in named
    assert set(named) <= set(known)


def test_every_schema_of_an_answer_can_be_used(schema: ApiSchema) -> None:
    for operation in schema.operations.values():
        for answer in operation.answers.values():
            if answer.schema is not None:
                assert not schema.validator_at(answer.schema).is_valid({})
    for pointer in schema.events.values():
        assert not schema.validator_at(pointer).is_valid({})


def test_the_statuses_of_every_route(schema: ApiSchema) -> None:
    shared = {400, 401, 403}
    special = {
        "PUT /memberships": {200, 404, 409},
        "POST /conversations": {201, 404, 409, 503},
        "PUT /conversations/{conversationId}/context": {200, 404, 409},
        "POST /conversations/{conversationId}/attachments": {201, 404, 413, 415},
        "POST /conversations/{conversationId}/messages": {202, 404, 409, 429},
    }
    for route, operation in schema.operations.items():
        assert set(operation.answers) == shared | special.get(route, {200, 404}), route


@pytest.mark.parametrize(
    ("code", "statuses"),
    [
        ("CREDENTIAL_REJECTED", {401}),
        ("EXECUTION_DENIED", {403}),
        ("MCP_CONTEXT_DENIED", {403}),
        ("CHAT_UNAVAILABLE", {404}),
        ("CHAT_CONFLICT", {409}),
        ("MCP_CONTEXT_CONFLICT", {409}),
        ("CHAT_INVALID", {400}),
        ("CHAT_CONFIGURATION", {503}),
        ("VALIDATION_ERROR", {400}),
        ("CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED", {415}),
        ("CHAT_ATTACHMENT_TOO_LARGE", {413}),
        ("CHAT_ATTACHMENT_TOO_MANY", {400}),
        ("CHAT_ATTACHMENT_NOT_FOUND", {404}),
        ("CHAT_ATTACHMENT_NOT_ALLOWED", {403}),
        ("QUOTA_EXCEEDED", {429}),
    ],
)
def test_a_code_comes_with_one_status_only(schema: ApiSchema, code: str, statuses: set[int]) -> None:
    error: dict[str, object] = {"code": code, "message": "m"}
    types = schema.component("MimeType")["enum"]
    error |= {
        "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED": {"acceptedTypes": types},
        "CHAT_ATTACHMENT_TOO_LARGE": {"maxBytes": 3145728},
        "QUOTA_EXCEEDED": {"reason": "org_spend"},
    }.get(code, {})
    body = {"success": False, "error": error}
    answers = [answer for one in schema.operations.values() for answer in one.answers.values() if answer.schema]
    fitting = {answer.status for answer in answers if schema.validator_at(answer.schema or "").is_valid(body)}
    assert fitting == statuses


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("MembershipPut", PUT, {**PUT, "validUntil": None}),
        ("MembershipPut", {**PUT, "active": False, "validUntil": None}, {**PUT, "role": "Owner"}),
        ("MembershipPut", {**PUT, "externalUserId": "x" * 255}, {**PUT, "externalUserId": "x" * 256}),
        ("MembershipPut", {**PUT, "sourceRevision": 2**53 - 1}, {**PUT, "sourceRevision": 1.5}),
        ("Timestamp", NOW, "2026-01-01T00:00:00Z"),
        ("Cost", "0.000000000000", "0.00000000000"),
        ("Cost", COST, "00.033510000000"),
        ("Run", RUN, {name: value for name, value in RUN.items() if name != "usage"}),
        ("Run", {**RUN, "timings": None, "usage": None}, {**RUN, "status": "done"}),
        ("AcceptedRun", {name: RUN[name] for name in list(RUN)[:6]}, {"runId": "r"}),
        ("Run", RUN, {**RUN, "runId": "a:b"}),
        ("Usage", {**USAGE, "model": None}, {**USAGE, "priceSide": "sell"}),
        ("Attachment", FILE, {**FILE, "kind": "image"}),
        ("Attachment", {**FILE, "size": 3145728}, {**FILE, "size": 3145729}),
        ("MessageCreate", {**ACTOR, "message": "hello"}, {**ACTOR, "message": " "}),
        ("MessageCreate", {**ACTOR, "attachmentIds": ["a"]}, {**ACTOR, "attachmentIds": None}),
        ("MessageCreate", {**ACTOR, "attachmentIds": list("abcde")}, {**ACTOR, "attachmentIds": list("abcdef")}),
        ("HistoryItem", {**ITEM, "role": "user", "attachments": [FILE]}, {**ITEM, "role": "user", "parts": []}),
        ("HistoryItem", {**ITEM, "role": "assistant"}, {**ITEM, "role": "assistant", "parts": None}),
        ("HistoryItem", {**ITEM, "role": "assistant"}, {**ITEM, "role": "assistant", "attachments": [FILE]}),
        ("ToolCallEvent", {"type": "tool_call", "name": "n", "id": "i"}, {"type": "tool_call", "name": "n"}),
        (
            "ToolCallEvent",
            {"type": "tool_call", "name": "n", "id": "i"},
            {"type": "tool_call", "name": "n", "id": "i", "detail": "d"},
        ),
        (
            "ToolResultEvent",
            {"type": "tool_result", "name": "n", "ok": True},
            {"type": "tool_result", "name": "n", "ok": True, "error": "TOOL_FAILED"},
        ),
        (
            "ToolResultEvent",
            {"type": "tool_result", "name": "n", "ok": False, "error": "TOOL_FAILED"},
            {"type": "tool_result", "name": "n", "ok": False},
        ),
        ("ErrorEvent", {"type": "error", "code": "QUOTA_EXCEEDED"}, {"type": "error", "code": "boom"}),
    ],
)
def test_what_a_component_takes(schema: ApiSchema, name: str, good: object, bad: object) -> None:
    validator = schema.validator(name)
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_a_request_is_judged_by_its_route(schema: ApiSchema) -> None:
    validator = schema.request_validator("PUT /memberships")
    assert validator is not None
    assert validator.is_valid(PUT)
    assert not validator.is_valid({**PUT, "stray": 1})
    assert schema.request_validator("GET /conversations/{conversationId}/context") is None


def test_the_document_is_read_once() -> None:
    assert api_schema() is api_schema()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("a: [", "not YAML"),
        ("- 1\n", "not the OpenAPI document"),
        (json.dumps({"paths": {"/x": {"get": {}}}}), "not the OpenAPI document"),
    ],
)
def test_a_document_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "openapi.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ContractError, match=words) as raised:
        api_schema(path)
    assert str(path) in str(raised.value)


@pytest.mark.req("US-007")
def test_nothing_of_credits_and_charges_is_sent_or_read(schema: ApiSchema) -> None:
    words = re.compile(r"credits?(?![a-z])|charge|invoice|billing", re.IGNORECASE)
    named = {name for _, node in members(schema) for name in node.get("properties", {})}
    assert "costUsd" in named
    assert [name for name in named if words.search(name)] == []
    strings = re.compile(r"[\"']([A-Za-z]+)[\"']")
    for file in (Path(client.__file__).parent).glob("*.py"):
        assert [one for one in strings.findall(file.read_text("utf-8")) if words.search(one)] == [], file.name


def test_a_component_that_is_not_there_is_named(schema: ApiSchema) -> None:
    with pytest.raises(ContractError, match="/components/schemas/Nothing"):
        schema.validator("Nothing")


def test_the_document_lies_in_the_project() -> None:
    assert default_document_path().is_file()
