"""The gateway's caller: how it reads a stream, and what it makes of wrong answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from lab.context import RunContext
from lab.gateway.follow import BadPage
from lab.gateway.jobs import CallRefused, Job
from lab.gateway.relay import Answer
from lab.gateway.server import ContentReading, GatewayServer
from lab.journal.events import (
    Agent2Request,
    CallFailed,
    ContentRead,
    ConversationOpened,
    FaultEnded,
    JobAssigned,
    StreamOver,
    StreamPage,
    digest,
)
from lab.run import driver as driving
from lab.run.driver import CANARY_ROOM, ConversationFailed, Driver, NotAssigned, StreamFailed
from lab.run.expectations import StreamView
from lab.run.identity import draw_identity
from lab.scenario.model import AssignStep
from tests.run.made import context, entries, frame, scenario

Reply = Answer | CallRefused


def page(first: int, count: int, ref: str, done: bool = False) -> Answer:
    events = [{"i": first + n, "e": "text"} for n in range(count)]
    return Answer("r", "ok", json.dumps({"events": events, "nextRef": ref, "done": done}).encode())


def body(value: object) -> Answer:
    return Answer("r", "ok", json.dumps(value).encode())


class FakeCore:
    """Takes every job."""

    def __init__(self) -> None:
        self.ready = True
        self.refuses: str | None = None
        self.orders: list[Any] = []

    def is_ready(self, _agent_id: str) -> bool:
        return self.ready

    def assign(self, agent_id: str, order: Any, _now: float) -> Job:
        if self.refuses is not None:
            raise CallRefused(self.refuses, "no")
        self.orders.append(order)
        return Job(order.job_id, order.kind, agent_id, order.conversation_id)


class FakeGateway:
    """Answers content requests from a list; the last one for ever."""

    name = "gateway"

    def __init__(self, *replies: Reply) -> None:
        self.core = FakeCore()
        self.asked: list[tuple[str, str]] = []
        self._replies = list(replies)

    def after(self, action: Callable[[float], None]) -> None:
        action(0.0)

    def open_content(self, _agent_id: str, kind: str, ref: str) -> ContentReading:
        """Three chunks, then the answer; or only an answer that is a failure."""
        self.asked.append((kind, ref))
        reply = self._replies[0]
        if isinstance(reply, CallRefused):
            raise reply
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        chunks = [b"x", b"y", b"z"] if reply.status == "ok" else []

        def read() -> bytes | None:
            if len(chunks) < 2 and not answer.done():
                answer.set_result(reply)
            return chunks.pop(0) if chunks else None

        return ContentReading(answer, read)

    async def content(self, _agent_id: str, kind: str, ref: str) -> Answer:
        self.asked.append((kind, ref))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, CallRefused):
            raise reply
        return reply


ASSIGN = AssignStep(1, None, "q1", "chat", ("Why?",))


class Bench:
    """A driver before a fake gateway, with one job."""

    def __init__(self, *replies: Reply, step: AssignStep = ASSIGN) -> None:
        self.ctx: RunContext = context()
        self.gateway = FakeGateway(*replies)
        self.identity = draw_identity(self.ctx, ("local_agent",), ("agent2",), ("gateway",))
        gateways = {"gateway": cast(GatewayServer, self.gateway)}
        self.driver = Driver(self.ctx, scenario((step,)), self.identity, gateways)
        self.step = step

    def events(self) -> list[object]:
        return [entry.event for entry in self.ctx.journal.entries]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait for the clock."""
    monkeypatch.setattr(driving, "RETRY_SECONDS", 0.0)


async def followed(bench: Bench) -> driving.Assigned:
    bench.driver.assign(bench.step)
    assigned = bench.driver.follow("q1")
    assert bench.driver.follow("q1") is assigned
    assert assigned.following is not None
    await asyncio.wait_for(assigned.following, 10)
    return assigned


