"""Chats on this machine's disk: one append-only file of turns a conversation, one of lines a job (CHAT-061).

Everything is masked before it is written. A torn last line, left by a crash, is passed over.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import EnvironmentFault
from lab.localagent.conversation import Turn
from lab.localagent.masking import PATTERNS, mask

MAX_LINE_CHARS = 16384
# CHAT-048: what stands in place of a line that a page cannot carry.
TRUNCATED_LINE = '{"type":"truncated"}'
MAX_CONVERSATIONS = 1000
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ChatStoreError(EnvironmentFault):
    """The chat store can't be read or written. Its message holds no content."""


@dataclass(frozen=True)
class StoredChat:
    """What is on disk of one chat job."""

    job_id: str
    workspace_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class StoredConversation:
    """What is on disk of one conversation."""

    workspace_id: str
    turns: tuple[Turn, ...]


def recorded_line(line: str, patterns: Sequence[re.Pattern[str]] = PATTERNS) -> str | None:
    """A line of agent2 as it is recorded: masked, marked if it is too long, None if it is empty."""
    # CHAT-027: a line without secrets stays exactly as agent2 wrote it.
    masked = mask(line, patterns)
    if len(masked) > MAX_LINE_CHARS:
        return TRUNCATED_LINE
    return masked or None


class ChatStore:
    """The chats under `folder` (created with mode 0700); raises `ChatStoreError` when it can't be used."""

    def __init__(self, folder: Path, cap: int = MAX_CONVERSATIONS, patterns: Sequence[re.Pattern[str]] = PATTERNS):
        self._jobs = folder / "jobs"
        self._conversations = folder / "conversations"
        self._cap = cap
        self._patterns = patterns
        self._open: dict[str, tuple[str, str]] = {}
        with _store_errors():
            for place in (folder, self._jobs, self._conversations):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                place.chmod(0o700)

    def begin(self, job_id: str, workspace_id: str, user_text: str, conversation_id: str, ts: str) -> None:
        """Open a chat and keep the user's turn; on `ChatStoreError` nothing was opened."""
        earlier = self.turns(conversation_id)
        # CH-036: a conversation stays with the workspace that began it.
        if earlier is not None and earlier.workspace_id != workspace_id:
            raise ChatStoreError("the conversation belongs to another workspace")
        with _store_errors():
            self._make_room(self._conversations, conversation_id)
            self._make_room(self._jobs, job_id)
            head = {"jobId": job_id, "workspaceId": workspace_id, "conversationId": conversation_id, "ts": ts}
            _append(_file(self._jobs, job_id), head)
            self._turn(conversation_id, workspace_id, Turn("user", ts, mask(user_text, self._patterns)))
        self._open[job_id] = (conversation_id, workspace_id)

    def append(self, job_id: str, line: str) -> str | None:
        """Keep one line of an open chat; what was recorded, None for a line that is not."""
        recorded = recorded_line(line, self._patterns)
        if recorded is not None:
            with _store_errors():
                _append(_file(self._jobs, job_id), {"line": recorded})
        return recorded

    def close(self, job_id: str, state: str, assistant_text: str, ts: str) -> None:
        """End an open chat as done, failed or cancelled; a text becomes the assistant's turn."""
        conversation_id, workspace_id = self._open.pop(job_id)
        with _store_errors():
            if assistant_text:
                self._turn(conversation_id, workspace_id, Turn("assistant", ts, mask(assistant_text, self._patterns)))
            _append(_file(self._jobs, job_id), {"state": state, "ts": ts})

    def turns(self, conversation_id: str) -> StoredConversation | None:
        """The turns of a conversation in order, None when there is no such conversation (CHAT-054)."""
        turns: list[Turn] = []
        workspace_id: str | None = None
        for record in self._records(self._conversations, conversation_id):
            role, ts, text = record.get("role"), record.get("ts"), record.get("text")
            if role in ("user", "assistant") and isinstance(ts, str) and isinstance(text, str):
                workspace_id = workspace_id or str(record.get("workspaceId", ""))
                turns.append(Turn(role, ts, text))
        return None if workspace_id is None else StoredConversation(workspace_id, tuple(turns))

    def recorded(self, job_id: str) -> StoredChat | None:
        """The lines of a job, None when it was no chat."""
        records = list(self._records(self._jobs, job_id))
        if not records:
            return None
        lines = tuple(line for record in records if isinstance(line := record.get("line"), str))
        return StoredChat(job_id, str(records[0].get("workspaceId", "")), lines)

    def _turn(self, conversation_id: str, workspace_id: str, turn: Turn) -> None:
        record = {"workspaceId": workspace_id, "role": turn.role, "ts": turn.ts, "text": turn.text}
        _append(_file(self._conversations, conversation_id), record)

    def _records(self, place: Path, name: str) -> Iterator[Mapping[str, object]]:
        if not _UUID.fullmatch(name):
            return
        with _store_errors():
            try:
                raw = _file(place, name).read_bytes()
            except FileNotFoundError:
                return
        yield from _parsed(raw)

    def _make_room(self, place: Path, name: str) -> None:
        """Forget the oldest files beyond the cap, but none of a chat that is open."""
        busy = {*self._open, *(conversation for conversation, _ in self._open.values()), name}
        files = list(place.glob("*.jsonl"))
        over = len(files) + (name not in {file.stem for file in files}) - self._cap
        if over <= 0:
            return
        old = sorted((path for path in files if path.stem not in busy), key=lambda path: (_last_ts(path), path.name))
        for path in old[:over]:
            path.unlink()


class _store_errors:  # noqa: N801 - reads as a word at its uses
    """Turns the system's errors into `ChatStoreError`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise ChatStoreError(f"the chat store can't be used: {error.strerror}. Check the state folder.") from error


def _file(place: Path, name: str) -> Path:
    # Ids come from frames: nothing but a UUID becomes a file's name.
    if not _UUID.fullmatch(name):
        raise ChatStoreError("a chat needs a UUID as its job's and its conversation's id")
    return place / f"{name}.jsonl"


def _last_ts(path: Path) -> str:
    """The time that its last record bears: the file system's own knows nothing of the run's clock."""
    latest = ""
    for record in _parsed(path.read_bytes()):
        ts = record.get("ts")
        if isinstance(ts, str):
            latest = ts
    return latest


def _parsed(raw: bytes) -> Iterator[Mapping[str, object]]:
    for line in raw.split(b"\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _append(path: Path, record: Mapping[str, object]) -> None:
    line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        # A crash may have left a line without its end; the next one must not grow onto it.
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        file.write(b"\n" + line if torn else line)
