"""Frames and bodies against the schemas: valid examples, one broken rule each, and a second validator as oracle."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from lab.protocol.contract import BODIES, Contract, SchemaBreak, default_contract_folder
from tests.protocol.body_cases import BODY, BODY_CASES
from tests.protocol.broken_frames import BOUNDS, BROKEN, UPPER_UUID
from tests.protocol.frame_cases import body_cases, frame_cases, pointers
from tests.protocol.frame_examples import (
    CURSOR,
    FULL_CHUNK,
    GONE,
    JOB,
    MAX_INTEGER,
    REQUEST,
    SECRET_NAME,
    SIG,
    TS,
    altered,
    example_types,
    examples,
)

REVISIONS = ("2.0", "2.1", "2.2", "2.3")


@cache
def contract(revision: str = "2.3") -> Contract:
    return Contract.load(default_contract_folder(), revision)


def _anchored_pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[Any]:
    # Python's `$` also matches before a final newline; the pattern language of JSON Schema has no such rule.
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError("pattern")


@cache
def oracle(revision: str, name: str) -> Any:
    made = contract(revision)
    names = ["envelope", "defs", *made.types, *(f"{body}.body" for body in BODIES)]
    # A document that names its dialect would be judged by the stock class, without the pattern keyword above.
    plain = {each: {key: value for key, value in made.schema(each).items() if key != "$schema"} for each in names}
    resources = [(str(schema["$id"]), DRAFT202012.create_resource(schema)) for schema in plain.values()]
    extend: Any = jsonschema.validators.extend
    validator = extend(jsonschema.Draft202012Validator, {"pattern": _anchored_pattern})
    return validator(plain[name], registry=Registry().with_resources(resources))


def judge(type_name: str, frame: dict[str, Any], revision: str = "2.3") -> SchemaBreak | None:
    """The verdict of the contract, after the oracle has given the same one."""
    verdict = contract(revision).check_frame(type_name, frame)
    assert oracle(revision, type_name).is_valid(frame) is (verdict is None)
    return verdict


@pytest.mark.req("TY-045")
def test_every_type_has_examples() -> None:
    assert set(example_types()) == set(contract().types)


@pytest.mark.parametrize("type_name", example_types())
def test_examples_hold(type_name: str) -> None:
    assert [judge(type_name, frame) for frame in examples(type_name)] == [None] * len(examples(type_name))


@pytest.mark.parametrize("type_name", example_types())
def test_the_full_example_has_every_member_of_the_payload(type_name: str) -> None:
    members: Any = contract().schema(type_name)["properties"]
    seen = {name for frame in examples(type_name) for name in frame["payload"]}
    assert seen == set(members["payload"]["properties"])


@pytest.mark.req("WS-001")
@pytest.mark.parametrize("type_name", example_types())
def test_an_unknown_envelope_member_is_refused(type_name: str) -> None:
    frame = altered(examples(type_name)[0], f"/{SECRET_NAME}", 1)
    assert judge(type_name, frame) == SchemaBreak("additionalProperties", "")


@pytest.mark.req("WS-017", "CT-004")
@pytest.mark.parametrize("type_name", example_types())
def test_an_unknown_payload_member_is_refused(type_name: str) -> None:
    frame = altered(examples(type_name)[0], f"/payload/{SECRET_NAME}", 1)
    assert judge(type_name, frame) == SchemaBreak("additionalProperties", "/payload")


@pytest.mark.req("WS-005", "WS-008", "WS-012", "WS-014")
@pytest.mark.parametrize("type_name", example_types())
def test_mandatory_envelope_members(type_name: str) -> None:
    for name in ("schemaVersion", "type", "msgId", "seq", "tenantId", "workspaceId", "ts", "payload"):
        assert judge(type_name, altered(examples(type_name)[1], f"/{name}", GONE)) == SchemaBreak("required", "")


@pytest.mark.req("HS-014", "HS-015", "TY-044")
@pytest.mark.parametrize("type_name", example_types())
def test_seq_is_zero_for_control_and_counted_for_data(type_name: str) -> None:
    control = contract().types[type_name].control
    at_zero, at_one = (judge(type_name, altered(examples(type_name)[0], "/seq", seq)) for seq in (0, 1))
    assert at_zero == (None if control else SchemaBreak("minimum", "/seq"))
    assert at_one == (SchemaBreak("const", "/seq") if control else None)


@pytest.mark.req("WS-018", "SG-016", "SG-017")
@pytest.mark.parametrize("type_name", example_types())
@pytest.mark.parametrize("member", ["sig", "paramsRaw"])
def test_signed_types_need_sig_and_params_and_others_refuse_them(type_name: str, member: str) -> None:
    frame = examples(type_name)[1]
    if contract().types[type_name].signed:
        assert judge(type_name, altered(frame, f"/{member}", GONE)) == SchemaBreak("required", "")
    else:
        added = altered(frame, f"/{member}", SIG if member == "sig" else "{}")
        assert judge(type_name, added) == SchemaBreak("not", f"/{member}")


@pytest.mark.req("WS-010", "WS-011", "TY-004", "TY-005")
@pytest.mark.parametrize("type_name", example_types())
def test_only_ack_and_error_need_the_agent_by_schema(type_name: str) -> None:
    verdict = judge(type_name, altered(examples(type_name)[1], "/agentId", GONE))
    assert verdict == (SchemaBreak("required", "") if type_name in ("ack", "error") else None)


@pytest.mark.parametrize("type_name", example_types())
def test_chunk_belongs_to_responses_and_webhooks(type_name: str) -> None:
    frame = altered(examples(type_name)[1], "/chunk", {"index": 0, "total": 1, "last": True})
    allowed = type_name in ("content.response", "webhook.forward")
    assert judge(type_name, frame) == (None if allowed else SchemaBreak("not", "/chunk"))


@pytest.mark.req("CH-019")
def test_byte_length_of_the_examples_is_the_decoded_size() -> None:
    payloads = [frame["payload"] for frame in examples("content.response")]
    assert len(payloads) == 3
    for payload in payloads:
        assert payload["byteLength"] == len(base64.b64decode(payload["data"], validate=True))


@pytest.mark.parametrize(("type_name", "example", "pointer", "value", "due"), BROKEN)
def test_a_broken_rule_is_named(type_name: str, example: int, pointer: str, value: object, due: SchemaBreak) -> None:
    assert judge(type_name, altered(examples(type_name)[example], pointer, value)) == due


@pytest.mark.parametrize("type_name", example_types())
def test_a_frame_of_another_type_is_refused(type_name: str) -> None:
    other = "error" if type_name == "ack" else "ack"
    assert judge(type_name, altered(examples(type_name)[0], "/type", other)) == SchemaBreak("const", "/type")


@pytest.mark.parametrize(("type_name", "pointer", "value"), BOUNDS)
def test_a_value_inside_the_bounds_holds(type_name: str, pointer: str, value: object) -> None:
    assert judge(type_name, altered(examples(type_name)[1], pointer, value)) is None


@pytest.mark.req("TY-005", "WS-039")
def test_error_carries_each_code() -> None:
    codes = contract().error_codes
    assert [judge("error", altered(examples("error")[0], "/payload/code", code)) for code in codes] == [None] * 23


@pytest.mark.req("WS-045")
@pytest.mark.parametrize(
    "payload",
    [{"\ud800": 1}, {SECRET_NAME: {SECRET_NAME: 1}}, {"state": {SECRET_NAME: 1}}],
    ids=["surrogate-name", "unknown-name", "known-name"],
)
def test_a_name_that_the_peer_chose_never_shows(payload: dict[str, object]) -> None:
    verdict = contract().check_frame("heartbeat", altered(examples("heartbeat")[0], "/payload", payload))
    assert verdict is not None
    assert SECRET_NAME not in repr(verdict)
    assert "\ud800" not in verdict.path


def test_a_frame_nested_without_end_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"state": deep}
    assert contract().check_frame("heartbeat", {**examples("heartbeat")[0], "payload": deep}) == SchemaBreak("type", "")


@pytest.mark.parametrize(("body", "pointer", "value", "due"), BODY_CASES)
def test_bodies(body: str, pointer: str, value: object, due: SchemaBreak | None) -> None:
    instance = altered(BODY[body], pointer, value)
    assert contract().check_body(body, instance) == due
    assert oracle("2.3", f"{body}.body").is_valid(instance) is (due is None)


def test_two_validators_agree_on_every_case() -> None:
    for name, instance, holds in (*frame_cases(contract()), *body_cases()):
        verdict = contract().check_body(name[:-5], instance) if name.endswith(".body") else judge(name, instance)
        assert oracle("2.3", name).is_valid(instance) is holds
        assert (verdict is None) is holds


@pytest.mark.parametrize("body", BODIES)
def test_the_body_examples_hold(body: str) -> None:
    assert contract().check_body(body, BODY[body]) is None


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    st.sampled_from(["", "ok", "chat", TS, JOB, UPPER_UUID, REQUEST, CURSOR, JOB + "\n", FULL_CHUNK, "internal"]),
    st.sampled_from([0, 1, 2, 64, 65, 32768, 32769, MAX_INTEGER, MAX_INTEGER + 1]),
)
NAMES = st.sampled_from(["sig", "chunk", "agentId", "errorCode", "ref", "inline", "inputs", "x", "A b", "last"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=4
)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    type_name = draw(st.sampled_from(example_types()))
    frame = draw(st.sampled_from(examples(type_name)))
    for _ in range(draw(st.integers(1, 2))):
        pointer = draw(st.sampled_from([pointer for pointer, _ in pointers(frame)]))
        match draw(st.sampled_from(["set", "remove", "add"])):
            case "remove":
                frame = altered(frame, pointer, GONE)
            case "set":
                frame = altered(frame, pointer, draw(VALUES))
            case _:
                place = draw(st.sampled_from(["", "/payload"])) if isinstance(frame.get("payload"), dict) else ""
                frame = altered(frame, f"{place}/{draw(NAMES)}", draw(VALUES))
    return type_name, frame


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(mutation=mutations(), revision=st.sampled_from(REVISIONS))
def test_two_validators_agree_on_mutated_frames(mutation: tuple[str, dict[str, Any]], revision: str) -> None:
    type_name, frame = mutation
    if type_name in contract(revision).types:
        judge(type_name, frame, revision)
