"""Content requests: which kinds this agent serves, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.localagent.answer import MAX_CONTENT_BYTES, Answer, found, refused
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStoreError
from lab.localagent.conversation import session_body
from lab.localagent.filelist import FileLists
from lab.localagent.longpoll import Polls, answer_job_stream

_CHAT_KINDS = ("job.stream", "chat.session")


@dataclass(frozen=True)
class ActiveChats:
    """What the queue knows of chats that are not over: whether a job is one, and its workspace."""

    is_active: Callable[[str], bool]
    workspace_of: Callable[[str], str | None]


class Content:
    """The handlers of `content.request`. Without chats only `file.list` is served."""

    def __init__(self, chats: Chats | None, active: ActiveChats, files: FileLists, hold: float, polls: int) -> None:
        self._chats = chats
        self._active = active
        self._files = files
        self._hold = hold
        self._polls = Polls(polls)

    def serves(self, kind: str) -> bool:
        """CH-035: a kind without a handler is rejected before anything else is looked at."""
        return kind == "file.list" or (self._chats is not None and kind in _CHAT_KINDS)

    async def answer_content(self, kind: str, ref: str, max_bytes: int | None, workspace_id: str) -> Answer:
        """The answer to a request of a kind that `serves` accepts; a job.stream may take the hold."""
        bound = MAX_CONTENT_BYTES if max_bytes is None else min(max_bytes, MAX_CONTENT_BYTES)
        if kind == "file.list" or self._chats is None:
            return self._files.answer(ref, bound, workspace_id)
        try:
            if kind == "job.stream":
                return await self._job_stream(self._chats, ref, bound, workspace_id)
            return _chat_session(self._chats, ref, bound, workspace_id)
        except ChatStoreError:
            # CH-011: a handler that fails.
            return refused("error")

    async def _job_stream(self, chats: Chats, ref: str, max_bytes: int, workspace_id: str) -> Answer:
        place = chats.book.place(ref)
        # CHAT-043: an unknown cursor.
        if place is None:
            return refused("not_found")
        job_id = place[0]
        if not self._active.is_active(job_id):
            chats.recall(job_id)
        owner = chats.book.workspace_of(job_id) or self._active.workspace_of(job_id)
        # CH-036: the job belongs to another workspace.
        if owner is not None and owner != workspace_id:
            return refused("forbidden")
        return await answer_job_stream(
            chats.book,
            ref,
            max_bytes,
            hold=self._hold,
            is_active_chat=self._active.is_active,
            polls=self._polls,
        )


def _chat_session(chats: Chats, ref: str, max_bytes: int, workspace_id: str) -> Answer:
    conversation = chats.conversation(ref)
    # CHAT-057: an unknown conversation.
    if conversation is None:
        return refused("not_found")
    if conversation.workspace_id != workspace_id:
        return refused("forbidden")
    body = session_body(conversation.turns, max_bytes)
    return refused("error", "payload_too_large") if body is None else found(body)
