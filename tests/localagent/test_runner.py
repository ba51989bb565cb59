"""The runner and its watch over an accepted job, against an agent2 that does what each test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.draws import Draws
from lab.localagent.agent2_client import Agent2Client, open_session
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStore
from lab.localagent.counters import Counters
from lab.localagent.job import CancelSignal, assigned_job
from lab.localagent.outcome import CANCELLED, Outcome, failed
from lab.localagent.runner import Runner
from lab.localagent.streams import Page, StreamBook
from lab.localagent.uplink import Notes
from tests.localagent.doubles import (
    CONVERSATION,
    JOB,
    JOB_B,
    TENANT,
    WORKSPACE,
    RecordingUplink,
    ScriptedAgent2,
    assign,
    config,
    context,
)

SECRET = "sk-abcdefghijklmnop1234"


class Bench:
    """A runner between a recording uplink and a scripted agent2."""

    def __init__(self, agent2: ScriptedAgent2, tmp_path: Path) -> None:
        self.agent2 = agent2
        self.uplink = RecordingUplink()
        self.counters = Counters()
        self.cancel = CancelSignal()
        self.ctx = context()
        self.folder = tmp_path / "chats"
        self.store = ChatStore(self.folder)
        self.book = StreamBook(Draws(7, "agent", "cursors"))
        self.chats: Chats | None = Chats(self.ctx, self.store, self.book)
        self.config = config(tmp_path, agent2.url)
        self.session = open_session()
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        if self._runner is None:
            client = Agent2Client(self.session, self.config.agent2_url, lambda: "agent2-secret")
            notes = Notes(self.ctx, self.uplink, audit=True)
            self._runner = Runner(self.ctx, self.config, client, self.uplink, notes, self.counters, self.chats)
        return self._runner

    async def run(self, *inline: str, kind: str = "fix", job_id: str = JOB, **members: Any) -> Outcome:
        job = assigned_job(assign(kind, job_id, *inline, **members), WORKSPACE)
        return await self.runner.run(job, self.cancel)

    async def chat(self, *inline: str, **members: Any) -> Outcome:
        return await self.run(*(inline or ("Why?",)), kind="chat", **members)

    def stream(self, job_id: str = JOB) -> tuple[list[str], bool]:
        page = self.book.page(job_id)
        assert isinstance(page, Page)
        return [event.e for event in page.events], page.done

    def turns(self, conversation_id: str = JOB) -> list[tuple[str, str]]:
        stored = self.store.turns(conversation_id)
        return [] if stored is None else [(turn.role, turn.text) for turn in stored.turns]


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text in file.read_bytes()]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with ScriptedAgent2() as agent2:
        made = Bench(agent2, tmp_path)
        async with made.session:
            yield made


@pytest.mark.req("A2-008", "LA-016", "LA-018", "LA-019", "CHAT-068")
async def test_a_job_from_its_assignment_to_its_result(bench: Bench) -> None:
    bench.agent2.frame("job.event", {"state": "running", "phase": "coding", "iteration": 1, "filesChanged": 2})
    bench.agent2.frame("job.event", {"state": "waiting_approval"})
    bench.agent2.frame("job.event", {"state": "done", "terminal": True, "filesChanged": 99})
    bench.agent2.finish("pr_opened", prUrl="https://git.example/1", filesChangedCount=2)
    outcome = await bench.run(
        "one",
        "two",
        repoRef={"repoId": "r"},
        incidentRef={"id": "inc-1"},
        options={"depth": 3},
    )
    assert outcome == Outcome("pr_opened", members={"prUrl": "https://git.example/1", "filesChangedCount": 2})
    assert bench.agent2.called("POST") == [
        {
            "jobId": JOB,
            "tenantId": TENANT,
            "workspaceId": WORKSPACE,
            "kind": "fix",
            "requestText": "one\n\ntwo",
            "workspaceRoot": bench.config.workspaces[0].path,
            "repoRef": {"repoId": "r"},
            "llm": {"alias": "main"},
            "incidentId": "inc-1",
            "options": {"depth": 3},
        }
    ]
    assert [path.rsplit("/", 1)[1] for _, path, _ in bench.agent2.requests] == ["health", "jobs", "events"]
    assert bench.uplink.of("job.event") == [
        {"jobId": JOB, "state": "running", "phase": "context"},
        {"jobId": JOB, "state": "running", "phase": "coding", "iteration": 1, "filesChanged": 2},
        {"jobId": JOB, "state": "waiting_approval"},
    ]
    assert bench.counters == Counters(jobs=1, ok=1)
    assert bench.uplink.codes() == []


async def test_a_fix_needs_no_chat(bench: Bench) -> None:
    bench.agent2.health = {"status": "up"}
    bench.agent2.finish("no_change")
    assert (await bench.run()).outcome == "no_change"


async def test_the_first_result_stands_and_ends_the_wait(bench: Bench) -> None:
    bench.agent2.frame("job.result", {"outcome": "no_change"})
    bench.agent2.frame("job.result", {"outcome": "failed"})
    bench.agent2.frame("audit.event", {"code": "late"})
    assert (await bench.run()).outcome == "no_change"
    assert bench.uplink.codes() == ["late"]


async def test_a_defect_in_a_reader_is_not_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr("lab.localagent.watching.read_through", fail)
    with pytest.raises(KeyError):
        await bench.chat()
    assert bench.stream() == ([], True)


@pytest.mark.req("CHAT-001", "CHAT-018", "CHAT-029", "CHAT-055", "CHAT-056", "LA-016")
async def test_a_chat(bench: Bench) -> None:
    for line in ('{"type":"text","text":"Be"}', "", '{"type":"tool"}', '{"type":"text","text":"cause"}'):
        bench.agent2.line(line)
    bench.agent2.finish("no_change")
    outcome = await bench.chat("Why", "9001?")
    assert outcome == Outcome("no_change", members={"filesChangedCount": 0})
    assert bench.agent2.called("POST", "/jobs")[0]["kind"] == "chat"
    assert bench.stream() == (
        ['{"type":"text","text":"Be"}', '{"type":"tool"}', '{"type":"text","text":"cause"}'],
        True,
    )
    assert bench.turns() == [("user", "Why\n\n9001?"), ("assistant", "Because")]


@pytest.mark.req("CHAT-055")
async def test_the_options_name_the_conversation(bench: Bench) -> None:
    bench.agent2.finish("no_change")
    await bench.chat("q", options={"conversationId": CONVERSATION})
    assert bench.turns() == []
    assert bench.turns(CONVERSATION) == [("user", "q")]


@pytest.mark.req("CHAT-025", "CHAT-028", "SEC-005", "SEC-019")
async def test_content_stays_here_and_masked(bench: Bench) -> None:
    bench.agent2.line(f'{{"type":"answer","text":"canary {SECRET}"}}')
    bench.agent2.frame("job.event", {"state": "running", "phase": "canary text", "text": "canary"})
    bench.agent2.frame("audit.event", {"code": "used", "summary": "canary"})
    bench.agent2.finish("no_change", answer="canary")
    await bench.chat("canary")
    assert "canary" not in json.dumps(bench.uplink.sent)
    assert bench.stream()[0] == ['{"type":"answer","text":"canary [masked]"}']
    assert bench.turns()[1] == ("assistant", "canary [masked]")


@pytest.mark.req("CHAT-009", "CHAT-011")
async def test_the_files_of_a_chat(bench: Bench) -> None:
    for count in (2, 5, 3):
        bench.agent2.frame("job.event", {"state": "running", "filesChanged": count})
    bench.agent2.frame("job.event", {"terminal": True, "filesChanged": 99})
    bench.agent2.finish("no_change", filesChangedCount=4)
    assert (await bench.chat()).members == {"filesChangedCount": 5}


@pytest.mark.req("CHAT-006")
@pytest.mark.parametrize("outcome", ["no_change", "failed", "cancelled"])
async def test_the_three_ways_in_which_a_chat_ends(bench: Bench, outcome: str) -> None:
    bench.agent2.finish(outcome)
    assert (await bench.chat()).outcome == outcome
    assert bench.uplink.codes() == []


@pytest.mark.req("CHAT-006", "CHAT-007")
async def test_a_pull_request_of_a_chat(bench: Bench) -> None:
    bench.agent2.finish("pr_opened", prUrl="https://git.example/1")
    outcome = await bench.chat()
    assert outcome.payload(JOB)["prUrl"] == "https://git.example/1"
    assert bench.uplink.codes() == ["chat_unexpected_pr"]


@pytest.mark.req("CHAT-012", "CHAT-066")
@pytest.mark.parametrize(("text", "codes"), [("a" * 16385, ["chat_prompt_too_large"]), (" ", [])])
async def test_a_prompt_that_is_not_sent(bench: Bench, text: str, codes: list[str]) -> None:
    assert await bench.chat(text) == failed("unknown")
    assert bench.agent2.called("POST") == []
    assert bench.uplink.codes() == codes
    assert bench.stream() == ([], True)


@pytest.mark.req("CHAT-019")
async def test_the_stream_is_there_before_anything_else(bench: Bench) -> None:
    known: list[bool] = []
    bench.agent2.on_health = lambda: known.append(bench.book.knows(JOB) and bench.turns() == [("user", "Why?")])
    bench.agent2.finish("no_change")
    await bench.chat()
    assert known == [True]


@pytest.mark.req("CHAT-020")
async def test_a_store_that_cannot_begin(bench: Bench) -> None:
    (bench.folder / "jobs").rmdir()
    assert await bench.chat() == failed("infra")
    assert bench.uplink.codes() == ["chat_store_unavailable"]
    assert bench.agent2.requests == []
    assert bench.stream() == ([], True)


@pytest.mark.req("CHAT-066")
async def test_a_store_that_fails_later_does_not_cost_the_job(bench: Bench) -> None:
    def lose_folder() -> None:
        for path in (bench.folder / "jobs").iterdir():
            path.unlink()
        (bench.folder / "jobs").rmdir()
        bench.agent2.line("x")
        bench.agent2.finish("no_change")

    bench.agent2.on_post = lose_folder
    assert (await bench.chat()).outcome == "no_change"
    assert bench.stream() == ([], True)


@pytest.mark.req("CHAT-021")
async def test_a_chat_without_chats(bench: Bench) -> None:
    bench.chats = None
    assert await bench.chat() == failed("infra")
    assert bench.agent2.requests == []


@pytest.mark.req("CHAT-023", "CHAT-005")
async def test_an_agent2_that_lost_chat(bench: Bench) -> None:
    bench.agent2.health = {"status": "up", "kinds": ["fix"]}
    assert await bench.chat() == failed("infra")
    assert bench.uplink.codes() == ["chat_unsupported_by_agent2"]
    assert bench.runner.chat_vanished
    assert bench.agent2.called("POST") == []
    assert bench.stream() == ([], True)


@pytest.mark.req("LA-016", "A2-051", "LA-035")
async def test_an_agent2_that_is_down(bench: Bench) -> None:
    bench.agent2.health = {"status": "down"}
    assert await bench.run() == failed("infra")
    note = bench.uplink.of("audit.event")[0]
    assert (note["code"], note["mode"], note["errorCode"]) == ("agent2_unavailable", "attach", "unreachable")
    assert not bench.runner.chat_vanished


@pytest.mark.req("LA-016")
async def test_agent2_is_asked_before_the_text_is_judged(bench: Bench) -> None:
    bench.agent2.health = {"status": "down"}
    too_long = assigned_job(assign("chat", JOB, "x" * 16385), WORKSPACE)
    assert await bench.runner.run(too_long, bench.cancel) == failed("infra")


@pytest.mark.req("LA-016")
async def test_a_job_without_a_workspace(bench: Bench) -> None:
    job = assigned_job(assign(), "elsewhere")
    assert await bench.runner.run(job, bench.cancel) == failed("infra")
    assert bench.agent2.requests == []


@pytest.mark.req("A2-045", "A2-063")
@pytest.mark.parametrize(("status", "code"), [(403, "policy_denied"), (422, "unknown"), (409, "infra"), (500, "infra")])
async def test_a_job_that_agent2_refuses(bench: Bench, status: int, code: str) -> None:
    bench.agent2.post_status = status
    assert await bench.run() == failed(code)
    assert bench.uplink.sent == []
    assert bench.counters == Counters(jobs=1, failed=1, by_code={code: 1})


@pytest.mark.req("A2-038", "A2-039", "CHAT-029", "CHAT-040")
async def test_breaks_cost_and_double_nothing(bench: Bench) -> None:
    for number in range(6):
        bench.agent2.frame("job.event", {"state": "running", "iteration": number})
        bench.agent2.line(f"line {number}")
    bench.agent2.finish("no_change")
    bench.agent2.event_breaks += [0, 2, 2, 5]
    bench.agent2.line_breaks += [1, 0, 3, 6]
    assert (await bench.chat()).outcome == "no_change"
    assert [event.get("iteration") for event in bench.uplink.of("job.event")] == [None, 0, 1, 2, 3, 4, 5]
    assert bench.stream() == ([f"line {number}" for number in range(6)], True)
    assert bench.agent2.opened == {"events": 5, "stream": 5}
    assert bench.counters.stream_reconnects == 8


@pytest.mark.req("A2-043", "A2-051")
async def test_events_that_always_break(bench: Bench) -> None:
    bench.agent2.event_breaks += [0] * 20
    assert await bench.run() == failed("infra")
    assert bench.agent2.opened["events"] == 6


@pytest.mark.req("LA-023", "A2-051")
async def test_an_agent2_that_dies_during_a_job(bench: Bench) -> None:
    running = asyncio.create_task(bench.run())
    await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
    await bench.agent2.die()
    # Its time limit is an hour, so it has stopped waiting.
    assert await running == failed("infra")
    assert (bench.counters.stream_reconnects, bench.agent2.opened["events"]) == (5, 1)


@pytest.mark.req("SEC-021")
@pytest.mark.parametrize("length", [4096, 16384])
async def test_an_inline_input_of_any_length_is_not_stored(bench: Bench, tmp_path: Path, length: int) -> None:
    text = "canary" + "a" * (length - 6)
    bench.agent2.finish("no_change")
    assert (await bench.run(text)).outcome == "no_change"
    assert bench.agent2.called("POST")[0]["requestText"] == text
    assert files_with(tmp_path, b"canary") == []


@pytest.mark.req("CHAT-066")
@pytest.mark.parametrize("status", [404, 500])
async def test_a_content_stream_that_cannot_be_read(bench: Bench, status: int) -> None:
    bench.agent2.stream_status = status
    bench.agent2.finish("no_change")
    assert (await bench.chat()).outcome == "no_change"
    assert bench.stream() == ([], True)


@pytest.mark.req("CHAT-030")
async def test_a_content_stream_that_stays_open(bench: Bench) -> None:
    bench.agent2.stream_stays_open = True
    bench.agent2.line("a")
    bench.agent2.finish("no_change")
    assert (await bench.chat()).outcome == "no_change"
    assert bench.stream() == (["a"], True)


@pytest.mark.req("CHAT-030")
async def test_content_that_comes_after_the_result(bench: Bench) -> None:
    bench.config = replace(bench.config, stream_drain=3600.0)
    bench.agent2.stream_stays_open = True
    bench.agent2.frame("audit.event", {"code": "last"})
    bench.agent2.finish("no_change")
    task = asyncio.create_task(bench.chat())
    await bench.uplink.until("audit.event")
    for number in range(20):
        grown = asyncio.Event()
        stop = bench.book.watch(JOB, grown.set)
        bench.agent2.line(f"late {number}")
        await grown.wait()
        stop()
    bench.agent2.stream_stays_open = False
    bench.agent2.wake()
    assert (await task).outcome == "no_change"
    assert bench.stream() == ([f"late {number}" for number in range(20)], True)


@pytest.mark.req("LA-027")
@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (None, failed("infra")),
        ({"state": "cancelled"}, CANCELLED),
        ({"state": "failed", "errorCode": "policy_denied"}, failed("policy_denied")),
    ],
)
async def test_events_that_end_without_a_result(bench: Bench, event: dict[str, Any] | None, outcome: Outcome) -> None:
    if event is not None:
        bench.agent2.frame("job.event", event)
    bench.agent2.finish()
    assert await bench.run() == outcome


@pytest.mark.req("A2-041", "SEC-016", "TY-028")
async def test_foreign_frames_and_noise(bench: Bench) -> None:
    bench.agent2.frame("job.result", {"outcome": "pr_opened"}, tenantId="other")
    bench.agent2.frame("job.result", {"outcome": "pr_opened"}, jobId=JOB_B)
    bench.agent2.raw_frame('{"type":"job.event"}')
    bench.agent2.raw_frame("{no json")
    bench.agent2.frame("audit.event", {"code": "tool_used", "runId": "r-1", "at": "2026-01-01T00:00:00Z"})
    bench.agent2.finish("no_change")
    assert (await bench.run()).outcome == "no_change"
    assert bench.counters == Counters(
        jobs=1, ok=1, frames_dropped=1, tenant_violations=1, job_violations=1, audit_forwarded=1
    )
    assert bench.uplink.of("audit.event") == [
        {"code": "tool_used", "runId": "r-1", "at": "2026-01-01T00:00:00Z", "jobId": JOB}
    ]


@pytest.mark.req("LA-026")
async def test_audits_are_settled_before_the_outcome(bench: Bench) -> None:
    bench.agent2.frame("audit.event", {"code": "tool_used"})
    bench.agent2.finish("no_change")
    await bench.run()
    assert bench.uplink.settled_at == [len(bench.uplink.sent)] == [2]


@pytest.mark.req("LA-020", "TY-013", "CHAT-069", "CHAT-022")
async def test_a_cancel_that_agent2_obeys(bench: Bench) -> None:
    bench.agent2.line("a")
    bench.agent2.on_cancel = lambda: bench.agent2.finish("cancelled", filesChangedCount=3)
    task = asyncio.create_task(bench.chat())
    await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
    bench.cancel.give("policy")
    bench.cancel.give("user")
    assert await task == CANCELLED
    assert bench.agent2.called("POST", "/cancel") == [{"reason": "policy"}]
    assert bench.stream() == (["a"], True)
    assert bench.counters == Counters(jobs=1, cancelled=1)


@pytest.mark.req("LA-020", "LA-021")
async def test_a_cancel_that_agent2_ignores(bench: Bench) -> None:
    bench.config = replace(bench.config, stream_drain=3600.0)
    task = asyncio.create_task(bench.run())
    await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
    bench.cancel.give("user")
    assert await task == CANCELLED
    assert len(bench.agent2.called("POST", "/cancel")) == 1


@pytest.mark.req("LA-021")
async def test_agent2_has_a_while_to_end_a_cancelled_job(bench: Bench) -> None:
    bench.config = replace(bench.config, cancel_wait=3600.0)
    task = asyncio.create_task(bench.run())
    await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
    bench.cancel.give("user")
    await bench.agent2.until(lambda: bool(bench.agent2.called("POST", "/cancel")))
    for number in range(20):
        bench.agent2.frame("job.event", {"state": "running"})
        await bench.uplink.until("job.event", number + 2)
    bench.agent2.finish("no_change")
    assert (await task).outcome == "no_change"


@pytest.mark.req("LA-017", "CHAT-024")
@pytest.mark.parametrize("health", [{"status": "up", "kinds": ["chat"]}, {"status": "down"}, {"status": "up"}])
async def test_a_cancel_while_agent2_is_asked(bench: Bench, health: dict[str, Any]) -> None:
    bench.agent2.health = health
    bench.agent2.on_health = lambda: bench.cancel.give("user")
    assert await bench.chat() == CANCELLED
    assert bench.agent2.called("POST") == []
    assert bench.stream() == ([], True)


async def test_a_cancel_while_agent2_refuses_the_job(bench: Bench) -> None:
    bench.agent2.post_status = 500
    bench.agent2.on_post = lambda: bench.cancel.give("user")
    assert await bench.run() == CANCELLED


@pytest.mark.req("CHAT-022")
@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("no_change", "done"),
        ("pr_opened", "done"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("stopped", "failed"),
        ("stopped after a cancel", "cancelled"),
    ],
)
async def test_the_end_state_in_the_store(bench: Bench, ending: str, state: str) -> None:
    if not ending.startswith("stopped"):
        bench.agent2.finish(ending)
    else:
        bench.config = replace(bench.config, cancel_wait=3600.0)
    task = asyncio.create_task(bench.chat())
    if ending.startswith("stopped"):
        await bench.agent2.until(lambda: bench.agent2.opened["stream"] == 1)
        if "cancel" in ending:
            bench.cancel.give("user")
            await bench.agent2.until(lambda: bool(bench.agent2.called("POST", "/cancel")))
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    records = (bench.folder / "jobs" / f"{JOB}.jsonl").read_text().splitlines()
    assert json.loads(records[-1])["state"] == state


async def test_a_cancel_while_agent2_takes_the_job(bench: Bench) -> None:
    bench.agent2.on_post = lambda: bench.cancel.give("user")
    bench.agent2.on_cancel = lambda: bench.agent2.finish("cancelled")
    assert await bench.run() == CANCELLED
    assert len(bench.agent2.called("POST", "/cancel")) == 1


@pytest.mark.req("LA-022", "TY-017")
@pytest.mark.parametrize("obeys", [True, False])
async def test_a_job_that_takes_too_long(bench: Bench, obeys: bool) -> None:
    bench.config = replace(bench.config, job_timeout=0.05)
    if obeys:
        bench.agent2.on_cancel = lambda: bench.agent2.finish("cancelled")
    assert await bench.run() == failed("timeout")
    assert bench.agent2.called("POST", "/cancel") == [{"reason": "timeout"}]


@pytest.mark.req("LA-015", "CHAT-065")
async def test_a_second_job_at_the_runner(bench: Bench) -> None:
    first = asyncio.create_task(bench.run())
    await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
    assert await bench.chat(job_id=JOB_B) == failed("infra")
    assert bench.uplink.codes() == ["job_refused_busy"]
    assert bench.stream(JOB_B) == ([], True)
    bench.agent2.finish("no_change")
    assert (await first).outcome == "no_change"
    assert bench.counters.busy == 1


@pytest.mark.req("LA-028")
@pytest.mark.parametrize("ending", ["refused", "down", "result", "stopped"])
async def test_the_slot_is_free_after_any_ending(bench: Bench, ending: str) -> None:
    if ending == "refused":
        bench.agent2.post_status = 409
    if ending == "down":
        bench.agent2.health = {}
    if ending == "result":
        bench.agent2.finish("failed")
    task = asyncio.create_task(bench.chat())
    if ending == "stopped":
        await bench.agent2.until(lambda: bench.agent2.opened["stream"] == 1)
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert bench.stream() == ([], True)
    again = ScriptedAgent2()
    bench.agent2.post_status, bench.agent2.health = again.post_status, again.health
    bench.agent2.frames.clear()
    bench.agent2.finish("no_change")
    assert (await bench.run()).outcome == "no_change"