@pytest.mark.req("CP-026")
async def test_pages_are_asked_for_until_the_stream_is_done() -> None:
    """First with the job's id, then with nextRef; an empty page is asked for again."""
    bench = Bench(page(0, 2, "one"), page(2, 0, "two"), page(2, 1, "three", done=True))
    assigned = await followed(bench)
    assert bench.gateway.asked == [("job.stream", ref) for ref in (assigned.job.job_id, "one", "two")]
    assert (len(assigned.follower.events), assigned.follower.odd, assigned.failure) == (3, [], None)
    pages = [event for event in bench.events() if isinstance(event, StreamPage)]
    assert [(one.page, one.fresh, one.total, one.done) for one in pages] == [
        (1, 2, 2, False),
        (2, 0, 2, False),
        (3, 1, 3, True),
    ]
    assert bench.events()[-1] == StreamOver(assigned.job.job_id)


@pytest.mark.req("CP-027")
@pytest.mark.parametrize("code", ["timeout", "agent_offline", "rate_limited"])
async def test_a_lost_page_is_asked_for_again_with_the_same_ref(code: str) -> None:
    """Whether the answer said so or the gateway did."""
    for lost in (Answer("r", "error", code=code), CallRefused(code, "no")):
        bench = Bench(page(0, 2, "one"), lost, page(2, 1, "two", done=True))
        assigned = await followed(bench)
        assert [ref for _, ref in bench.gateway.asked[1:]] == ["one", "one"]
        assert (len(assigned.follower.events), assigned.failure) == (3, None)


async def test_an_offline_agent_is_waited_for() -> None:
    """The next page is asked for when the journal tells that it is back."""
    bench = Bench(CallRefused("AGENT_OFFLINE", "no session"), page(0, 1, "one", done=True))
    bench.gateway.core.ready = False
    bench.driver.assign(ASSIGN)
    following = bench.driver.follow("q1").following
    assert following is not None
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(bench.gateway.asked) == 1
    bench.gateway.core.ready = True
    bench.ctx.journal.record("gateway", FaultEnded("any entry"))
    await asyncio.wait_for(following, 10)
    assert len(bench.gateway.asked) == 2


async def test_an_agent_that_is_ready_and_refuses_is_not_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new try waits, so that the loop stays free and the journal short."""
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            enough.set()
            await asyncio.Event().wait()

    bench = Bench(CallRefused("rate_limited", "the queue is full"))
    bench.driver.assign(ASSIGN)
    monkeypatch.setattr(driving, "RETRY_SECONDS", 0.25)
    monkeypatch.setattr("lab.run.driver.asyncio.sleep", sleep)
    bench.driver.follow("q1")
    await asyncio.wait_for(enough.wait(), 10)
    await bench.driver.close()
    assert waits == [0.25] * 4
    assert len(bench.gateway.asked) == 4


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Answer("r", "not_found", code="internal"), StreamFailed),
        (Answer("r", "error", code="protocol_unsupported"), StreamFailed),
        (CallRefused("schema_violation", "no"), StreamFailed),
        (body([]), BadPage),
        (Answer("r", "ok", b"{"), BadPage),
        (body({"events": [{"i": "0", "e": "x"}], "nextRef": "r", "done": True}), BadPage),
        (body({"events": [], "nextRef": 5, "done": True}), BadPage),
    ],
)
async def test_a_stream_that_cannot_be_read_on(reply: Reply, kind: type[Exception]) -> None:
    """It is a failure of the agent, told once in the journal, and no defect of the lab."""
    bench = Bench(reply)
    assigned = await followed(bench)
    assert isinstance(assigned.failure, kind)
    assert bench.events()[-1] == CallFailed("stream", kind.__name__, assigned.job.job_id)
    assert bench.ctx.defects == []


async def test_a_defect_while_it_reads_ends_the_run() -> None:
    """It is not taken for the agent's failure."""
    bench = Bench(page(0, 1, "one"))
    bench.gateway.content = cast(Any, None)  # type: ignore[method-assign]
    assigned = await followed(bench)
    assert [type(defect) for defect in bench.ctx.defects] == [TypeError]
    assert assigned.failure is None


