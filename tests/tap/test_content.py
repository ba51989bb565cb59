"""The witness of content: chunks to bodies, bodies to facts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from lab.journal.events import BodyAnswered
from lab.tap.content import MOST_REQUESTS, ContentTap
from tests.tap.frames_by_hand import CANARIES, JOB, REQUEST, ask, assign, chunks, content_tap, from_agent, tap

FRAMES = tap()
CURSORS = ["A" * 43, "B" * 43]


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def uuid(number: int) -> str:
    return f"e0000000-0000-4000-8000-{number:012d}"


def feed(content: ContentTap, *frames: dict[str, Any], conn: str = "c1", fate: str = "passed") -> list[BodyAnswered]:
    answered = []
    for frame in frames:
        raw = json.dumps(frame)
        event = FRAMES.judge(conn, "cp-to-la" if "sig" in frame else "la-to-cp", raw, 0)
        body = content.see(dataclasses.replace(event, fate=fate), raw)
        if body is not None:
            answered.append(body)
    return answered


def page(events: list[tuple[Any, Any]], cursor: str = CURSORS[0], done: bool = False) -> bytes:
    listed = [{"i": i, "e": e} for i, e in events]
    return json.dumps({"events": listed, "nextRef": cursor, "done": done}).encode()


@pytest.mark.req("CHAT-032", "CHAT-035", "CHAT-050")
def test_a_page_of_a_stream() -> None:
    body = page([(0, "a"), (1, "\u00e9\u00e9")])
    (answered,) = feed(content_tap(), ask("job.stream", JOB), *chunks(body, 20))
    assert answered == BodyAnswered(
        conn="c1",
        request_id=REQUEST,
        content="job.stream",
        ref=sha(JOB),
        job_id=JOB,
        status="ok",
        bytes=len(body),
        sha256=sha(body),
        facts={
            "total": "ok",
            "schema": "ok",
            "events": ({"i": 0, "sha256": sha("a"), "chars": 1}, {"i": 1, "sha256": sha("\u00e9\u00e9"), "chars": 2}),
            "done": False,
            "next": sha(CURSORS[0]),
        },
    )


@pytest.mark.req("CHAT-035")
def test_a_cursor_leads_to_its_job() -> None:
    content = content_tap()
    feed(content, ask("job.stream", JOB), *chunks(page([(0, "a")])))
    (second,) = feed(
        content,
        ask("job.stream", CURSORS[0], 3, uuid(2)),
        *chunks(page([], CURSORS[1], True), request_id=uuid(2), seq=2),
    )
    assert (second.job_id, second.ref, second.facts["done"]) == (JOB, sha(CURSORS[0]), True)
    (third,) = feed(content, ask("job.stream", "C" * 43, 4, uuid(3)), *chunks(page([]), request_id=uuid(3), seq=3))
    assert third.job_id is None


@pytest.mark.req("SQ-002")
def test_copies_count_once_and_connections_do_not_matter() -> None:
    body = page([(0, "a" * 50)])
    first, second, *rest = chunks(body, 40)
    content = content_tap()
    assert feed(content, ask("job.stream", JOB), first, first, second, ask("job.stream", JOB)) == []
    (answered,) = feed(content, second, *rest, conn="c2")
    assert (answered.sha256, answered.conn) == (sha(body), "c2")
    assert feed(content, *rest, first) == []


def test_a_chunk_that_the_lab_dropped_has_not_come() -> None:
    content = content_tap()
    last = chunks(page([]))
    feed(content, ask("job.stream", JOB))
    assert feed(content, *last, fate="dropped") == []
    assert len(feed(content, *last)) == 1


@pytest.mark.req("CH-001", "CH-006")
@pytest.mark.parametrize("order", [[1, 0], [0, 2], [1, 2, 3]])
def test_chunks_out_of_order_complete_nothing(order: list[int]) -> None:
    parts = chunks(page([(0, "a" * 100)]), 50)
    assert feed(content_tap(), ask("job.stream", JOB), *(parts[at] for at in order)) == []


def test_an_answer_that_nobody_asked_for() -> None:
    assert feed(content_tap(), *chunks(page([]))) == []


@pytest.mark.req("CH-010")
def test_a_failure() -> None:
    payload = {"status": "not_found", "errorCode": "internal", "encoding": "base64", "data": "", "byteLength": 0}
    failed = from_agent("content.response", 1, payload, requestId=REQUEST, chunk={"index": 0, "total": 1, "last": True})
    (answered,) = feed(content_tap(), ask("job.stream", JOB), failed)
    assert (answered.status, answered.bytes, answered.facts) == ("not_found", 0, {"errorCode": "internal"})


@pytest.mark.req("CHAT-051")
def test_a_conversation() -> None:
    turns = [{"role": "user", "ts": "2026-01-01T00:00:00Z", "text": "q"}]
    body = json.dumps({"turns": turns, "truncated": False}).encode()
    (answered,) = feed(content_tap(), assign(), ask("chat.session", JOB), *chunks(body))
    assert answered.job_id == JOB
    assert answered.facts == {
        "total": "ok",
        "schema": "ok",
        "turns": ({"role": "user", "sha256": sha("q"), "chars": 1},),
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("body", "keyword"),
    [
        pytest.param(page([(i, "a") for i in range(513)]), "maxItems", marks=pytest.mark.req("CHAT-033"), id="513"),
        pytest.param(page([(0, "")]), "minLength", marks=pytest.mark.req("CHAT-033"), id="empty"),
        pytest.param(page([], "short"), "pattern", marks=pytest.mark.req("CHAT-034"), id="cursor"),
        pytest.param(b'{"events":[],"done":true}', "required", marks=pytest.mark.req("CHAT-032"), id="required"),
        pytest.param(b"[]", "type", id="list"),
        pytest.param(b'{"events":7,"nextRef":7,"done":7}', None, id="types"),
        pytest.param(page([("x", 7)]), "type", id="event"),
        pytest.param(b"\xff", "not UTF-8", id="bytes"),
        pytest.param(b"{", "not JSON", id="text"),
        pytest.param(b"", "not JSON", id="nothing"),
    ],
)
def test_a_body_that_breaks_its_schema(body: bytes, keyword: str | None) -> None:
    (answered,) = feed(content_tap(), ask("job.stream", JOB), *chunks(body))
    assert answered.facts["schema"] != "ok"
    if keyword is not None:
        assert answered.facts["schema"]["keyword"] == keyword


def test_canaries_in_clear() -> None:
    body = page([(0, f"x {CANARIES['answer']}")])
    (answered,) = feed(content_tap(), ask("job.stream", JOB), *chunks(body, 37))
    assert answered.facts["canaries"] == ("answer",)
    assert CANARIES["answer"] not in repr(answered)


def test_a_total_that_differs() -> None:
    (chunk,) = chunks(page([]))
    chunk["payload"]["totalBytes"] += 1
    (answered,) = feed(content_tap(), ask("job.stream", JOB), chunk)
    assert answered.facts["total"] == "differs"


def test_other_content_has_no_facts() -> None:
    (answered,) = feed(content_tap(), ask("diff", "D" * 43), *chunks(b"abc"))
    assert (answered.content, answered.facts, answered.job_id) == ("diff", {"total": "ok"}, None)


@pytest.mark.req("CH-005")
def test_requests_are_bounded() -> None:
    content = content_tap()
    for number in range(MOST_REQUESTS + 1):
        feed(content, ask("job.stream", JOB, number + 1, uuid(number)))
    assert feed(content, *chunks(page([]), request_id=uuid(0))) == []
    assert len(feed(content, *chunks(page([]), request_id=uuid(1)))) == 1


@pytest.mark.req("WS-021")
def test_chunks_are_bounded() -> None:
    assert len(feed(content_tap(), ask("diff", "D" * 43), *chunks(b"a" * 64, 1))) == 1
    assert feed(content_tap(), ask("diff", "D" * 43), *chunks(b"a" * 65, 1)) == []


@pytest.mark.req("CHAT-046", "SEC-018")
def test_how_much_a_cursor_has_in_common_with_earlier_ones() -> None:
    content = content_tap()
    cursors = ["A" * 43, "A" * 40 + "BCD", "A" * 43, "A" * 39 + "xBCD", "y" * 43]
    told = []
    for number, cursor in enumerate(cursors):
        request = uuid(number)
        asked = ask("job.stream", JOB, 2 + number, request)
        (answered,) = feed(content, asked, *chunks(page([], cursor), request_id=request, seq=1 + number))
        told.append(answered.facts.get("nextAlike"))
    # The first has nothing beside it, and one that is handed out again tells nothing new.
    assert told == [None, 40, None, 42, 0]
