import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from lab.draws import Draws
from lab.localagent import jobs
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStore
from lab.localagent.job import CancelSignal, Job, assigned_job
from lab.localagent.jobs import Jobs
from lab.localagent.outcome import CANCELLED, Outcome
from lab.localagent.streams import Page, StreamBook
from tests.localagent.doubles import CONVERSATION, JOB, JOB_B, WORKSPACE, RecordingUplink, assign, context

DONE = Outcome("no_change")


class SlowRunner:
    """Runs a job until the test ends it; `ends` holds what is thrown instead."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.release = asyncio.Event()
        self.error: Exception | None = None
        self.signals: dict[str, CancelSignal] = {}

    async def run(self, job: Job, cancel: CancelSignal) -> Outcome:
        self.started.append(job.job_id)
        self.signals[job.job_id] = cancel
        await self.release.wait()
        if self.error is not None:
            raise self.error
        return CANCELLED if cancel.given else DONE


class Bench:
    def __init__(self, tmp_path: Path, limit: int = 16) -> None:
        self.uplink = RecordingUplink()
        self.runner = SlowRunner()
        self.kinds: tuple[str, ...] = ("fix", "implement", "chat")
        self.book = StreamBook(Draws(7, "agent", "cursors"))
        chats = Chats(context(), ChatStore(tmp_path / "chats"), self.book)
        self.defects: list[BaseException] = []
        self.jobs = Jobs(self.runner, self.uplink, lambda: self.kinds, limit, chats, self.defects.append)

    async def started(self, count: int) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(self.runner.started) == count


def job_ids(count: int) -> list[str]:
    return [f"{number:08}-0000-0000-0000-000000000000" for number in range(count)]


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_a_job_is() -> None:
    job = assigned_job(assign("chat", JOB, "canary", options={"conversationId": CONVERSATION}), WORKSPACE)
    assert (job.inline, job.alias, job.conversation_id, job.chat) == (("canary",), "main", CONVERSATION, True)
    assert "canary" not in repr(job)
    bare = assigned_job({"jobId": JOB, "kind": "fix", "inputs": [{"ref": "x" * 43}]}, WORKSPACE)
    assert (bare.inline, bare.alias, bare.incident_id, bare.conversation_id) == ((), None, None, JOB)


@pytest.mark.req("LA-013", "LA-014")
async def test_one_at_a_time_in_order(bench: Bench) -> None:
    assert [bench.jobs.assign(assign(job_id=job_id), WORKSPACE) for job_id in (JOB, JOB_B)] == [None, None]
    await bench.started(1)
    running = bench.jobs.running
    assert running is not None
    assert (running.job_id, bench.jobs.depth) == (JOB, 1)
    bench.runner.release.set()
    results = await bench.uplink.until("job.result", 2)
    assert results == [{"jobId": job_id, "outcome": "no_change"} for job_id in (JOB, JOB_B)]
    assert bench.runner.started == [JOB, JOB_B]
    assert bench.jobs.running is None
    bench.jobs.assign(assign(job_id=CONVERSATION), WORKSPACE)
    await bench.uplink.until("job.result", 3)


@pytest.mark.req("LA-009", "LA-010", "CHAT-005")
async def test_kinds_are_asked_at_each_assignment(bench: Bench) -> None:
    assert bench.jobs.assign(assign("quality"), WORKSPACE) == "protocol_unsupported"
    bench.kinds = ("fix",)
    assert bench.jobs.assign(assign("chat"), WORKSPACE) == "protocol_unsupported"
    assert bench.jobs.assign(assign("fix"), WORKSPACE) is None
    await bench.jobs.close()


@pytest.mark.req("LA-014")
async def test_the_queue_is_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    ids = job_ids(18)
    assert bench.jobs.assign(assign(job_id=ids[0]), WORKSPACE) is None
    await bench.started(1)
    answers = [bench.jobs.assign(assign(job_id=job_id), WORKSPACE) for job_id in ids[1:]]
    assert answers == [None] * 16 + ["rate_limited"]
    await bench.jobs.close()


async def test_a_workspace_in_the_payload_must_be_the_frames(bench: Bench) -> None:
    assert bench.jobs.assign(assign(workspaceId="other"), WORKSPACE) == "schema_violation"
    assert bench.jobs.assign(assign(workspaceId=WORKSPACE), WORKSPACE) is None
    await bench.jobs.close()


async def test_the_same_job_again_is_not_run_again(bench: Bench) -> None:
    for _ in range(2):
        assert bench.jobs.assign(assign(), WORKSPACE) is None
    await bench.started(1)
    assert bench.jobs.assign(assign(), WORKSPACE) is None
    assert bench.jobs.depth == 0
    bench.runner.release.set()
    first = await bench.uplink.until("job.result")
    bench.kinds = ()
    assert bench.jobs.assign(assign(), WORKSPACE) is None
    assert bench.uplink.of("job.result") == first * 2
    assert bench.runner.started == [JOB]


async def test_old_results_are_forgotten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_RESULTS", 1)
    bench.runner.release.set()
    for job_id in (JOB, JOB_B, JOB):
        assert bench.jobs.assign(assign(job_id=job_id), WORKSPACE) is None
        await bench.uplink.until("job.result", len(bench.runner.started) + 1)
    assert bench.runner.started == [JOB, JOB_B, JOB]


async def test_a_cancelled_fix_that_waited_has_no_stream(bench: Bench) -> None:
    bench.jobs.assign(assign(), WORKSPACE)
    bench.jobs.assign(assign("fix", JOB_B), WORKSPACE)
    bench.jobs.cancel(JOB_B, "user")
    assert not bench.book.knows(JOB_B)
    await bench.jobs.close()


@pytest.mark.req("TY-012")
async def test_a_cancel_of_a_running_job_gives_its_signal(bench: Bench) -> None:
    bench.jobs.assign(assign(), WORKSPACE)
    await bench.started(1)
    bench.jobs.cancel(JOB, "policy")
    assert (bench.runner.signals[JOB].given, bench.runner.signals[JOB].reason) == (True, "policy")
    bench.runner.release.set()
    assert await bench.uplink.until("job.result") == [{"jobId": JOB, "outcome": "cancelled"}]


@pytest.mark.req("CHAT-069")
async def test_a_cancelled_chat_that_waited_has_an_empty_closed_stream(bench: Bench) -> None:
    bench.jobs.assign(assign(), WORKSPACE)
    bench.jobs.assign(assign("chat", JOB_B, "q"), WORKSPACE)
    await bench.started(1)
    bench.jobs.cancel(JOB_B, "user")
    assert bench.uplink.of("job.result") == [{"jobId": JOB_B, "outcome": "cancelled"}]
    page = bench.book.page(JOB_B)
    assert isinstance(page, Page)
    assert (page.events, page.done) == ((), True)
    bench.runner.release.set()
    await bench.uplink.until("job.result", 2)
    assert bench.runner.started == [JOB]


async def test_a_cancel_of_an_unknown_job_is_passed_over(bench: Bench) -> None:
    bench.jobs.cancel(JOB, "user")
    assert bench.uplink.sent == []


@pytest.mark.req("CHAT-044", "CHAT-045")
async def test_which_chats_are_active(bench: Bench) -> None:
    bench.jobs.assign(assign("chat", JOB, "q"), WORKSPACE)
    bench.jobs.assign(assign("chat", JOB_B, "q"), "ws-2")
    bench.jobs.assign(assign("fix", CONVERSATION), WORKSPACE)
    await bench.started(1)
    assert [bench.jobs.is_active_chat(job_id) for job_id in (JOB, JOB_B, CONVERSATION, "x")] == [
        True,
        True,
        False,
        False,
    ]
    assert [bench.jobs.workspace_of(job_id) for job_id in (JOB, JOB_B, "x")] == [WORKSPACE, "ws-2", None]
    bench.runner.release.set()
    await bench.uplink.until("job.result", 3)
    assert not bench.jobs.is_active_chat(JOB)


@pytest.mark.req("SEC-019")
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_defect_costs_one_job(bench: Bench, cancelled: bool, caplog: pytest.LogCaptureFixture) -> None:
    bench.runner.error = KeyError("canary")
    bench.jobs.assign(assign(), WORKSPACE)
    await bench.started(1)
    if cancelled:
        bench.jobs.cancel(JOB, "user")
    bench.runner.release.set()
    failed = {"jobId": JOB, "outcome": "failed", "errorCode": "infra"}
    due = {"jobId": JOB, "outcome": "cancelled"} if cancelled else failed
    assert await bench.uplink.until("job.result") == [due]
    assert "canary" not in caplog.text
    assert bench.defects == [bench.runner.error]
    bench.runner.error = None
    bench.jobs.assign(assign(job_id=JOB_B), WORKSPACE)
    assert (await bench.uplink.until("job.result", 2))[1]["outcome"] == "no_change"


async def test_a_defect_in_the_end_of_a_job_does_not_stop_the_queue(bench: Bench) -> None:
    """It is told, and the job behind runs; so does one that is assigned later."""
    broken = KeyError("no room")
    send = bench.uplink.send

    def refuse(type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
        bench.uplink.send = send  # type: ignore[method-assign]
        raise broken

    bench.uplink.send = refuse  # type: ignore[method-assign]
    bench.jobs.assign(assign(), WORKSPACE)
    bench.jobs.assign(assign(job_id=JOB_B), WORKSPACE)
    bench.runner.release.set()
    assert [result["jobId"] for result in await bench.uplink.until("job.result")] == [JOB_B]
    assert bench.defects == [broken]
    later = JOB_B[:-1] + "f"
    bench.jobs.assign(assign(job_id=later), WORKSPACE)
    assert (await bench.uplink.until("job.result", 2))[1]["jobId"] == later


async def test_closing_ends_what_runs(bench: Bench) -> None:
    bench.jobs.assign(assign(), WORKSPACE)
    bench.jobs.assign(assign(job_id=JOB_B), WORKSPACE)
    await bench.started(1)
    await bench.jobs.close()
    await bench.jobs.close()
    assert bench.uplink.sent == []
    assert bench.jobs.depth == 0
