import stat
from pathlib import Path

import pytest

from lab.localagent.chatstore import MAX_LINE_CHARS, TRUNCATED_LINE, ChatStore, ChatStoreError, recorded_line
from tests.localagent.doubles import CONVERSATION, JOB, JOB_B, TS, WORKSPACE

SECRET = "sk-abcdefghijklmnop1234"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "chats"


def texts(store: ChatStore, conversation_id: str) -> list[tuple[str, str]]:
    stored = store.turns(conversation_id)
    return [] if stored is None else [(turn.role, turn.text) for turn in stored.turns]


@pytest.mark.req("CHAT-054")
def test_a_conversation_survives_a_restart(folder: Path) -> None:
    store = ChatStore(folder)
    for job_id, question in ((JOB, "one"), (JOB_B, "two")):
        store.begin(job_id, WORKSPACE, question, CONVERSATION, TS)
        store.append(job_id, f"line of {question}")
        store.close(job_id, "done", f"answer {question}", TS)
    again = ChatStore(folder)
    assert texts(again, CONVERSATION) == [
        ("user", "one"),
        ("assistant", "answer one"),
        ("user", "two"),
        ("assistant", "answer two"),
    ]
    stored = again.recorded(JOB)
    assert stored is not None
    assert (stored.workspace_id, stored.lines) == (WORKSPACE, ("line of one",))
    assert again.recorded(CONVERSATION) is None
    assert again.turns(JOB) is None


@pytest.mark.req("CHAT-025", "CHAT-026", "CHAT-060")
def test_nothing_unmasked_reaches_the_disk(folder: Path) -> None:
    store = ChatStore(folder)
    store.begin(JOB, WORKSPACE, f"ask {SECRET}", CONVERSATION, TS)
    assert store.append(JOB, f"line {SECRET}") == "line [masked]"
    store.close(JOB, "done", f"said {SECRET}", TS)
    written = "".join(path.read_text() for path in folder.rglob("*.jsonl"))
    assert written.count("[masked]") == 3
    assert SECRET not in written


@pytest.mark.req("CHAT-061")
def test_modes(folder: Path) -> None:
    (folder / "jobs").mkdir(parents=True, mode=0o755)
    store = ChatStore(folder)
    store.begin(JOB, WORKSPACE, "q", CONVERSATION, TS)
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.req("CHAT-061")
def test_the_oldest_closed_chats_make_room(folder: Path) -> None:
    store = ChatStore(folder, cap=2)
    ids = [f"{number:08}-0000-0000-0000-000000000000" for number in range(4)]
    for job_id in ids:
        store.begin(job_id, WORKSPACE, "q", job_id, TS)
        if job_id != ids[0]:
            store.close(job_id, "done", "", TS)
    assert store.turns(ids[0]) is not None
    assert store.turns(ids[3]) is not None
    assert len(list((folder / "conversations").iterdir())) == 2
    assert len(list((folder / "jobs").iterdir())) == 2


@pytest.mark.req("CHAT-048", "CHAT-027")
@pytest.mark.parametrize(
    ("line", "recorded"),
    [
        ("", None),
        ("x", "x"),
        ("é" * MAX_LINE_CHARS, "é" * MAX_LINE_CHARS),
        ("x" * (MAX_LINE_CHARS + 1), TRUNCATED_LINE),
        ("x" * (MAX_LINE_CHARS - 10) + " password=1", TRUNCATED_LINE),
    ],
)
def test_recorded_lines(line: str, recorded: str | None) -> None:
    assert recorded_line(line) == recorded


def test_a_torn_last_line_costs_only_itself(folder: Path) -> None:
    store = ChatStore(folder)
    store.begin(JOB, WORKSPACE, "q", CONVERSATION, TS)
    path = folder / "conversations" / f"{CONVERSATION}.jsonl"
    path.write_bytes(path.read_bytes() + b'{"role":"user","te')
    again = ChatStore(folder)
    again.begin(JOB_B, WORKSPACE, "after", CONVERSATION, TS)
    assert texts(again, CONVERSATION) == [("user", "q"), ("user", "after")]


@pytest.mark.req("CHAT-020")
def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ChatStoreError, match="chat store"):
        ChatStore(tmp_path / "file" / "chats")
    store = ChatStore(tmp_path / "chats")
    (tmp_path / "chats" / "jobs").rmdir()
    with pytest.raises(ChatStoreError):
        store.begin(JOB, WORKSPACE, "q", CONVERSATION, TS)


@pytest.mark.parametrize("name", ["../../x", "", "x" * 36, JOB.upper() + "A"])
def test_only_a_uuid_becomes_a_file(folder: Path, name: str) -> None:
    store = ChatStore(folder)
    with pytest.raises(ChatStoreError):
        store.begin(JOB, WORKSPACE, "q", name, TS)
    with pytest.raises(ChatStoreError):
        store.begin(name, WORKSPACE, "q", CONVERSATION, TS)
    assert store.turns(name) is None
    assert store.recorded(name) is None


@pytest.mark.req("CH-036")
def test_a_conversation_stays_with_its_workspace(folder: Path) -> None:
    store = ChatStore(folder)
    store.begin(JOB, WORKSPACE, "q", CONVERSATION, TS)
    with pytest.raises(ChatStoreError):
        store.begin(JOB_B, "ws-2", "q", CONVERSATION, TS)
    assert texts(store, CONVERSATION) == [("user", "q")]
