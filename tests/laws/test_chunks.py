"""The series of chunks that an answer is, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from lab.laws import Status
from tests.laws.journals import JOB, SESSION, SESSION_2, Tale

LAW = "chunks"


def tale(chunk_bytes: int = 4) -> Tale:
    begun = Tale()
    begun.connect()
    limits = {"chunkRawBytes": chunk_bytes, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30}
    payload = {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "limits": limits}
    begun.entries.pop()
    begun.cp("ready", payload=payload)
    begun.ask(1, "r", JOB)
    return begun


@pytest.mark.parametrize(("whole", "sizes"), [(0, (0,)), (4, (4,)), (5, (4, 1)), (12, (4, 4, 4))])
def test_a_series_in_order(whole: int, sizes: tuple[int, ...]) -> None:
    t = tale()
    for index, size in enumerate(sizes):
        t.answer(index + 1, "r", index, len(sizes), size, whole)
    assert t.status(LAW) is Status.HELD


def test_a_copy_of_a_chunk_is_no_second_one() -> None:
    t = tale()
    t.answer(1, "r")
    t.answer(1, "r")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CH-010")
def test_a_failure_is_one_empty_chunk() -> None:
    t = tale()
    odd = {"status": "not_found", "errorCode": "internal", "contentType": None, "totalBytes": None}
    t.answer(1, "r", size=0, payload=odd)
    assert t.status(LAW) is Status.HELD


FIRST = {"index": 0, "total": 2, "last": False}
SECOND = {"index": 1, "total": 2, "last": True}


@pytest.mark.parametrize(
    ("chunks", "seen"),
    [
        pytest.param([SECOND], "chunk 1", marks=pytest.mark.req("CH-006")),
        pytest.param([FIRST, FIRST], "chunk 0", marks=pytest.mark.req("CH-001", "CH-003")),
        pytest.param([FIRST, {**SECOND, "total": 3}], "total 3", marks=pytest.mark.req("CH-001", "CH-003")),
        pytest.param([FIRST, {**SECOND, "last": False}], "last False", marks=pytest.mark.req("CH-001", "CH-003")),
        pytest.param([FIRST, SECOND, SECOND], "chunk 1 after the last", marks=pytest.mark.req("CH-001", "CH-003")),
        pytest.param([{**FIRST, "total": 65}], "total 65", marks=pytest.mark.req("CH-013", "WS-021")),
    ],
)
def test_a_chunk_that_does_not_fit(chunks: list[dict[str, Any]], seen: str) -> None:
    t = tale()
    for seq, chunk in enumerate(chunks, 1):
        t.answer(seq, "r", size=4, whole=8, chunk=chunk)
    assert t.violation(LAW).seen.startswith(seen)


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({"payload": {"byteLength": 4}}, "byteLength 4", marks=pytest.mark.req("CH-004")),
        pytest.param({"payload": {"sha256": "0" * 64}}, "with sha256", marks=pytest.mark.req("CH-018")),
        pytest.param({"payload": {"contentType": None}}, "without contentType", marks=pytest.mark.req("CH-007")),
        pytest.param({"payload": {"totalBytes": None}}, "without totalBytes", marks=pytest.mark.req("CH-007")),
        pytest.param({"payload": {"encoding": "hex"}}, "encoding hex", marks=pytest.mark.req("CH-007")),
        pytest.param({"whole": 2}, "3 bytes in all", marks=pytest.mark.req("CH-007")),
        pytest.param({"size": 5}, "1 chunks for 5 bytes", marks=pytest.mark.req("CH-002", "HS-027")),
        pytest.param({"payload": {"status": "error", "errorCode": "x"}}, "Type", marks=pytest.mark.req("CH-010")),
        pytest.param(
            {"size": 0, "payload": {"status": "error", "contentType": None, "totalBytes": None}},
            "a failed answer without errorCode",
            marks=pytest.mark.req("CH-010"),
        ),
        pytest.param(
            {"payload": {"status": "error", "errorCode": "internal", "contentType": None, "totalBytes": None}},
            "more than one empty chunk",
            marks=pytest.mark.req("CH-010"),
        ),
    ],
)
def test_a_single_chunk_with_odd_members(fields: dict[str, Any], seen: str) -> None:
    t = tale()
    t.answer(1, "r", **fields)
    assert seen in t.violation(LAW).seen


@pytest.mark.req("WS-021")
def test_a_chunk_above_32_kib() -> None:
    t = tale(40000)
    t.answer(1, "r", size=32769, whole=32769)
    assert t.violation(LAW).seen == "a chunk of 32769 bytes"


@pytest.mark.req("CH-002")
def test_all_but_the_last_chunk_are_full() -> None:
    t = tale()
    t.answer(1, "r", 0, 2, 3, 7)
    assert t.violation(LAW).seen == "chunk 0 with 3 bytes"


@pytest.mark.req("WS-007")
def test_an_answer_to_no_request() -> None:
    t = tale()
    t.answer(1, "other")
    assert t.violation(LAW).seen == "content.response to a request that nobody made"


@pytest.mark.req("RS-014")
@pytest.mark.parametrize(("index", "status"), [(1, Status.BROKEN), (0, Status.HELD)])
def test_a_series_does_not_cross_a_reset(index: int, status: Status) -> None:
    t = tale()
    t.answer(1, "r", 0, 2, 4, 8)
    t.close()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.answer(1, "r", index, 2, 4, 8)
    assert t.status(LAW) is status


def test_a_series_goes_on_after_a_resume() -> None:
    t = tale()
    t.answer(1, "r", 0, 2, 4, 8)
    t.close()
    t.connect("c2", resume=(SESSION, 1), resumed=True, peer_last=1)
    t.answer(2, "r", 1, 2, 4, 8)
    assert t.status(LAW) is Status.HELD


def test_an_early_stop() -> None:
    t = tale()
    t.answer(1, "r", 0, 2, 4, 8)
    t.end("interrupted")
    assert t.status(LAW) is Status.HELD
