import json
from pathlib import Path
from typing import Any

import pytest

from lab.draws import Draws
from lab.localagent.answer import Answer, refused
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStore
from lab.localagent.config import Workspace
from lab.localagent.content import ActiveChats, Content
from lab.localagent.filelist import FileLists
from lab.localagent.streams import StreamBook
from tests.localagent.doubles import CONVERSATION, EPOCH_MS, JOB, JOB_B, WORKSPACE, context

SECRET = "sk-abcdefghijklmnop1234"


class Bench:
    """An agent's content over a store in `folder`; a second one over the same folder is the agent started again."""

    def __init__(self, folder: Path) -> None:
        book = StreamBook(Draws(7, "agent", str(EPOCH_MS)))
        self.chats = Chats(context(), ChatStore(folder / "chats"), book)
        self.active: dict[str, str] = {}
        self.workspace = Workspace(WORKSPACE, str(folder))
        files = FileLists([self.workspace], Draws(7, "agent", "file-refs"))
        active = ActiveChats(self.active.__contains__, self.active.get)
        self.content = Content(self.chats, active, files, hold=0.02, polls=16)
        self.without = Content(None, active, files, hold=0.02, polls=16)

    def chat(self, job_id: str = JOB, *lines: str) -> None:
        self.chats.begin(job_id, WORKSPACE, "Why?", CONVERSATION)
        for line in lines:
            self.chats.append(job_id, line)
        self.chats.close(job_id, "done", f"said {SECRET}")

    async def ask(self, kind: str, ref: str, workspace_id: str = WORKSPACE, max_bytes: int | None = None) -> Answer:
        return await self.content.answer_content(kind, ref, max_bytes, workspace_id)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def body(answer: Answer) -> dict[str, Any]:
    assert (answer.status, answer.content_type, answer.error_code) == ("ok", "application/json", None)
    decoded: dict[str, Any] = json.loads(answer.body)
    return decoded


@pytest.mark.req("CH-035")
def test_kinds_with_a_handler(bench: Bench) -> None:
    kinds = ("job.stream", "chat.session", "file.list", "file.read", "diff", "")
    assert [bench.content.serves(kind) for kind in kinds] == [True, True, True, False, False, False]
    assert [bench.without.serves(kind) for kind in kinds] == [False, False, True, False, False, False]


@pytest.mark.req("CHAT-050", "CHAT-060", "SEC-017")
async def test_a_stream_and_its_conversation(bench: Bench) -> None:
    bench.chat(JOB, "a", f"key {SECRET}")
    page = body(await bench.ask("job.stream", JOB))
    assert [event["e"] for event in page["events"]] == ["a", "key [masked]"]
    session = body(await bench.ask("chat.session", CONVERSATION))
    assert [(turn["role"], turn["text"]) for turn in session["turns"]] == [
        ("user", "Why?"),
        ("assistant", "said [masked]"),
    ]
    assert session["turns"][0]["ts"] == "2026-01-02T03:04:05.000Z"


@pytest.mark.req("CHAT-046", "CHAT-054")
async def test_after_a_restart_the_lines_are_there_and_cursors_are_not(bench: Bench, tmp_path: Path) -> None:
    bench.chat(JOB, "a")
    cursor = body(await bench.ask("job.stream", JOB))["nextRef"]
    again = Bench(tmp_path)
    assert await again.ask("job.stream", cursor) == refused("not_found")
    page = body(await again.ask("job.stream", JOB))
    assert ([event["e"] for event in page["events"]], page["done"]) == (["a"], True)
    assert len(body(await again.ask("chat.session", CONVERSATION))["turns"]) == 2


@pytest.mark.req("CHAT-043", "CHAT-045", "CHAT-057", "CH-010", "CH-012")
@pytest.mark.parametrize(("kind", "ref"), [("job.stream", JOB), ("job.stream", "x" * 43), ("chat.session", JOB)])
async def test_unknown_things_are_not_found(bench: Bench, kind: str, ref: str) -> None:
    assert await bench.ask(kind, ref) == Answer("not_found", None, b"", "internal")


@pytest.mark.req("CH-036")
async def test_things_of_another_workspace_are_forbidden(bench: Bench) -> None:
    bench.chat(JOB, "a")
    cursor = body(await bench.ask("job.stream", JOB))["nextRef"]
    bench.active[JOB_B] = WORKSPACE
    root = bench.workspace.root_ref
    for kind, ref in (
        ("job.stream", JOB),
        ("job.stream", cursor),
        ("job.stream", JOB_B),
        ("chat.session", CONVERSATION),
        ("file.list", root),
    ):
        assert await bench.ask(kind, ref, "ws-2") == refused("forbidden")


@pytest.mark.req("CHAT-044")
async def test_a_chat_that_has_not_begun_is_held(bench: Bench) -> None:
    bench.active[JOB] = WORKSPACE
    page = body(await bench.ask("job.stream", JOB))
    assert (page["events"], page["done"]) == ([], False)


async def test_a_request_bounds_its_body(bench: Bench) -> None:
    bench.chat(JOB, "a" * 100, "b" * 100)
    answer = await bench.ask("job.stream", JOB, max_bytes=220)
    assert len(answer.body) <= 220
    assert len(body(answer)["events"]) == 1
    assert len((await bench.ask("chat.session", CONVERSATION, max_bytes=120)).body) <= 120
    for kind, ref in (("job.stream", JOB), ("chat.session", CONVERSATION), ("file.list", bench.workspace.root_ref)):
        assert await bench.ask(kind, ref, max_bytes=5) == refused("error", "payload_too_large")


@pytest.mark.req("CH-011")
async def test_a_handler_that_fails(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "chats" / "conversations" / f"{CONVERSATION}.jsonl").mkdir()
    assert await bench.ask("chat.session", CONVERSATION) == refused("error", "internal")
