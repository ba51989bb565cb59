"""The envelope: reading what passed its schema, and building what may leave."""

from __future__ import annotations

import json

import pytest

from lab.errors import MisuseError
from lab.protocol.frames import Chunk, Draft, FrameBuilder, RefusedDraft, read_frame, require_known
from lab.protocol.wire import byte_length
from tests.protocol import frame_examples
from tests.protocol.sides import AGENT, CONTRACT, EPOCH_MS, JOB, TENANT, WORKSPACE, event_draft, signer, uuid

LIMIT = CONTRACT.limits.max_frame_bytes


def builder(signs: bool) -> FrameBuilder:
    return FrameBuilder(CONTRACT, TENANT, AGENT, EPOCH_MS, signer() if signs else None)


def assign(inline: str) -> Draft:
    inputs = [{"inline": inline, "transient": True}]
    payload = {"jobId": JOB, "kind": "chat", "inputs": inputs, "llm": {"alias": "default"}}
    return Draft("job.assign", payload, WORKSPACE)


@pytest.mark.req("WS-001", "WS-005", "WS-015", "WS-018")
def test_golden_frame_of_the_agent() -> None:
    text = builder(False).build(event_draft(2), uuid(1), 7, 3, 1.5)
    assert text == (
        '{"schemaVersion":2,"type":"job.event","msgId":"deadbeef-0000-4000-8000-000000000001","seq":7,"ack":3,'
        '"tenantId":"tenant-1","agentId":"0a0a0a0a-0000-4000-8000-00000000000a","workspaceId":"ws-1",'
        '"ts":"2026-11-04T10:00:01.500Z",'
        '"payload":{"jobId":"0b0b0b0b-0000-4000-8000-00000000000b","state":"running","iteration":2}}'
    )


@pytest.mark.parametrize("type_name", frame_examples.example_types())
def test_every_example_is_read_and_built_again(type_name: str) -> None:
    record = CONTRACT.types[type_name]
    for example in frame_examples.examples(type_name):
        frame = read_frame(example)
        assert (frame.type, frame.msg_id, frame.seq, frame.ack) == (
            type_name,
            example["msgId"],
            example["seq"],
            example.get("ack"),
        )
        draft = Draft(frame.type, frame.payload, frame.workspace_id, frame.request_id, frame.chunk)
        text = builder(record.signed).build(draft, frame.msg_id, frame.seq, frame.ack, 0)
        members = json.loads(text)
        made_here = {"sig", "agentId"}
        assert {k: v for k, v in members.items() if k not in made_here} == {
            k: v for k, v in example.items() if k not in made_here
        }
        assert members["agentId"] == AGENT
        assert ("sig" in members) is record.signed


def test_chunk_and_request_are_read() -> None:
    (_, full, _) = frame_examples.examples("content.response")
    frame = read_frame(full)
    assert frame.chunk == Chunk(0, 2, False)
    assert frame.request_id == frame_examples.REQUEST
    assert frame.agent_id == AGENT


def refusal_of(draft: Draft) -> str | None:
    try:
        builder(True).build(draft, uuid(1), 1, None, 0)
    except RefusedDraft as refused:
        return refused.code
    return None


@pytest.mark.req("WS-026", "WS-057", "WS-058", "CP-008")
@pytest.mark.parametrize(
    ("inline", "code"),
    [
        ("a" * 16384, None),
        ('"' * 16384, "frame_too_large"),
        ("é" * 16384, "frame_too_large"),
        ("😀" * 16384, "frame_too_large"),
        ("a" * 16385, "schema_violation"),
    ],
)
def test_size_is_that_of_the_finished_frame(inline: str, code: str | None) -> None:
    assert refusal_of(assign(inline)) == code


@pytest.mark.req("WS-057", "CP-008")
def test_boundary_of_the_finished_frame() -> None:
    def size(fill: str) -> int:
        return byte_length(builder(True).build(assign(fill), uuid(1), 1, None, 0))

    # A quote weighs two bytes in the payload and four in its echo, a letter one and one.
    quotes = (LIMIT - size("a") + 2) // 6
    letters = (LIMIT - size('"' * quotes)) // 2
    fill = '"' * quotes + "a" * letters
    spare = LIMIT - size(fill)
    assert spare in (0, 1)
    assert size(fill) <= LIMIT
    with pytest.raises(RefusedDraft) as refused:
        builder(True).build(assign(fill + "a"), uuid(1), 1, None, 0)
    assert refused.value.code == "frame_too_large"


@pytest.mark.req("CP-009", "SG-018", "WS-031")
@pytest.mark.parametrize(
    "draft",
    [
        Draft("job.event", {"jobId": JOB, "state": "running", "x": 1}, WORKSPACE),
        Draft("job.event", {"state": "running"}, WORKSPACE),
        Draft("job.event", {"jobId": JOB, "state": "running"}, "a workspace"),
        Draft("job.event", {"jobId": JOB, "state": "\ud800"}, WORKSPACE),
        Draft("config.update", {"revision": 1, "values": {"a": float("nan")}}, WORKSPACE),
        Draft("config.update", {"revision": 1, "values": {"a": float("inf")}}, WORKSPACE),
        Draft("config.update", {"revision": 1, "values": {"a": 10**5000}}, WORKSPACE),
    ],
)
def test_draft_that_breaks_its_schema_never_leaves(draft: Draft) -> None:
    with pytest.raises(RefusedDraft) as refused:
        builder(draft.type == "config.update").build(draft, uuid(1), 1, None, 0)
    assert refused.value.code == "schema_violation"
    assert str(refused.value).startswith("schema_violation: ")


def test_refused_draft_passes_through_a_context_manager() -> None:
    """An exception that refuses new attributes breaks whoever re-raises it."""
    refused = RefusedDraft("internal", "why")
    refused.__traceback__ = None
    refused.add_note("where")
    assert (refused.code, refused.reason) == ("internal", "why")


def test_type_that_the_contract_lacks_is_misuse() -> None:
    require_known(CONTRACT, "ack")
    with pytest.raises(MisuseError, match=r"mcp\.execute-command"):
        require_known(CONTRACT, "mcp.execute-command")
