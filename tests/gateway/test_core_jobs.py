"""Jobs at the gateway's core: what is refused before a seq is used, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.gateway.jobs import CallRefused, Order, job_state
from lab.gateway.news import JobNews
from lab.protocol.contract import Contract, default_contract_folder
from tests.gateway.by_hand import CAPABILITIES, holds
from tests.gateway.core_bench import AGENT, JOB, KEY, OTHER, CoreBench, chat, fix, job_id

SCHEMA_VIOLATION, HANDSHAKE_VIOLATION, TIMEOUT, NORMAL = 4402, 4406, 4420, 1000


def refused(bench: CoreBench, order: Order, agent: str = AGENT) -> str:
    with pytest.raises(CallRefused) as caught:
        bench.core.assign(agent, order, 0)
    bench.pump()
    return caught.value.code


# Assigning


@pytest.mark.req("CP-002")
def test_an_agent_without_a_session_is_offline() -> None:
    bench = CoreBench()
    bench.open()
    assert refused(bench, chat()) == "AGENT_OFFLINE"
    assert bench.core.jobs == {}


def test_calls_for_an_agent_or_a_job_that_nobody_knows_are_refused() -> None:
    bench = CoreBench()
    bench.ready()
    calls: list[Callable[[], object]] = [
        lambda: bench.core.assign("nobody", chat(), 0),
        lambda: bench.core.request_content("nobody", "job.stream", JOB, 0),
        lambda: bench.core.cancel(JOB, "user", 0),
        lambda: bench.core.decide(JOB, "ap-1", "approve", "vhapr1.a.b", 0),
    ]
    codes = []
    for call in calls:
        with pytest.raises(CallRefused) as caught:
            call()
        codes.append(caught.value.code)
    assert codes == ["AGENT_UNKNOWN", "AGENT_UNKNOWN", "JOB_UNKNOWN", "JOB_UNKNOWN"]


def test_a_job_id_is_assigned_once() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign(fix())
    assert refused(bench, fix()) == "JOB_EXISTS"
    assert len(bench.of(conn, "job.assign")) == 1


@pytest.mark.req("CP-001", "CP-002", "CP-034")
def test_a_chat_goes_only_to_a_session_that_announced_it() -> None:
    bench = CoreBench()
    conn = bench.ready(capabilities=("job.assign", "job.inline.16k"))
    assert refused(bench, chat()) == "AGENT_UNSUPPORTED"
    bench.assign(fix())
    assert [(frame["payload"]["kind"], frame["seq"]) for frame in bench.of(conn, "job.assign")] == [("fix", 1)]


@pytest.mark.req("CP-004", "CP-030")
@pytest.mark.parametrize("kind", ["chat", "fix"])
def test_an_inline_above_4096_needs_its_own_capability(kind: str) -> None:
    bench = CoreBench()
    conn = bench.ready(capabilities=("job.assign", "job.chat"))
    assert refused(bench, Order(job_id(1), kind, ("x" * 4097,), llm="default")) == "AGENT_UNSUPPORTED"
    bench.assign(Order(job_id(2), kind, ("x" * 4096,), llm="default"))
    assert [frame["seq"] for frame in bench.of(conn, "job.assign")] == [1]


@pytest.mark.req("CP-006", "CP-007")
def test_job_chat_implies_job_assign_but_not_job_options() -> None:
    bench = CoreBench()
    conn = bench.ready(capabilities=("job.chat",))
    bench.assign(fix(job_id(1)))
    assert refused(bench, fix(job_id(2), options={"maxIterations": 3})) == "AGENT_UNSUPPORTED"
    assert len(bench.of(conn, "job.assign")) == 1


@pytest.mark.req("CP-008", "CP-029", "WS-057", "WS-058")
@pytest.mark.parametrize("character", ['"', "é", "\U0001f600", "\n"])
def test_a_frame_that_is_too_large_as_a_whole_is_refused_before_a_seq_is_used(character: str) -> None:
    bench = CoreBench()
    conn = bench.ready()
    assert refused(bench, chat(character * 16384)) == "frame_too_large"
    assert bench.core.jobs == {}
    bench.assign(chat("a" * 16384))
    (frame,) = bench.of(conn, "job.assign")
    assert (frame["seq"], len(frame["payload"]["inputs"][0]["inline"])) == (1, 16384)


@pytest.mark.req("CP-005", "CP-009")
@pytest.mark.parametrize(
    "order",
    [
        chat("a" * 16385),
        chat(options={"conversationId": "no-uuid"}),
        Order("no-uuid", "fix", llm="default"),
        Order(JOB, "sing"),
    ],
)
def test_what_breaks_its_schema_does_not_leave_the_gateway(order: Order) -> None:
    bench = CoreBench()
    conn = bench.ready()
    assert refused(bench, order) == "schema_violation"
    assert bench.of(conn, "job.assign") == []
    with pytest.raises(CallRefused, match="schema_violation"):
        bench.core.request_content(AGENT, "job.stream", "/etc/passwd", 0)
    assert bench.core.next_timeout() == 90


@pytest.mark.req("CP-016")
def test_a_chat_is_assigned_with_transient_inline_text_and_no_incident() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign(chat("why?"))
    (frame,) = bench.of(conn, "job.assign")
    assert frame["payload"] == {
        "jobId": JOB,
        "kind": "chat",
        "inputs": [{"inline": "why?", "transient": True}],
        "llm": {"alias": "default"},
    }
    assert holds(frame, KEY.verify_key)


@pytest.mark.req("CP-033")
def test_sixteen_frames_may_be_unacked_and_the_rest_waits_in_order() -> None:
    bench = CoreBench()
    conn = bench.ready()
    for number in range(1, 18):
        bench.assign(fix(job_id(number)))
    bench.core.cancel(job_id(1), "user", 0)
    bench.pump()
    assert len(bench.of(conn, "job.assign")) == 16
    assert bench.of(conn, "job.cancel") == []
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[0]))
    assert len(bench.of(conn, "job.assign")) == 17
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[1]))
    assert bench.written[conn][-1]["type"] == "job.cancel"


def test_a_full_queue_refuses_the_next_and_drops_nothing() -> None:
    bench = CoreBench()
    bench.drop(bench.ready(), 1)
    for number in range(256):
        bench.assign(fix(job_id(number)), now=1)
    assert refused(bench, fix(job_id(999))) == "rate_limited"
    assert len(bench.core.jobs) == 256


@pytest.mark.req("CP-019")
def test_an_agent_of_an_older_revision_gets_no_chat() -> None:
    bench = CoreBench(revision="2.2")
    bench.ready(capabilities=CAPABILITIES[:2])
    assert refused(bench, chat()) == "AGENT_UNSUPPORTED"


@pytest.mark.req("CP-018")
@pytest.mark.parametrize("agent", ["2.2", "2.3"])
@pytest.mark.parametrize("gateway", ["2.2", "2.3"])
def test_old_and_new_sides_get_on_with_what_both_know(gateway: str, agent: str) -> None:
    bench = CoreBench(revision=gateway)
    conn = bench.ready(capabilities=CAPABILITIES if agent == "2.3" else CAPABILITIES[:2])
    bench.assign(fix(job_id(1)))
    kinds = ["fix"]
    if gateway == agent == "2.3":
        bench.assign(chat("a" * 4097))
        kinds.append("chat")
    else:
        refused(bench, chat())
    known = Contract.load(default_contract_folder(), agent)
    assert [known.check_frame(frame["type"], frame) for frame in bench.written[conn]] == [None] * (1 + len(kinds))
    assert [frame["payload"]["kind"] for frame in bench.of(conn, "job.assign")] == kinds


@pytest.mark.req("CP-007")
def test_a_gateway_of_the_first_revision_asks_nobody_for_capabilities() -> None:
    bench = CoreBench(revision="2.0")
    conn = bench.ready(capabilities=())
    bench.assign(fix(job_id(1)))
    assert refused(bench, chat()) == "schema_violation"
    assert [frame["payload"]["kind"] for frame in bench.of(conn, "job.assign")] == ["fix"]


@pytest.mark.req("CP-007")
def test_an_agent_of_the_first_revision_gets_no_job_of_a_later_gateway() -> None:
    bench = CoreBench()
    conn = bench.ready(capabilities=())
    assert refused(bench, fix(job_id(1))) == "AGENT_UNSUPPORTED"
    assert bench.of(conn, "job.assign") == []


@pytest.mark.req("CP-003")
def test_a_chat_that_is_refused_goes_to_nobody_else() -> None:
    bench = CoreBench()
    able = bench.ready(agent=OTHER)
    asked = bench.ready(capabilities=("job.assign",))
    assert refused(bench, chat()) == "AGENT_UNSUPPORTED"
    bench.at(5)
    assert [frame["type"] for conn in (able, asked) for frame in bench.written[conn]] == ["ready", "ready"]
    assert bench.core.jobs == {}


# What becomes of jobs


def test_a_job_is_followed_from_its_ack_to_its_result() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign()
    job = bench.core.jobs[JOB]
    states = [job_state(job)]
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[0]))
    states.append(job_state(job))
    bench.tell(conn, bench.agent.data("job.event", {"jobId": JOB, "state": "running"}))
    states.append(job_state(job))
    bench.tell(conn, bench.agent.data("job.result", {"jobId": JOB, "outcome": "no_change"}))
    states.append(job_state(job))
    assert states == ["assigned", "accepted", "running", "ended"]
    assert [news.job for news in bench.news(JobNews)] == [job, job, job]
    bench.tell(conn, bench.agent.data("job.result", {"jobId": JOB, "outcome": "failed"}))
    assert (job.results, job.events) == (2, 1)
    assert job.result == {"jobId": JOB, "outcome": "no_change"}


@pytest.mark.req("SQ-009")
def test_a_rejected_assign_is_told_with_its_code() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign()
    bench.tell(conn, bench.agent.ack(bench.of(conn, "job.assign")[0], "rate_limited"))
    job = bench.core.jobs[JOB]
    assert (job.answer, job.code, job_state(job)) == ("rejected", "rate_limited", "rejected")


@pytest.mark.req("SQ-002", "SQ-008")
def test_a_result_that_comes_twice_is_counted_once() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign()
    result = bench.agent.data("job.result", {"jobId": JOB, "outcome": "no_change"})
    bench.tell(conn, result, result)
    assert bench.core.jobs[JOB].results == 1
    assert [ack["payload"]["status"] for ack in bench.of(conn, "ack")] == ["accepted", "duplicate"]


def test_another_agent_cannot_move_a_job() -> None:
    bench = CoreBench()
    bench.ready()
    bench.assign()
    other = bench.ready(agent=OTHER)
    hand = bench.agents[OTHER]
    bench.tell(
        other,
        hand.data("job.event", {"jobId": JOB, "state": "running"}),
        hand.data("job.result", {"jobId": JOB, "outcome": "failed"}),
        hand.data("audit.event", {"code": "a", "at": "2026-11-04T10:00:00.000Z", "jobId": JOB, "approvalId": "ap-1"}),
    )
    job = bench.core.jobs[JOB]
    assert (job_state(job), job.results, job.events, job.approval_id) == ("assigned", 0, 0, None)
    assert [ack["payload"]["status"] for ack in bench.of(other, "ack")] == ["accepted"] * 3


def test_two_agents_have_a_session_each() -> None:
    bench = CoreBench()
    first, second = bench.ready(), bench.ready(agent=OTHER)
    bench.assign(fix(job_id(1)), agent=OTHER)
    assert bench.of(first, "job.assign") == []
    assert [frame["agentId"] for frame in bench.of(second, "job.assign")] == [OTHER]
    bench.drop(first, 1)
    assert (bench.core.is_ready(AGENT), bench.core.is_ready(OTHER)) == (False, True)


def test_an_approval_is_decided_under_the_id_that_the_audit_told() -> None:
    bench = CoreBench()
    conn = bench.ready()
    bench.assign()
    audit = {"code": "waiting_approval", "at": "2026-11-04T10:00:00.000Z", "jobId": JOB, "approvalId": "ap-1"}
    bench.tell(conn, bench.agent.data("audit.event", audit))
    assert bench.core.jobs[JOB].approval_id == "ap-1"
    bench.core.decide(JOB, "ap-1", "deny", "vhapr1.YQ.Yg", 0)
    bench.pump()
    (frame,) = bench.of(conn, "approval.decision")
    assert frame["payload"] == {"approvalId": "ap-1", "jobId": JOB, "decision": "deny", "token": "vhapr1.YQ.Yg"}