async def opened(bench: Bench) -> driving.Opening:
    bench.driver.assign(bench.step)
    opening = bench.driver.open_session("q1")
    assert opening.view is None
    await asyncio.wait_for(asyncio.gather(*bench.driver._openings), 10)
    assert opening.over
    return opening


@pytest.mark.parametrize(
    ("reply", "chunks", "code"),
    [
        (Answer("r", "ok"), 3, None),
        (Answer("r", "error", code="rate_limited"), 0, "rate_limited"),
        (Answer("r", "not_found"), 0, "not_found"),
        (CallRefused("AGENT_OFFLINE", "no session"), 0, "AGENT_OFFLINE"),
    ],
)
async def test_content_is_read_chunk_by_chunk(reply: Reply, chunks: int, code: str | None) -> None:
    """What came of it is told in the journal."""
    bench = Bench(reply)
    bench.driver.assign(bench.step)
    job_id = bench.driver.job("q1").job.job_id
    reading = bench.driver.read_content("q1", "job.stream", 0.001)
    await asyncio.wait_for(asyncio.gather(*bench.driver._openings), 10)
    assert (reading.over, reading.chunks, reading.code) == (True, chunks, code)
    assert bench.gateway.asked == [("job.stream", job_id)]
    assert bench.events()[-1] == ContentRead(job_id, "job.stream", chunks, code or "")


async def test_a_conversation_is_opened() -> None:
    """Under the job's id, or the id that its options name."""
    stored = body({"turns": [{"role": "user", "text": "Why?"}], "truncated": True})
    bench = Bench(stored)
    opening = await opened(bench)
    assert opening.view is not None
    assert (len(opening.view.turns), opening.view.truncated) == (1, True)
    job_id = bench.driver.job("q1").job.job_id
    assert bench.gateway.asked == [("chat.session", job_id)]
    assert bench.events()[-1] == ConversationOpened(job_id, 1, True)
    named = Bench(stored, step=AssignStep(1, None, "q1", "chat", options={"conversationId": "mine"}))
    await opened(named)
    assert named.gateway.asked == [("chat.session", "mine")]


@pytest.mark.parametrize(
    "reply",
    [
        Answer("r", "not_found", code="internal"),
        CallRefused("AGENT_OFFLINE", "no session"),
        Answer("r", "ok", b""),
        Answer("r", "ok", b"[" * 100_000),
        body([]),
        body({"turns": {}, "truncated": False}),
        body({"turns": ["text"], "truncated": False}),
        body({"turns": [], "truncated": "no"}),
        body({"turns": []}),
    ],
)
async def test_a_conversation_that_cannot_be_opened(reply: Reply) -> None:
    """A failure of the agent, in a sentence without content, and no defect of the lab."""
    bench = Bench(reply)
    opening = await opened(bench)
    assert isinstance(opening.failure, ConversationFailed)
    assert "chat.session" in str(opening.failure)
    assert len(str(opening.failure)) < 100
    assert bench.ctx.defects == []


def test_a_prompt_gets_a_canary_unless_it_tests_a_limit() -> None:
    """The journal has the digests of what was really sent."""
    short, long = "Why?", "x" * (CANARY_ROOM + 1)
    bench = Bench(page(0, 0, "r"), step=AssignStep(1, None, "q1", "chat", (short, long)))
    bench.driver.assign(bench.step)
    (order,) = bench.gateway.core.orders
    canary = bench.identity.canaries["prompt"]
    assert order.inputs == (f"[{canary}] {short} [{canary}]", long)
    (assigned,) = [event for event in bench.events() if isinstance(event, JobAssigned)]
    assert [one["bytes"] for one in assigned.inputs] == [len(text) for text in order.inputs]
    assert canary not in repr(assigned)
    joined = "\n\n".join(order.inputs)
    assert assigned.user_turn == digest("user-turn", joined)
    assert assigned.prompt == digest("prompt", joined)


