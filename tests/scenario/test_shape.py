"""The schema of the language: complete for editors, in step with the code, and read rightly by the walker."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from lab.errors import ContractError, Place, ScenarioErrors
from lab.faults.plan import FAULT_KINDS, Acts
from lab.scenario import shape
from lab.scenario.findings import Findings
from lab.scenario.read_frames import CHUNKED_TYPES, CONTROL_TYPES
from lab.scenario.read_steps import CHAT_STEPS, PARTNER_STEPS
from lab.scenario.shape import ANNOTATIONS, KEYWORDS, resolved, scenario_schema, sound
from lab.scenario.yaml_places import ListNode, MapNode, Node, Path, ScalarNode
from lab.store.misbehaviour import Wrong
from lab.store.settings import Refusing
from tests.scenario.texts import FULL, ROOT

SCHEMA = scenario_schema()
DEFS = SCHEMA["$defs"]
VALIDATOR = Draft202012Validator(SCHEMA)


def _schemas(schema: Any, path: str = "#") -> Iterator[tuple[str, Any]]:
    """Every subschema with its place."""
    yield path, schema
    for name in ("properties", "$defs"):
        for key, value in schema.get(name, {}).items():
            yield from _schemas(value, f"{path}/{name}/{key}")
    for name in ("items", "additionalProperties", "propertyNames", "then", "else"):
        if isinstance(schema.get(name), dict):
            yield from _schemas(schema[name], f"{path}/{name}")
    for index, value in enumerate(schema.get("anyOf", ())):
        yield from _schemas(value, f"{path}/anyOf/{index}")


ALL = [(path, schema) for path, schema in _schemas(SCHEMA) if path != "#"]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("path", "schema"), ALL, ids=[path for path, _ in ALL])
def test_every_part_explains_itself_to_editors(path: str, schema: dict[str, Any]) -> None:
    whole = resolved(schema) if "$ref" in schema else schema
    if path.endswith(("/then", "/else")):
        return
    assert whole["description"].endswith((".", ".)"))
    assert whole["examples"]
    validator = Draft202012Validator({**schema, "$defs": DEFS})
    assert [example for example in whole["examples"] if not validator.is_valid(example)] == []


def test_the_walker_reads_every_keyword() -> None:
    used = {keyword for _, schema in _schemas(SCHEMA) for keyword in schema}
    assert used <= KEYWORDS | ANNOTATIONS


def test_every_mapping_is_closed_or_says_what_its_members_are() -> None:
    open_ones = [
        path
        for path, schema in _schemas(SCHEMA)
        if schema.get("type") == "object" and "additionalProperties" not in schema and "if" not in schema
    ]
    assert open_ones == ["#/$defs/localAgent/properties/settings"]


def test_fault_kinds_are_those_of_the_plan() -> None:
    toxic = [option["required"][0] for option in DEFS["toxicFault"]["oneOf"]]
    assert toxic == ["toxic", "toxics", "weather"]
    assert set(toxic) <= set(DEFS["toxicFault"]["properties"])
    # A fault of a link is one of both, but toxics are of another shape; several are of the same kind as one.
    either = [option["required"][0] for option in DEFS["linkFault"]["oneOf"]]
    links = [name for name in either if name not in toxic]
    assert either == [*links, *toxic]
    frames = DEFS["frameFault"]["properties"]["do"]["enum"]
    assert set(links) <= set(DEFS["linkFault"]["properties"])
    of_links = [name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.LINK]
    assert [name for name in either if name != "toxics"] == of_links
    assert frames == [name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.FRAME]
    services = DEFS["serviceFault"]["required"][1:]
    assert services == [name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.SERVICE]
    assert DEFS["partnerCrash"]["required"][1:] == services


def test_steps_are_a_choice_of_all_kinds() -> None:
    kinds = list(DEFS["step"]["properties"])
    assert [option["required"][0] for option in DEFS["step"]["oneOf"]] == kinds
    assert set(kinds) == {"wait", "fault", "idle", *CHAT_STEPS, *PARTNER_STEPS}


def _contract(name: str) -> Any:
    return json.loads((ROOT / "contract" / "la-protocol-v2" / f"{name}.schema.json").read_text("utf-8"))


def _payload(name: str) -> Any:
    return _contract(name)["properties"]["payload"]["properties"]


def test_words_are_those_of_the_contract() -> None:
    assert DEFS["misdeed"]["enum"] == [str(wrong) for wrong in Wrong]
    assert DEFS["store"]["properties"]["refusal"]["enum"] == [str(way) for way in Refusing]
    limits = DEFS["gateway"]["properties"]["limits"]["properties"]
    assert list(limits) == list(_payload("ready")["limits"]["properties"])
    assert DEFS["contentKind"]["enum"] == _contract("defs")["$defs"]["contentKind"]["enum"]
    assert DEFS["kind"]["enum"] == _payload("job.assign")["kind"]["enum"]
    assert list(DEFS["agent2"]["properties"]["scripts"]["properties"]) == DEFS["kind"]["enum"]
    assert DEFS["cancel"]["properties"]["reason"]["enum"] == _payload("job.cancel")["reason"]["enum"]
    assert DEFS["approve"]["properties"]["decision"]["enum"] == _payload("approval.decision")["decision"]["enum"]
    modes = set(DEFS["localAgent"]["properties"]["signature"]["enum"])
    assert modes == set(_contract("defs")["$defs"]["signatureMode"]["enum"])


def _tree(data: Any, path: Path) -> Node:
    """`data` as the tree that a parser would make of it."""
    place = Place("s.yaml", 1)
    if isinstance(data, dict):
        members = {key: _tree(value, (*path, key)) for key, value in data.items()}
        return MapNode(place, path, members, dict.fromkeys(members, place))
    if isinstance(data, list):
        return ListNode(place, path, tuple(_tree(item, (*path, index)) for index, item in enumerate(data)))
    return ScalarNode(place, path, data, str(data))


def test_chunked_and_control_types_are_those_of_the_contract() -> None:
    folder = ROOT / "contract" / "la-protocol-v2"
    types = json.loads((folder / "index.json").read_text("utf-8"))["types"]
    assert tuple(name for name, facts in types.items() if facts["control"]) == CONTROL_TYPES
    absent = {"$ref": "defs.schema.json#/$defs/absent"}
    chunks = {name: _contract(name)["properties"].get("chunk", True) for name in types}
    may = [name for name, chunk in chunks.items() if chunk is True or not chunk.items() >= absent.items()]
    assert tuple(name for name in may if name not in CONTROL_TYPES) == CHUNKED_TYPES


def _accepts(data: object) -> bool:
    findings = Findings("s.yaml")
    sound(_tree(data, ()), findings)
    try:
        findings.report()
    except ScenarioErrors:
        return False
    return True


def test_a_line_break_at_the_end_is_part_of_a_text() -> None:
    assert not _accepts({"scenario": "s", "about": "a", "steps": [{"idle": "3s\n"}]})


WORDS = sorted(
    {name for _, schema in _schemas(SCHEMA) for name in schema.get("properties", ())}
    | {word for _, schema in _schemas(SCHEMA) for word in schema.get("enum", ())}
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(["3s", "0ms", "q1", "a b", "", "A_B", "x" * 70, "chat-resume", "done"]),
        st.integers(-2, 70),
        st.sampled_from([0.5, 3.0, True, False, None, 10**16]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*WORDS, "q 1"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _slots(data: Any) -> list[tuple[Any, Any]]:
    """Every place in `data`: its container and its key."""
    if isinstance(data, dict):
        return [slot for key in data for slot in ((data, key), *_slots(data[key]))]
    if isinstance(data, list):
        return [slot for index in range(len(data)) for slot in ((data, index), *_slots(data[index]))]
    return []


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_the_walker_accepts_what_the_schema_accepts(data: st.DataObject) -> None:
    scenario: Any = copy.deepcopy(yaml.safe_load(FULL.replace("signature: off", 'signature: "off"')))
    for _ in range(data.draw(st.integers(0, 2))):
        container, key = data.draw(st.sampled_from(_slots(scenario)))
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "replace":
            container[key] = data.draw(VALUES)
        elif action == "delete":
            del container[key]
        elif isinstance(container, dict):
            container[data.draw(st.sampled_from(WORDS))] = data.draw(VALUES)
        else:
            container.append(data.draw(VALUES))
    assert _accepts(scenario) == VALIDATOR.is_valid(scenario)


@pytest.mark.parametrize("text", [None, "{"])
def test_a_schema_that_cannot_be_read(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    file = tmp_path / "scenario.schema.json"
    if text is not None:
        file.write_text(text, "utf-8")
    monkeypatch.setattr(shape, "SCHEMA_FILE", file)
    with pytest.raises(ContractError, match=r"scenario\.schema\.json: the schema of scenarios cannot be read: "):
        scenario_schema.__wrapped__()
