"""The one place that a running chat is written to: the store on disk first, then the stream in memory."""

from __future__ import annotations

from lab.clock import timestamp
from lab.context import RunContext
from lab.localagent.chatstore import ChatStore, ChatStoreError, StoredConversation
from lab.localagent.streams import StreamBook


class Chats:
    """Chats of one agent, recorded and readable."""

    def __init__(self, ctx: RunContext, store: ChatStore, book: StreamBook) -> None:
        self._ctx = ctx
        self._store = store
        self._stored: set[str] = set()
        self.book = book

    def begin(self, job_id: str, workspace_id: str, user_text: str, conversation_id: str) -> None:
        """Open a chat. On `ChatStoreError` its stream is open in memory all the same, and `close` still ends it."""
        # CHAT-019: from here on job.stream finds the job.
        self.book.open(job_id, workspace_id)
        self._store.begin(job_id, workspace_id, user_text, conversation_id, self._now())
        self._stored.add(job_id)

    def append(self, job_id: str, line: str) -> None:
        """A line of agent2, masked and kept; a full disk raises `ChatStoreError`."""
        if self.book.is_full(job_id):
            return
        recorded = self._store.append(job_id, line)
        if recorded is not None:
            self.book.append(job_id, recorded)

    def close(self, job_id: str, state: str, assistant_text: str) -> None:
        """End a chat; a store that fails at the very end costs the turn, not the job."""
        try:
            if job_id in self._stored:
                self._stored.discard(job_id)
                self._store.close(job_id, state, assistant_text, self._now())
        except ChatStoreError:
            # CHAT-066: what happens to the record does not change the job's result.
            pass
        finally:
            self.book.close(job_id)

    def abandon(self, job_id: str, workspace_id: str) -> None:
        """A chat that was cancelled before it ran: a closed stream without events."""
        self.book.open(job_id, workspace_id, closed=True)

    def recall(self, job_id: str) -> None:
        """Put a stored stream back into memory, if there is one: after a restart the lines are still there."""
        if self.book.knows(job_id):
            return
        stored = self._store.recorded(job_id)
        if stored is not None:
            self.book.open(job_id, stored.workspace_id, stored.lines, closed=True)

    def conversation(self, conversation_id: str) -> StoredConversation | None:
        """The stored turns of a conversation."""
        return self._store.turns(conversation_id)

    def _now(self) -> str:
        return timestamp(self._ctx.wall_ms())
