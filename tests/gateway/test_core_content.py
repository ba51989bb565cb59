"""Content at the gateway's core: chunks, time limits, and requests that outlive their connection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType

import pytest

from tests.gateway.core_bench import AGENT, JOB, OTHER, CoreBench, chat, fix, job_id

SCHEMA_VIOLATION, HANDSHAKE_VIOLATION, TIMEOUT, NORMAL = 4402, 4406, 4420, 1000


def test_a_body_in_three_chunks_is_put_together_and_acked_chunk_by_chunk() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = bench.ask()
    for index, part in enumerate((b"one ", b"two ", b"three")):
        assert bench.answers() == []
        bench.tell(conn, bench.agent.chunk(request, part, index, 3, totalBytes=13))
    (answer,) = bench.answers()
    assert (answer.request_id, answer.status, answer.body, answer.code) == (request, "ok", b"one two three", None)
    assert [ack["payload"]["status"] for ack in bench.of(conn, "ack")] == ["accepted"] * 3


def texts_in(root: object) -> Iterator[str]:
    """Every text that can be reached from a value, bytes as text."""
    seen: set[int] = set()
    left = [root]
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, type | FunctionType | MethodType | ModuleType):
            continue
        seen.add(id(value))
        if isinstance(value, str | bytes):
            yield value if isinstance(value, str) else value.decode(errors="replace")
        elif isinstance(value, Mapping):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, Collection):
            left += value
        else:
            left += getattr(value, "__dict__", {}).values()
            left += [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]


@pytest.mark.req("CP-015")
def test_a_chat_leaves_ids_states_and_counts_at_the_gateway_and_no_text() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign(chat("canary of the question"))
    assert any("canary" in text for text in texts_in(bench.core))
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[0]))
    for kind in ("job.stream", "chat.session"):
        request = bench.ask(kind=kind, ref=JOB)
        bench.tell(conn, bench.agent.ack(bench.of(conn, "content.request")[-1]))
        bench.tell(conn, bench.agent.chunk(request, b"canary of the answer"))
    bench.tell(conn, bench.agent.data("job.result", {"jobId": JOB, "outcome": "no_change", "filesChangedCount": 2}))
    assert [answer.body for answer in bench.answers()] == [b"canary of the answer"] * 2
    assert bench.core.jobs[JOB].result == {"jobId": JOB, "outcome": "no_change", "filesChangedCount": 2}
    assert JOB in texts_in(bench.core)
    assert [text for text in texts_in(bench.core) if "canary" in text] == []


def test_an_empty_body_is_an_answer() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.tell(conn, bench.agent.chunk(bench.ask(), b""))
    assert [(answer.status, answer.body) for answer in bench.answers()] == [("ok", b"")]


@pytest.mark.req("CH-012")
@pytest.mark.parametrize(
    ("status", "code"), [("error", "payload_too_large"), ("not_found", "internal"), ("forbidden", "internal")]
)
def test_a_failure_of_the_agent_reaches_the_caller(status: str, code: str) -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.tell(conn, bench.agent.failure(bench.ask(), status, code))
    assert [(answer.status, answer.code, answer.body) for answer in bench.answers()] == [(status, code, b"")]


@pytest.mark.req("CH-035")
def test_a_rejected_request_fails_with_the_code_of_its_ack() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.ask()
    bench.tell(conn, bench.agent.ack(bench.of(conn, "content.request")[0], "protocol_unsupported"))
    assert [(answer.status, answer.code) for answer in bench.answers()] == [("error", "protocol_unsupported")]


@pytest.mark.req("CH-030")
def test_a_total_that_is_not_the_sum_fails_the_request_and_not_the_session() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.tell(conn, bench.agent.chunk(bench.ask(), b"four", totalBytes=5))
    assert [(answer.status, answer.code, answer.body) for answer in bench.answers()] == [
        ("error", "chunk_inconsistent", b"")
    ]
    assert bench.core.is_ready(AGENT)
    bench.tell(conn, bench.agent.chunk(bench.ask(), b"four", contentType="text/plain", totalBytes=4))
    assert bench.answers()[-1].body == b"four"


@pytest.mark.req("WS-055", "CH-037")
def test_a_first_chunk_is_due_within_10_seconds_of_the_write() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = bench.ask(now=1)
    bench.tell(conn, bench.agent.ack(bench.of(conn, "content.request")[0]), now=1)
    assert bench.core.next_timeout() == 11
    bench.at(10.99)
    assert bench.answers() == []
    bench.at(11)
    assert [(answer.request_id, answer.status, answer.code) for answer in bench.answers()] == [
        (request, "error", "timeout")
    ]


@pytest.mark.req("WS-055", "CH-037")
def test_a_last_chunk_is_due_within_30_seconds_of_the_write() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = bench.ask(now=1)
    bench.tell(conn, bench.agent.chunk(request, b"x", 0, 2), now=10.9)
    bench.at(30.99)
    assert bench.answers() == []
    bench.at(31)
    assert [answer.code for answer in bench.answers()] == ["timeout"]


@pytest.mark.req("CH-037")
def test_the_limits_of_a_request_that_waits_count_from_its_write() -> None:
    bench = CoreBench()
    conn = bench.ready()
    for number in range(1, 17):
        bench.assign(fix(job_id(number)))
    request = bench.ask(now=0)
    assert bench.of(conn, "content.request") == []
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[-1]), now=4)
    assert len(bench.of(conn, "content.request")) == 1
    for assign in bench.of(conn, "job.assign"):
        bench.tell(conn, bench.agent.ack(assign), now=4)
    bench.tell(conn, bench.agent.ack(bench.of(conn, "content.request")[0]), now=4)
    bench.at(13.9)
    assert bench.answers() == []
    bench.tell(conn, bench.agent.chunk(request, b"x", 0, 2), now=13.9)
    bench.at(33.9)
    assert bench.answers() == []
    bench.at(34)
    assert [answer.code for answer in bench.answers()] == ["timeout"]


def test_a_request_that_cannot_be_written_fails_in_time() -> None:
    bench = CoreBench()
    bench.drop(bench.ready(), 1)
    bench.ask(now=2)
    bench.at(11.9)
    assert bench.answers() == []
    bench.at(12)
    assert [answer.code for answer in bench.answers()] == ["timeout"]


@pytest.mark.req("CP-031", "RS-015")
def test_a_request_in_flight_at_a_drop_is_asked_again_and_answered_after_the_resume() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    request = bench.ask(now=1)
    bench.drop(first, 2)
    second = bench.ready(4, resume=(session, 0))
    (again,) = bench.of(second, "content.request")
    (before,) = bench.of(first, "content.request")
    assert (again["msgId"], again["seq"], again["requestId"]) == (before["msgId"], before["seq"], request)
    bench.tell(second, bench.agent.chunk(request, b"page"), now=10.9)
    assert [answer.body for answer in bench.answers()] == [b"page"]


@pytest.mark.req("CH-037")
def test_the_time_of_a_request_goes_on_over_a_drop() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.ask(now=1)
    bench.drop(first, 2)
    bench.ready(9, resume=(session, 0))
    bench.at(11)
    assert [answer.code for answer in bench.answers()] == ["timeout"]


@pytest.mark.req("RS-015")
def test_a_series_goes_on_over_a_resume() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    request = bench.ask()
    bench.tell(first, bench.agent.chunk(request, b"a", 0, 2))
    bench.drop(first, 2)
    second = bench.ready(3, resume=(session, 1))
    assert bench.ready_payload(second)["peerLastSeq"] == 1
    bench.tell(second, bench.agent.chunk(request, b"b", 1, 2), now=3)
    assert [answer.body for answer in bench.answers()] == [b"ab"]


@pytest.mark.req("CH-028", "CH-027")
def test_chunks_of_a_request_that_was_given_up_are_acked_and_dropped() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = bench.ask()
    bench.tell(conn, bench.agent.chunk(request, b"a", 0, 3))
    bench.at(30)
    late = [bench.agent.chunk(request, b"b", 1, 3), bench.agent.chunk(request, b"c", 2, 3)]
    bench.tell(conn, *late, now=31)
    assert [answer.code for answer in bench.answers()] == ["timeout"]
    assert [ack["payload"]["status"] for ack in bench.of(conn, "ack")] == ["accepted"] * 3
    # They are judged all the same.
    bench.tell(conn, bench.agent.chunk(request, b"d", 2, 3), now=31)
    assert bench.of(conn, "error")[0]["payload"]["code"] == "chunk_out_of_order"


@pytest.mark.req("CH-029")
def test_an_answer_that_nobody_asked_for_is_acked_and_dropped() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.tell(conn, bench.agent.chunk("99999999-0000-4000-8000-000000000001", b"a"))
    assert bench.answers() == []
    assert bench.core.is_ready(AGENT)


def test_another_agent_cannot_answer_a_request() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = bench.ask()
    other = bench.ready(agent=OTHER)
    bench.tell(other, bench.agents[OTHER].chunk(request, b"poison"))
    assert bench.answers() == []
    bench.tell(conn, bench.agent.chunk(request, b"page"))
    assert [answer.body for answer in bench.answers()] == [b"page"]


@pytest.mark.req("RS-007")
def test_a_lost_session_fails_the_requests_of_its_own_agent_only() -> None:
    bench = CoreBench()
    bench.ready(agent=OTHER)
    theirs = bench.ask(agent=OTHER)
    bench.drop(bench.ready(), 1)
    mine = bench.ask(now=1)
    bench.ready(2)
    assert [answer.request_id for answer in bench.answers()] == [mine]
    bench.at(10)
    assert [answer.request_id for answer in bench.answers()] == [mine, theirs]


def test_asking_and_calling_early_change_nothing() -> None:
    bench = CoreBench()
    assert bench.core.next_timeout() is None
    conn = bench.open(5)
    assert bench.core.next_timeout() == 17
    bench.at(16.9)
    assert conn not in bench.closes
    bench.at(17)
    assert bench.closes[conn] == TIMEOUT
    assert bench.states() == [(conn, "ended")]
