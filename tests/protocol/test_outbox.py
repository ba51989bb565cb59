"""Drafts on their way to the wire: checked when handed over, numbered when the window has room."""

from __future__ import annotations

import json

import pytest

from lab.errors import MisuseError
from lab.protocol.chunks import cut
from lab.protocol.frames import Chunk, Draft, RefusedDraft
from lab.protocol.session import SenderLimits
from lab.protocol.wire import byte_length
from tests.protocol.sides import CONTRACT, JOB, WORKSPACE, agent_outbox, event_draft, gateway_outbox, uuid

LIMIT = CONTRACT.limits.max_frame_bytes


def chunk_draft(chunk: Chunk, data: str = "eA==", size: int = 1) -> Draft:
    payload = {"status": "ok", "contentType": "text/plain", "encoding": "base64", "data": data}
    return Draft("content.response", {**payload, "byteLength": size, "totalBytes": 9}, WORKSPACE, uuid(5), chunk)


@pytest.mark.req("CP-029", "CP-009")
def test_refused_draft_takes_no_seq_and_no_place() -> None:
    outbox = gateway_outbox()
    big = [{"inline": "é" * 16384, "transient": True}]
    payload = {"jobId": JOB, "kind": "chat", "inputs": big, "llm": {"alias": "default"}}
    for draft, code in (
        (Draft("job.assign", payload, WORKSPACE), "frame_too_large"),
        (Draft("job.cancel", {"jobId": JOB, "more": 1}, WORKSPACE), "schema_violation"),
    ):
        with pytest.raises(RefusedDraft) as refused:
            outbox.enqueue(draft, 0)
        assert refused.value.code == code
    outbox.enqueue(Draft("job.cancel", {"jobId": JOB}, WORKSPACE), 0)
    text = outbox.write_next(0)
    assert text is not None
    assert json.loads(text)["seq"] == 1


def test_unknown_type_is_misuse() -> None:
    with pytest.raises(MisuseError):
        agent_outbox().enqueue(Draft("job.dance", {}, WORKSPACE), 0)


def test_control_type_is_no_data_frame() -> None:
    with pytest.raises(RefusedDraft):
        agent_outbox().enqueue(Draft("error", {"code": "internal", "retryable": True}, WORKSPACE), 0)


def test_number_is_given_when_the_window_has_room() -> None:
    outbox = agent_outbox(SenderLimits(1, 5))
    first, second = outbox.enqueue(event_draft(1), 0), outbox.enqueue(event_draft(2), 0)
    assert (first.seq, second.seq) == (None, None)
    assert outbox.write_next(0) is not None
    assert outbox.write_next(0) is None
    assert (first.state, first.seq, second.state, second.seq) == ("sent", 1, "waiting", None)
    outbox.session.outbound.acked_up_to(1)
    assert outbox.write_next(0) is not None
    assert second.seq == 2


def test_ack_is_left_out_when_it_grew_beyond_the_frame() -> None:
    inline = {"jobId": JOB, "kind": "chat", "llm": {"alias": "default"}}

    def draft(fill: str) -> Draft:
        return Draft("job.assign", {**inline, "inputs": [{"inline": fill, "transient": True}]}, WORKSPACE)

    outbox = gateway_outbox()
    outbox.session.inbound.last_seq = 99
    room = LIMIT - byte_length(outbox.builder.build(draft("a"), uuid(1), 1, 99, 0)) + 2
    # A quote weighs six bytes with its echo, a letter two: what is left is one byte at most.
    fill = '"' * (room // 6) + "a" * (room % 6 // 2)
    assert LIMIT - byte_length(outbox.builder.build(draft(fill), uuid(1), 1, 99, 0)) in (0, 1)
    outbox.enqueue(draft(fill), 0)
    outbox.session.inbound.last_seq = 9999
    text = outbox.write_next(0)
    assert text is not None
    assert "ack" not in json.loads(text)


@pytest.mark.req("CH-025")
@pytest.mark.parametrize(
    ("before", "draft", "code"),
    [
        ([], chunk_draft(Chunk(1, 2, True)), "chunk_out_of_order"),
        ([], chunk_draft(Chunk(0, 65, False)), "chunk_inconsistent"),
        ([], chunk_draft(Chunk(0, 2, True)), "chunk_inconsistent"),
        ([], chunk_draft(Chunk(0, 1, True), size=2), "chunk_inconsistent"),
        ([chunk_draft(Chunk(0, 1, True))], chunk_draft(Chunk(0, 1, True)), "chunk_out_of_order"),
        ([chunk_draft(Chunk(0, 2, False))], chunk_draft(Chunk(1, 3, False)), "chunk_inconsistent"),
    ],
)
def test_no_series_leaves_that_the_peer_would_refuse(before: list[Draft], draft: Draft, code: str) -> None:
    outbox = agent_outbox()
    for earlier in before:
        outbox.enqueue(earlier, 0)
    with pytest.raises(RefusedDraft) as refused:
        outbox.enqueue(draft, 0)
    assert refused.value.code == code
    assert outbox.session.outbound.queued == len(before)


def test_chunked_webhook_is_no_series_of_content() -> None:
    outbox = gateway_outbox()
    for index in (1, 0):
        place = Chunk(index, 2, index == 1)
        outbox.enqueue(Draft("webhook.forward", {"bodyB64": "", "transient": True}, WORKSPACE, uuid(5), place), 0)
    assert outbox.session.outbound.queued == 2
    assert outbox.session.chunks.refusal(uuid(5), Chunk(0, 2, False), 1, 1) is None


def test_check_takes_nothing() -> None:
    outbox = agent_outbox()
    for _ in range(2):
        outbox.check(chunk_draft(cut(b"x", 0, 1)[0]), 0)
    assert outbox.session.outbound.queued == 0


@pytest.mark.req("SQ-019", "SQ-023")
def test_agent_repeats_and_gateway_signs_anew() -> None:
    for outbox, same in ((agent_outbox(), True), (gateway_outbox(), False)):
        outbox.enqueue(event_draft(1) if same else Draft("job.cancel", {"jobId": JOB}, WORKSPACE), 0)
        text = outbox.write_next(0)
        (frame,) = outbox.session.outbound.unacked()
        copy = outbox.rewrite(frame, 5)
        assert (copy == text) is same
        assert json.loads(copy)["msgId"] == frame.msg_id
        assert json.loads(copy)["seq"] == frame.seq
