"""Sessions at the gateway's core, on literal time and frames written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.gateway.jobs import job_state
from lab.gateway.news import SessionNews
from lab.protocol.gateway_side import GatewayPolicy
from tests.gateway.by_hand import HandAgent, holds, text
from tests.gateway.core_bench import AGENT, CONTRACT, EPOCH_MS, JOB, KEY, OTHER, TENANT, CoreBench, chat, fix, job_id

SCHEMA_VIOLATION, HANDSHAKE_VIOLATION, TIMEOUT, NORMAL = 4402, 4406, 4420, 1000


@pytest.mark.req("HS-032", "RS-020")
def test_a_session_becomes_ready_and_its_news_tells_of_it() -> None:
    bench = CoreBench()
    conn = bench.open()
    assert not bench.core.is_ready(AGENT)
    bench.tell(conn, bench.agent.register(("job.assign", "odd.thing")), bench.agent.hello(("job.assign", "odd.thing")))
    assert bench.core.is_ready(AGENT)
    assert not bench.core.is_ready(OTHER)
    ready = bench.ready_payload(conn)
    assert (ready["resumed"], ready["peerLastSeq"], ready["capabilities"]) == (False, 0, ["job.assign"])
    (news,) = bench.news(SessionNews)
    assert (news.state, news.session_id, news.agent_id) == ("ready", ready["sessionId"], AGENT)
    assert news.detail == {"capabilities": ["job.assign"], "sentAgain": 0, "revision": "2.3"}


@pytest.mark.req("HS-038")
def test_what_waits_for_a_session_is_written_behind_its_ready() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.drop(first, 1)
    bench.assign(now=2)
    second = bench.ready(3, resume=(session, 0))
    assert [frame["type"] for frame in bench.written[second]] == ["ready", "job.assign"]


@pytest.mark.req("SG-019", "HS-025")
def test_a_gateway_without_a_key_does_not_negotiate_v2() -> None:
    bench = CoreBench(GatewayPolicy(signs=False))
    conn = bench.open()
    bench.tell(conn, bench.agent.register(), bench.agent.hello())
    assert [frame["type"] for frame in bench.written[conn]] == ["error"]
    assert bench.written[conn][0]["payload"]["code"] == "protocol_unsupported"
    assert not bench.core.is_ready(AGENT)
    assert bench.closes == {}


@pytest.mark.req("V1-002", "V1-010", "HS-022")
def test_a_v1_register_turns_the_connection_to_v1() -> None:
    bench = CoreBench(GatewayPolicy(signs=False))
    conn = bench.open()
    bench.tell(conn, bench.agent.register(), bench.agent.hello())
    bench.at(11)
    bench.tell(conn, {"type": "register", "tenantId": bench.agent.tenant, "port": 5055, "workspacePath": "/x"}, now=11)
    assert bench.states() == [(conn, "v1")]
    # V1-012: no v2 frame, and no close at the end of the handshake's time.
    before = len(bench.written[conn])
    bench.tell(conn, bench.agent.heartbeat(), now=12)
    bench.at(40)
    assert len(bench.written[conn]) == before
    assert bench.closes == {}


@pytest.mark.req("RS-001", "RS-004", "CP-031", "SQ-023", "SQ-024")
def test_a_resume_sends_again_what_was_not_acked_and_signs_it_anew() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.assign(fix(job_id(1)))
    bench.assign(fix(job_id(2)))
    bench.drop(first, 1)
    assert not bench.core.is_ready(AGENT)
    second = bench.ready(20, resume=(session, 1))
    assert bench.ready_payload(second)["resumed"] is True
    (again,) = bench.of(second, "job.assign")
    before = bench.of(first, "job.assign")[1]
    assert (again["seq"], again["msgId"], again["payload"]) == (2, before["msgId"], before["payload"])
    assert again["sig"]["nonce"] != before["sig"]["nonce"]
    assert again["sig"]["timestamp"] == EPOCH_MS + 20_000
    assert holds(again, KEY.verify_key)
    assert bench.news(SessionNews)[-1].detail["sentAgain"] == 1
    assert bench.core.jobs[job_id(1)].answer == "accepted"


@pytest.mark.req("RS-005", "RS-007", "RS-009", "WS-078")
def test_a_lost_session_fails_what_was_in_flight_and_keeps_the_jobs() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.assign(fix())
    bench.tell(first, bench.agent.ack(bench.of(first, "job.assign")[0]))
    bench.assign(fix(job_id(2)))
    request = bench.ask()
    bench.drop(first, 1)
    # 90 s after the drop it is gone.
    second = bench.ready(91.5, resume=(session, 2))
    ready = bench.ready_payload(second)
    assert (ready["resumed"], ready["peerLastSeq"]) == (False, 0)
    assert ready["sessionId"] != session
    assert ("job.assign", 2, "agent_offline") in bench.undelivered()
    assert ("content.request", 3, "agent_offline") in bench.undelivered()
    assert [(answer.request_id, answer.status, answer.code) for answer in bench.answers()] == [
        (request, "error", "agent_offline")
    ]
    jobs = bench.core.jobs
    assert (jobs[JOB].answer, jobs[JOB].code, jobs[job_id(2)].code) == ("accepted", None, "agent_offline")
    bench.assign(fix(job_id(3)), now=92)
    assert [frame["seq"] for frame in bench.of(second, "job.assign")] == [1]


@pytest.mark.req("RS-009")
def test_a_session_is_kept_for_90_seconds() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.drop(first, 1)
    assert bench.ready_payload(bench.ready(90.9, resume=(session, 0)))["resumed"] is True


@pytest.mark.req("RS-018")
def test_a_session_of_another_agent_is_not_resumed() -> None:
    bench = CoreBench()
    session = bench.ready_payload(bench.ready())["sessionId"]
    assert bench.ready_payload(bench.ready(agent=OTHER, resume=(session, 0)))["resumed"] is False
    assert bench.core.is_ready(AGENT)


@pytest.mark.req("RS-005")
def test_what_waits_goes_out_in_the_next_session_but_no_content_request() -> None:
    bench = CoreBench()
    first = bench.ready()
    bench.drop(first, 1)
    bench.assign(chat(job=job_id(1)), now=2)
    request = bench.ask(now=2)
    bench.core.cancel(job_id(1), "user", 2)
    second = bench.ready(3)
    data = [frame for frame in bench.written[second] if frame["seq"] > 0]
    assert [(frame["type"], frame["seq"]) for frame in data] == [("job.assign", 1), ("job.cancel", 2)]
    assert [(answer.request_id, answer.code) for answer in bench.answers()] == [(request, "agent_offline")]


@pytest.mark.req("CP-034", "CP-001")
def test_what_waits_does_not_go_to_an_agent_that_came_back_with_less() -> None:
    bench = CoreBench()
    bench.drop(bench.ready(), 1)
    bench.assign(chat(job=job_id(1)), now=2)
    bench.assign(fix(job_id(2)), now=2)
    second = bench.ready(3, capabilities=("job.assign",))
    assert [frame["payload"]["jobId"] for frame in bench.of(second, "job.assign")] == [job_id(2)]
    assert bench.core.jobs[job_id(1)].code == "AGENT_UNSUPPORTED"
    assert bench.undelivered() == [("job.assign", None, "AGENT_UNSUPPORTED")]


@pytest.mark.req("RS-021")
def test_the_newest_ready_session_wins_and_the_older_socket_is_closed_plainly() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.assign(fix())
    second = bench.ready(1)
    assert bench.closes == {first: NORMAL}
    assert ("job.assign", 1, "agent_offline") in bench.undelivered()
    bench.assign(fix(job_id(2)), now=1)
    assert len(bench.of(first, "job.assign")) == len(bench.of(second, "job.assign")) == 1
    bench.drop(first, 2)
    assert bench.core.is_ready(AGENT)
    # The older session is discarded.
    bench.drop(second, 2)
    assert bench.ready_payload(bench.ready(3, resume=(session, 0)))["resumed"] is False


@pytest.mark.req("RS-021")
def test_a_session_that_is_resumed_while_its_older_socket_lives_goes_on() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.assign(fix())
    second = bench.ready(1, resume=(session, 0))
    assert bench.closes == {first: NORMAL}
    assert [frame["seq"] for frame in bench.of(second, "job.assign")] == [1]
    bench.drop(first, 2)
    assert bench.core.is_ready(AGENT)
    assert bench.undelivered() == []
    bench.assign(fix(job_id(2)), now=2)
    assert [frame["seq"] for frame in bench.of(second, "job.assign")] == [1, 2]


def test_a_second_connection_that_never_gets_ready_changes_nothing() -> None:
    bench = CoreBench()
    first = bench.ready()
    second = bench.open(1)
    bench.tell(second, bench.agent.register(), now=1)
    bench.drop(second, 2)
    assert bench.core.is_ready(AGENT)
    bench.assign(now=2)
    assert len(bench.of(first, "job.assign")) == 1
    assert first not in bench.closes


@pytest.mark.req("SQ-022", "RS-016")
def test_an_unacked_frame_ends_the_connection_and_stays_for_the_resume() -> None:
    bench = CoreBench()
    first = bench.ready()
    session = bench.ready_payload(first)["sessionId"]
    bench.assign()
    for now in (5, 10, 15):
        bench.at(now)
    assert [frame["seq"] for frame in bench.of(first, "job.assign")] == [1, 1, 1, 1]
    assert first not in bench.closes
    bench.at(20)
    assert bench.closes[first] == TIMEOUT
    # Ended is no longer ready, before the socket is gone.
    assert not bench.core.is_ready(AGENT)
    assert bench.undelivered() == [("job.assign", 1, "timeout")]
    assert job_state(bench.core.jobs[JOB]) == "assigned"
    bench.tell(first, bench.agent.heartbeat(), now=20)
    bench.drop(first, 20.1)
    second = bench.ready(21, resume=(session, 0))
    (again,) = bench.of(second, "job.assign")
    bench.tell(second, bench.agent.ack(again), now=21)
    assert bench.core.jobs[JOB].answer == "accepted"


@pytest.mark.req("SQ-029", "SQ-030", "WS-024")
def test_silence_of_90_seconds_ends_the_connection() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.tell(conn, bench.agent.heartbeat(), now=50)
    bench.at(139.9)
    assert bench.closes == {}
    assert bench.core.next_timeout() == 140
    bench.at(140)
    assert bench.closes == {conn: TIMEOUT}


JUNK = st.one_of(
    st.text(max_size=40),
    st.binary(max_size=40),
    st.sampled_from(["ping", '{"type":"ping"}', "[]", '{"schemaVersion":2}', "null", "[" * 500]),
    st.builds(
        lambda name, value: text({**HandAgent(TENANT, AGENT, EPOCH_MS).heartbeat(), name: value}),
        st.sampled_from(
            ["schemaVersion", "type", "msgId", "seq", "ack", "requestId", "tenantId", "ts", "chunk", "payload"]
        ),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=9), st.just({})
        ),
    ),
)


@given(st.lists(JUNK, max_size=6), st.booleans())
def test_whatever_a_peer_says_the_core_answers_and_does_not_break(messages: list[str | bytes], is_ready: bool) -> None:
    bench = CoreBench()
    conn = bench.ready() if is_ready else bench.open()
    bench.ready(agent=OTHER)
    for number, message in enumerate(messages):
        bench.core.receive_untrusted(conn, message, number)
        bench.pump()
    bench.at(50)
    bench.drop(conn, 51)
    assert not bench.core.is_ready(AGENT)
    assert bench.core.is_ready(OTHER)


def test_messages_after_the_end_change_nothing() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.core.receive_untrusted(conn, "no frame", 1)
    bench.pump()
    assert conn in bench.closes
    before = list(bench.written[conn])
    bench.tell(conn, bench.agent.heartbeat(), now=1)
    bench.core.receive_untrusted(conn, b"\xff", 1)
    bench.pump()
    assert bench.written[conn] == before


@pytest.mark.req("CP-010")
def test_ready_ack_and_error_are_of_their_schemas() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = "99999999-0000-4000-8000-000000000001"
    beat = bench.agent.heartbeat()
    check = bench.agent.data("policy.check", {"jobId": JOB, "actionType": "shell"}, requestId=request)
    bench.tell(conn, beat, beat, check, {**bench.agent.heartbeat(), "tenantId": "another"})
    session = bench.ready_payload(conn)["sessionId"]
    bench.drop(conn, 1)
    resumed = bench.ready(2, resume=(session, 0))
    frames = [*bench.written[conn], *bench.written[resumed]]
    told = [(frame["type"], frame["payload"].get("status")) for frame in frames]
    acks = [("ack", status) for status in ("accepted", "duplicate", "rejected")]
    assert told == [("ready", None), *acks, ("error", None), ("ready", None)]
    assert bench.ready_payload(resumed)["resumed"] is True
    assert [CONTRACT.check_frame(frame["type"], frame) for frame in frames] == [None] * 6


@pytest.mark.req("CP-023", "SQ-007", "SQ-034", "TY-006")
def test_every_data_frame_that_the_gateway_takes_is_acked_accepted() -> None:
    bench = CoreBench()
    conn = bench.ready()
    frames = [
        bench.agent.heartbeat(),
        bench.agent.data("job.event", {"jobId": JOB, "state": "running"}),
        bench.agent.data("job.result", {"jobId": JOB, "outcome": "no_change"}),
        bench.agent.data("audit.event", {"code": "a", "at": "2026-11-04T10:00:00.000Z"}),
        bench.agent.chunk("99999999-0000-4000-8000-000000000001", b"x", total=2),
    ]
    bench.tell(conn, *frames)
    assert [(ack["payload"]["status"], ack["payload"]["ackMsgId"]) for ack in bench.of(conn, "ack")] == [
        ("accepted", frame["msgId"]) for frame in frames
    ]
    assert bench.core.jobs == {}


@pytest.mark.req("SQ-009", "SQ-012", "WS-076")
def test_a_type_that_this_gateway_does_not_handle_is_acked_rejected() -> None:
    bench = CoreBench()
    conn = bench.ready()
    request = "99999999-0000-4000-8000-000000000001"
    payload = {"jobId": JOB, "actionType": "shell", "paramsSha256": "ab" * 32}
    check = bench.agent.data("policy.check", payload, requestId=request)
    bench.tell(conn, check, bench.agent.heartbeat())
    first, second = bench.of(conn, "ack")
    assert (first["payload"]["status"], first["payload"]["errorCode"]) == ("rejected", "protocol_unsupported")
    assert (second["payload"]["status"], second["ack"]) == ("accepted", 2)