def test_a_key_in_a_prompt_is_filled_in() -> None:
    """Its value reaches the agent and not the journal."""
    bench = Bench(page(0, 0, "r"), step=AssignStep(1, None, "q1", "chat", ("Is {canary:my_key} a good one?",)))
    bench.identity.canaries["my_key"] = "v4lue-of-the-key"
    bench.driver.assign(bench.step)
    (order,) = bench.gateway.core.orders
    assert "Is v4lue-of-the-key a good one?" in order.inputs[0]
    assert "v4lue-of-the-key" not in repr(bench.events())


def test_a_prompt_that_an_agent_masks_is_not_told_to_the_byte() -> None:
    """Nobody can say what the agent stores of it."""
    bench = Bench(page(0, 0, "r"), step=AssignStep(1, None, "q1", "chat", ("password=hunter22",)))
    bench.driver.assign(bench.step)
    (assigned,) = [event for event in bench.events() if isinstance(event, JobAssigned)]
    assert (assigned.user_turn, assigned.prompt) == (None, None)


async def test_a_job_that_the_gateway_refuses_is_none() -> None:
    """The refusal is told, and later steps on it are refused in words."""
    bench = Bench(page(0, 0, "r"))
    bench.gateway.core.refuses = "AGENT_OFFLINE"
    with pytest.raises(CallRefused):
        bench.driver.assign(ASSIGN)
    assert isinstance(bench.events()[-1], CallFailed)
    for action in (bench.driver.job, bench.driver.follow, bench.driver.open_session):
        with pytest.raises(NotAssigned, match="job q1 was never assigned"):
            action("q1")


async def test_closing_ends_what_goes_on() -> None:
    """Followers and openings, also twice."""
    bench = Bench(Answer("r", "error", code="timeout"))
    bench.gateway.core.ready = False
    bench.driver.assign(ASSIGN)
    assigned = bench.driver.follow("q1")
    bench.driver.open_session("q1")
    await bench.driver.close()
    await bench.driver.close()
    assert assigned.following is not None
    assert assigned.following.cancelled()


async def test_what_there_is_at_the_end() -> None:
    """A job's acks are those to its own assign, copies and all; a stream is there once it was followed."""
    bench = Bench(page(0, 3, "r", done=True))
    assigned = await followed(bench)
    job = assigned.job
    job.results, job.result = 1, {"outcome": "failed", "errorCode": "infra", "filesChangedCount": 2}
    down = {"direction": "cp-to-la", "type": "job.assign"}
    journal = entries(
        frame(**down, msg_id="m1", payload={"jobId": job.job_id}),
        frame(**down, msg_id="m2", payload={"jobId": "another"}),
        frame(type="ack", payload={"ackMsgId": "m1", "status": "accepted"}),
        frame(type="ack", payload={"ackMsgId": "m2", "status": "rejected"}),
        frame(type="ack", payload={"ackMsgId": "m1", "status": "duplicate"}),
        frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m1", "status": "rejected"}),
        Agent2Request("POST", "/local/v1/jobs", 503, job.job_id),
        Agent2Request("POST", "/local/v1/jobs", 202, job.job_id),
        Agent2Request("POST", "/local/v1/jobs", 409, job.job_id),
        Agent2Request("POST", "/local/v1/jobs/{id}/cancel", 202, job.job_id),
        Agent2Request("POST", "/local/v1/jobs", 202, "another"),
    )
    views = bench.driver.views(journal)
    view = views.jobs["q1"]
    assert (view.outcome, view.error_code, view.files_changed, view.runs, view.acks, view.ended) == (
        "failed",
        "infra",
        2,
        2,
        ("accepted", "duplicate"),
        True,
    )
    assert views.streams["q1"] == StreamView(3, True, 1, 0)
    assert views.sessions == {}
    assert views.figures["frames"] == 6
