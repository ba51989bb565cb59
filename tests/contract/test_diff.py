"""Each kind of change to a contract is told in words; what means the same is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lab.contract.diff import Difference, Documents, diff, to_text
from lab.protocol.contract import default_contract_folder, read_documents

Edit = Callable[[dict[str, Any]], None]
REVISIONS = ("2.0", "2.1", "2.2", "2.3")


def ours(revision: str = "2.3") -> Documents:
    return Documents(*read_documents(default_contract_folder(), revision))


def changed(name: str, edit: Edit, revision: str = "2.3") -> list[str]:
    """What is told of a contract in which one document was edited, with the file's name before each line."""
    return [f"{found.file.removesuffix('.schema.json')} {found}" for found in differences(name, edit, revision)]


def differences(name: str, edit: Edit, revision: str = "2.3") -> tuple[Difference, ...]:
    mine = ours(revision)
    index, schemas = copy.deepcopy(dict(mine.index)), copy.deepcopy(dict(mine.schemas))
    edit(index if name == "index.json" else dict_of(schemas[name]))
    return diff(mine, Documents(index, schemas))


def dict_of(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def payload(schema: dict[str, Any]) -> dict[str, Any]:
    return dict_of(schema["properties"]["payload"])


def member(name: str, **keywords: Any) -> Edit:
    """Sets keywords of a member of the payload; None takes one away."""

    def edit(schema: dict[str, Any]) -> None:
        node = payload(schema)["properties"][name]
        for keyword, value in keywords.items():
            keyword = keyword.replace("_", "-") if keyword.startswith("x_") else keyword
            if value is None:
                del node[keyword]
            else:
                node[keyword] = value

    return edit


def at(path: str, value: Any) -> Edit:
    """Sets, or with None takes away, what is at a path of members."""

    def edit(document: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        target: Any = document
        for parent in parents:
            target = target[parent]
        if value is None:
            del target[last]
        else:
            target[last] = value

    return edit


def in_payload(path: str, value: Any) -> Edit:
    return at(f"properties/payload/{path}", value)


STATED = "[contradicts a stated rule]"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_contract_does_not_differ_from_itself(revision: str) -> None:
    assert diff(ours(revision), ours(revision)) == ()


INDEX = [
    (at("limits/maxChunks", 65), f"limits.maxChunks: ours 64, theirs 65  {STATED}"),
    (at("limits/maxChunks", None), f"limits.maxChunks: ours 64, theirs none  {STATED}"),
    (at("limits/pingSeconds", 3), f"limits.pingSeconds: ours none, theirs 3  {STATED}"),
    (at("types/ack/direction", "la-to-cp"), f"types.ack: direction: ours both, theirs la-to-cp  {STATED}"),
    (at("types/alert/direction", "both"), "types.alert: direction: ours la-to-cp, theirs both  [our choice TY-030]"),
    (at("types/hello/signed", True), f"types.hello: signed: ours false, theirs true  {STATED}"),
    (at("types/hello/control", False), f"types.hello: control frame: ours true, theirs false  {STATED}"),
    (at("types/hello/contentClass", "relay"), f"types.hello: content class: ours none, theirs relay  {STATED}"),
    (at("types/quota", {}), f"types.quota: a type only in theirs  {STATED}"),
    (at("types/llm.key", None), "types.llm.key: a type only in ours  [our choice TY-039]"),
    (at("revision", "2.4"), f"revision: ours 2.3, theirs 2.4  {STATED}"),
    (at("revision", None), f"revision: ours 2.3, theirs 2.0  {STATED}"),
    (
        at("baseId", "https://x/"),
        f"baseId: ours https://schemas.visionhammer.io/la-protocol-v2/, theirs https://x/  {STATED}",
    ),
]


@pytest.mark.parametrize(("edit", "told"), INDEX)
def test_the_index(edit: Edit, told: str) -> None:
    assert changed("index.json", edit) == [f"index.json {told}"]


INPUT = "properties/inputs/items/properties"
SCHEMAS: list[tuple[str, Edit, str]] = [
    ("error", member("retryable", type="string"), f"payload.retryable: type: ours boolean, theirs string  {STATED}"),
    (
        "error",
        member("detail", maxLength=100),
        f"payload.detail: longest text, characters: ours 200, theirs 100  {STATED}",
    ),
    (
        "error",
        member("detail", maxLength=None),
        f"payload.detail: longest text, characters: ours 200, theirs none  {STATED}",
    ),
    (
        "error",
        member("detail", minLength=1),
        f"payload.detail: shortest text, characters: ours none, theirs 1  {STATED}",
    ),
    ("error", member("detail", format="uri"), f"payload.detail: format: ours none, theirs uri  {STATED}"),
    ("error", member("detail", odd=[1]), f"payload.detail: keyword odd: ours none, theirs [1]  {STATED}"),
    (
        "error",
        in_payload("properties/refSeq", None),
        "payload.refSeq: member only in ours: integer, smallest number 0, "
        "largest number 9007199254740991  [our choice TY-043]",
    ),
    (
        "error",
        in_payload("properties/hint", {"enum": ["a", "b"]}),
        f"payload.hint: member only in theirs: one of a, b  {STATED}",
    ),
    ("error", in_payload("properties/hint", True), f"payload.hint: member only in theirs: anything  {STATED}"),
    ("error", in_payload("required", ["code"]), f"payload.retryable: ours is required, theirs is not  {STATED}"),
    (
        "error",
        in_payload("required", ["code", "retryable", "refSeq"]),
        "payload.refSeq: ours is not required, theirs is  [our choice TY-043]",
    ),
    (
        "error",
        in_payload("additionalProperties", None),
        f"payload: members not named: ours refused, theirs allowed  {STATED}",
    ),
    (
        "error",
        in_payload("additionalProperties", {"type": "string"}),
        f'payload: members not named: ours refused, theirs {{"type": "string"}}  {STATED}',
    ),
    (
        "register",
        member("version", pattern="^x$"),
        "payload.version: pattern: ours ^[0-9A-Za-z.+-]{1,64}$, theirs ^x$  [our choice HS-003]",
    ),
    ("register", in_payload("properties/protocol/const", 3), f"payload.protocol: values only in ours: 2  {STATED}"),
    (
        "register",
        member("workspaces", maxItems=8),
        "payload.workspaces: most entries: ours 64, theirs 8  [our choice WS-013]",
    ),
    (
        "register",
        member("workspaces", uniqueItems=True),
        "payload.workspaces: entries are unique: ours none, theirs true  [our choice WS-013]",
    ),
    (
        "register",
        in_payload("properties/workspaces/items/required", ["workspaceId"]),
        "payload.workspaces[].pathSha256: ours is required, theirs is not  [our choice WS-013]",
    ),
    (
        "register",
        in_payload("properties/workspaces/items", None),
        "payload.workspaces[]: said only in ours: object  [our choice WS-013]",
    ),
    (
        "alert",
        member("severity", enum=["info", "fatal", "critical"]),
        "payload.severity: values only in ours: warning  [our choice TY-030]",
    ),
    (
        "content.response",
        member("data", maxLength=10),
        f"payload.data: longest text, characters: ours 43692, theirs 10  {STATED}",
    ),
    (
        "content.response",
        member("data", x_content_class="transit"),
        f"payload.data: content class: ours relay, theirs transit  {STATED}",
    ),
    ("content.response", in_payload("then", None), "payload: what holds under the condition (then): ours "),
    ("content.response", at("properties/sig", None), f"sig: ours must be absent, theirs may be there  {STATED}"),
    ("content.response", at("properties/agentId", False), f"agentId: ours may be there, theirs not  {STATED}"),
    ("content.response", at("required", ["requestId"]), f"chunk: ours is required, theirs is not  {STATED}"),
    (
        "config.update",
        in_payload("properties/values/propertyNames", {"type": "string"}),
        "payload.values(member names): pattern: ours ^[a-z][A-Za-z0-9]{0,63}$, theirs none  [our choice TY-009]",
    ),
    (
        "config.update",
        in_payload("properties/values/maxProperties", 8),
        "payload.values: most members: ours 64, theirs 8  [our choice TY-034]",
    ),
    (
        "job.assign",
        in_payload(f"{INPUT}/inline/maxLength", 4096),
        "payload.inputs[].inline: longest text, characters: ours 16384, theirs 4096  [our choice TY-009]",
    ),
    (
        "job.assign",
        in_payload("properties/inputs/items/dependentRequired", {}),
        "payload.inputs[]: members that need others (dependentRequired): ours ",
    ),
    (
        "job.assign",
        in_payload("properties/jobId", {"type": "integer"}),
        "payload.jobId: type: ours string, theirs integer  [our choice WS-004]",
    ),
    ("envelope", at("properties/trace", {"type": "string"}), f"trace: member only in theirs: string  {STATED}"),
    (
        "envelope",
        at("properties/paramsRaw/maxLength", 9),
        "paramsRaw: longest text, characters: ours 49152, theirs 9  [our choice WS-083]",
    ),
    (
        "envelope",
        at("properties/paramsRaw/x-large-metadata", None),
        "paramsRaw: large metadata: ours true, theirs none  [our choice WS-083]",
    ),
    ("defs", at("$defs/sha256/pattern", "^x$"), f"sha256: pattern: ours ^[0-9a-f]{{64}}$, theirs ^x$  {STATED}"),
    ("defs", at("$defs/count/maximum", 9), f"count: largest number: ours 9007199254740991, theirs 9  {STATED}"),
    (
        "defs",
        at("$defs/sig/properties/alg/const", "HS256"),
        "sig.alg: values only in ours: Ed25519  [our choice SG-004]",
    ),
    ("defs", at("$defs/scalar/anyOf", [{"type": "number"}]), "scalar: alternatives (anyOf): ours "),
    ("job.stream.body", at("properties/events/maxItems", 2), f"events: most entries: ours 512, theirs 2  {STATED}"),
]


@pytest.mark.parametrize(("name", "edit", "told"), SCHEMAS)
def test_a_change_of_a_schema_is_told_in_one_place(name: str, edit: Edit, told: str) -> None:
    lines = changed(name, edit)
    assert lines[0].startswith(f"{name} {told}")
    assert all(line.startswith(f"{name} ") for line in lines)


def test_a_changed_value_is_told_on_both_sides() -> None:
    found = changed("alert", member("severity", enum=["info", "fatal", "critical"]))
    assert found == [
        "alert payload.severity: values only in ours: warning  [our choice TY-030]",
        "alert payload.severity: values only in theirs: fatal  [our choice TY-030]",
    ]


@pytest.mark.req("CT-061")
def test_the_newest_revision_only_widens_the_one_before() -> None:
    found = [str(difference) for difference in diff(ours("2.2"), ours("2.3"))]
    assert found == [
        f"revision: ours 2.2, theirs 2.3  {STATED}",
        "payload.kind: values only in theirs: chat  [our choice TY-009]",
        "payload.inputs[].inline: longest text, characters: ours 4096, theirs 16384  [our choice TY-009]",
    ]


@pytest.mark.req("WS-040", "CT-057")
def test_another_order_of_the_error_codes_is_told_with_the_close_codes() -> None:
    def swap(schema: dict[str, Any]) -> None:
        codes = schema["$defs"]["errorCode"]["enum"]
        codes[2], codes[3] = codes[3], codes[2]

    assert changed("defs", swap) == [
        "defs errorCode: another order gives other close codes, ours → theirs: schema_violation 4402 → 4403, "
        f"frame_too_large 4403 → 4402  {STATED}"
    ]


def test_another_code() -> None:
    def replace(schema: dict[str, Any]) -> None:
        schema["$defs"]["errorCode"]["enum"][-1] = "odd"

    assert changed("defs", replace) == [
        f"defs errorCode: values only in ours: internal  {STATED}",
        f"defs errorCode: values only in theirs: odd  {STATED}",
    ]


def test_the_order_of_other_values_does_not_matter() -> None:
    assert changed("alert", member("severity", enum=["critical", "warning", "info"])) == []


def test_files_that_one_side_lacks() -> None:
    mine = ours()
    fewer = {name: schema for name, schema in mine.schemas.items() if name not in ("ack", "llm.key")}
    more = {**fewer, "quota": mine.schemas["ack"]}
    assert [f"{found.file} {found}" for found in diff(mine, Documents(mine.index, more))] == [
        f"ack.schema.json the whole: a file only in ours  {STATED}",
        "llm.key.schema.json the whole: a file only in ours  [our choice TY-039]",
        f"quota.schema.json the whole: a file only in theirs  {STATED}",
    ]


def test_a_folder_of_an_older_revision_need_not_have_bodies() -> None:
    mine = ours("2.0")
    fewer = {name: schema for name, schema in mine.schemas.items() if not name.endswith(".body")}
    assert diff(mine, Documents(mine.index, fewer)) == ()


def test_a_missing_envelope_is_told() -> None:
    mine = ours()
    fewer = {name: schema for name, schema in mine.schemas.items() if name != "envelope"}
    assert any(found.file == "envelope.schema.json" for found in diff(mine, Documents(mine.index, fewer)))


def as_parts(schema: dict[str, Any]) -> None:
    base = "https://schemas.visionhammer.io/la-protocol-v2/envelope.schema.json"
    own = {"properties": schema.pop("properties"), "required": schema.pop("required")}
    del schema["$ref"]
    schema["allOf"] = [{"$ref": base}, own]


def in_place(schema: dict[str, Any]) -> None:
    schema["properties"]["payload"]["properties"]["jobId"] = copy.deepcopy(ours().schemas["defs"])["$defs"]["uuid"]


def words_only(schema: dict[str, Any]) -> None:
    payload(schema).update(title="T", description="D", examples=[{}], default={})
    del payload(schema)["x-requirement"]


def types_beside_values(schema: dict[str, Any]) -> None:
    schema["properties"]["type"]["type"] = "string"


def silent_members(schema: dict[str, Any]) -> None:
    schema["properties"] = {name: node for name, node in schema["properties"].items() if node is not True}


@pytest.mark.parametrize("edit", [as_parts, in_place, words_only, types_beside_values, silent_members])
def test_another_way_to_write_the_same_is_no_difference(edit: Edit) -> None:
    assert changed("job.cancel", edit) == []


def test_a_renamed_definition_is_no_difference() -> None:
    mine = ours()
    schemas = copy.deepcopy(dict(mine.schemas))
    defs = dict_of(schemas["defs"])["$defs"]
    defs["shortName"] = defs.pop("alias")
    node = dict_of(schemas["job.assign"])["properties"]["payload"]["properties"]["llm"]["properties"]
    node["alias"] = {"$ref": "defs.schema.json#/$defs/shortName"}
    found = diff(mine, Documents(mine.index, schemas))
    assert not any(line.file == "job.assign.schema.json" for line in found)


def test_a_definition_that_refers_to_itself_ends() -> None:
    def endless(schema: dict[str, Any]) -> None:
        schema["$defs"]["scalar"] = {"anyOf": [{"$ref": "#/$defs/scalar"}, {"$ref": "#/$defs/scalar"}]}

    def circle(schema: dict[str, Any]) -> None:
        schema["$defs"]["id"] = {"$ref": "#/$defs/id"}

    assert changed("defs", endless)
    assert changed("defs", circle)


ODD: list[Any] = [7, "x", None, [], {"properties": 7}, {"allOf": 7, "required": "x"}, {"$ref": 7}, {"enum": "x"}, True]


@pytest.mark.parametrize("node", ODD)
def test_no_schema_of_theirs_raises(node: Any) -> None:
    assert changed(
        "error", in_payload("properties/retryable", node) if node is not None else in_payload("properties", 7)
    )


@pytest.mark.parametrize("index", [{}, {"types": 7, "limits": []}, {"types": {"ack": 7}}])
def test_no_index_of_theirs_raises(index: dict[str, Any]) -> None:
    mine = ours()
    assert diff(mine, Documents(index, mine.schemas))


def test_the_text_is_grouped_by_file_and_summed_up() -> None:
    found = [
        Difference("index.json", "limits.maxChunks", "ours 64, theirs 65", None),
        Difference("ack.schema.json", "payload", "x", "SQ-011"),
        Difference("ack.schema.json", "", "y", "SQ-011"),
    ]
    assert to_text(found).splitlines() == [
        "index.json",
        f"  limits.maxChunks: ours 64, theirs 65  {STATED}",
        "ack.schema.json",
        "  payload: x  [our choice SQ-011]",
        "  the whole: y  [our choice SQ-011]",
        "3 differences: 2 in choices of the lab, 1 against stated rules",
    ]
    assert to_text(found[:1]).splitlines()[-1].startswith("1 difference: ")
