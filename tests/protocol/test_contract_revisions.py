"""The revisions of the contract: what each added, and that nothing that held was lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from lab.protocol.contract import Contract, SchemaBreak
from tests.protocol.contract_files import (
    FOLDER,
    documents,
)
from tests.protocol.frame_examples import CURSOR, GONE, altered, examples

REVISIONS = ("2.0", "2.1", "2.2", "2.3")
TYPES_OF_2_0 = """ack alert approval.decision audit.event config.update content.request content.response error heartbeat
hello incident.candidate job.assign job.cancel job.event job.result log.stats ready register scan.upload scan.uploaded
webhook.forward"""


@pytest.fixture(scope="module")
def profiles() -> dict[str, Contract]:
    return {revision: Contract.load(FOLDER, revision) for revision in REVISIONS}


@pytest.mark.req("CT-068", "TY-042", "CT-002", "TY-029", "TY-031", "TY-033")
def test_types_of_each_revision(profiles: dict[str, Contract]) -> None:
    of_2_0 = set(TYPES_OF_2_0.split())
    policy = {"policy.check", "policy.decision"}
    assert {revision: set(profile.types) for revision, profile in profiles.items()} == {
        "2.0": of_2_0,
        "2.1": of_2_0 | {"llm.key"},
        "2.2": of_2_0 | {"llm.key"} | policy,
        "2.3": of_2_0 | {"llm.key"} | policy,
    }
    assert [len(profile.types) for profile in profiles.values()] == [21, 22, 24, 24]


def test_since_tells_the_revision_that_brought_a_type(profiles: dict[str, Contract]) -> None:
    for name, record in documents()["index.json"]["types"].items():
        assert record["since"] == next(revision for revision in REVISIONS if name in profiles[revision].types)


@pytest.mark.req("CT-008", "CT-009")
def test_a_profile_knows_its_revision(profiles: dict[str, Contract]) -> None:
    assert [profile.revision for profile in profiles.values()] == list(REVISIONS)


@pytest.mark.req("TY-010")
def test_length_of_an_inline_by_revision(profiles: dict[str, Contract]) -> None:
    due = {"2.0": 4096, "2.1": 4096, "2.2": 4096, "2.3": 16384}
    for revision, profile in profiles.items():
        for length, verdict in (
            (due[revision], None),
            (due[revision] + 1, SchemaBreak("maxLength", "/payload/inputs/0/inline")),
        ):
            inputs = [{"inline": "a" * length, "transient": True}]
            frame = altered(examples("job.assign")[0], "/payload/inputs", inputs)
            assert profile.check_frame("job.assign", frame) == verdict


ADDITIONS = [
    pytest.param("2.3", "job.assign", "/payload/kind", "enum", "/payload/kind", marks=pytest.mark.req("TY-008")),
    pytest.param("2.1", "job.assign", "/payload/options", "additionalProperties", "/payload"),
    pytest.param(
        "2.1", "ready", "/payload/capabilities", "additionalProperties", "/payload", marks=pytest.mark.req("HS-030")
    ),
    pytest.param("2.1", "webhook.forward", "/chunk", "not", "/chunk", marks=pytest.mark.req("TY-023", "TY-024")),
    pytest.param(
        "2.1",
        "incident.candidate",
        "/payload/sizeBytes",
        "additionalProperties",
        "/payload",
        marks=pytest.mark.req("TY-025"),
    ),
    pytest.param(
        "2.1",
        "incident.candidate",
        "/payload/modelAlias",
        "additionalProperties",
        "/payload",
        marks=pytest.mark.req("TY-025"),
    ),
]


@pytest.mark.parametrize(("since", "type_name", "pointer", "keyword", "path"), ADDITIONS)
def test_what_a_revision_added_is_refused_before_it(
    profiles: dict[str, Contract], since: str, type_name: str, pointer: str, keyword: str, path: str
) -> None:
    *_, parent, member = pointer.split("/")
    full = examples(type_name)[1]
    value = full[parent][member] if parent else full[member]
    # the shortest frame that has the addition and nothing else that is new
    frame = altered(examples(type_name)[0], pointer, value)
    if pointer == "/payload/kind":
        frame = altered(frame, "/payload/inputs", [{"ref": CURSOR}])
    if pointer == "/chunk":
        frame = altered(frame, "/requestId", full["requestId"])
    for revision, profile in profiles.items():
        due = None if revision >= since else SchemaBreak(keyword, path)
        assert profile.check_frame(type_name, frame) == due, revision


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from differences(old.get(name, GONE), new.get(name, GONE), f"{path}/{name}")
    elif old != new:
        yield path, old, new


@pytest.mark.req("CT-061")
def test_2_3_widens_only_the_inline_and_the_kinds(profiles: dict[str, Contract]) -> None:
    old, new = profiles["2.2"], profiles["2.3"]
    found = [
        difference
        for name in ["envelope", "defs", *new.types]
        for difference in differences(old.schema(name), new.schema(name))
    ]
    kinds = ["fix", "implement", "quality"]
    members = "/properties/payload/properties"
    assert found == [
        (f"{members}/inputs/items/properties/inline/maxLength", 4096, 16384),
        (f"{members}/kind/enum", kinds, [*kinds, "chat"]),
    ]


@pytest.mark.req("CT-062")
def test_2_2_adds_two_types_and_changes_no_other(profiles: dict[str, Contract]) -> None:
    old, new = profiles["2.1"], profiles["2.2"]
    for name in ["defs", *old.types]:
        assert old.schema(name) == new.schema(name)
    before: Any = old.schema("envelope")
    after: Any = new.schema("envelope")
    assert [path for path, _, _ in differences(before, after)] == ["/properties/type/enum"]
    enums = [set(schema["properties"]["type"]["enum"]) for schema in (before, after)]
    assert enums[1] - enums[0] == {"policy.check", "policy.decision"}


@pytest.mark.req("CT-061", "CT-062", "CH-040")
def test_what_held_before_still_holds(profiles: dict[str, Contract]) -> None:
    for old, new in itertools.pairwise(REVISIONS):
        for name in profiles[old].types:
            for frame in examples(name):
                if profiles[old].check_frame(name, frame) is None:
                    assert profiles[new].check_frame(name, frame) is None
    for profile in profiles.values():
        request = examples("content.request")[0]
        assert request["payload"]["kind"] == "job.stream"
        assert profile.check_frame("content.request", request) is None
