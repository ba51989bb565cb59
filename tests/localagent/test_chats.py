from pathlib import Path

import pytest

from lab.draws import Draws
from lab.localagent import streams
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStore, ChatStoreError
from lab.localagent.streams import Page, StreamBook
from tests.localagent.doubles import CONVERSATION, JOB, JOB_B, WORKSPACE, context


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    return Chats(context(), ChatStore(tmp_path / "chats"), StreamBook(Draws(7, "agent", "cursors")))


def lines(chats: Chats, job_id: str = JOB) -> tuple[list[str], bool]:
    page = chats.book.page(job_id)
    assert isinstance(page, Page)
    return [event.e for event in page.events], page.done


@pytest.mark.req("CHAT-048")
def test_an_empty_line_takes_no_position(chats: Chats) -> None:
    chats.begin(JOB, WORKSPACE, "q", CONVERSATION)
    for line in ("a", "", "b"):
        chats.append(JOB, line)
    assert lines(chats) == (["a", "b"], False)


@pytest.mark.req("CHAT-020")
def test_a_chat_whose_store_failed_still_ends(chats: Chats, tmp_path: Path) -> None:
    (tmp_path / "chats" / "jobs").rmdir()
    with pytest.raises(ChatStoreError):
        chats.begin(JOB, WORKSPACE, "q", CONVERSATION)
    chats.close(JOB, "failed", "")
    assert lines(chats) == ([], True)


def test_a_store_that_fails_at_the_end_costs_the_turn_alone(chats: Chats, tmp_path: Path) -> None:
    chats.begin(JOB, WORKSPACE, "q", CONVERSATION)
    chats.append(JOB, "a")
    path = tmp_path / "chats" / "conversations" / f"{CONVERSATION}.jsonl"
    path.unlink()
    path.mkdir()
    chats.close(JOB, "done", "answer")
    assert lines(chats) == (["a"], True)


def test_a_full_record_grows_neither_in_memory_nor_on_disk(
    chats: Chats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_RECORD_CHARS", 5)
    chats.begin(JOB, WORKSPACE, "q", CONVERSATION)
    for line in ("abc", "def", "ghi"):
        chats.append(JOB, line)
    assert lines(chats) == (["abc", '{"type":"truncated"}'], False)
    assert "ghi" not in (tmp_path / "chats" / "jobs" / f"{JOB}.jsonl").read_text()


def test_a_stored_stream_comes_back_closed(chats: Chats, tmp_path: Path) -> None:
    chats.begin(JOB, WORKSPACE, "q", CONVERSATION)
    chats.append(JOB, "a")
    again = Chats(context(), ChatStore(tmp_path / "chats"), StreamBook(Draws(8, "agent", "cursors")))
    again.recall(JOB)
    again.recall(JOB_B)
    assert lines(again) == (["a"], True)
    assert not again.book.knows(JOB_B)
    chats.recall(JOB)
    assert lines(chats) == (["a"], False)
