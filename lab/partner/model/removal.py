"""Removing a thread, an agent or a team: contents are erased, ownership stays known (PA-026, PA-027)."""

from __future__ import annotations

from typing import Final

from lab.partner.model.state import State

THREAD: Final = "thread"
AGENT: Final = "agent"
TEAM: Final = "team"
KINDS: Final = (THREAD, AGENT, TEAM)

_IN_KIND: Final = {
    THREAD: "SELECT * FROM conversations WHERE conversation_id = ? AND removed = 0",
    AGENT: "SELECT * FROM conversations WHERE agent_id = ? AND removed = 0",
    TEAM: "SELECT * FROM conversations WHERE team_id = ? AND removed = 0",
}
_ERASED: Final = (
    "DELETE FROM events WHERE run_id IN (SELECT run_id FROM runs WHERE conversation_id = ?)",
    "DELETE FROM runs WHERE conversation_id = ?",
    "DELETE FROM items WHERE conversation_id = ?",
    "DELETE FROM attachments WHERE conversation_id = ?",
    "DELETE FROM bindings WHERE conversation_id = ?",
    # PA-027: the hashes stay, so an old key opens nothing new
    "UPDATE receipts SET answer = NULL WHERE conversation_id = ?",
    "UPDATE conversations SET removed = 1 WHERE conversation_id = ?",
)


def remove(state: State, kind: str, id_: str, now_ms: int) -> bool:
    """Remove one thing of `KINDS`, with all conversations in it; False when it is not there (any more)."""
    with state.transaction():
        if not _take_out(state, kind, id_):
            return False
        for row in state.rows(_IN_KIND[kind], id_):
            _bury(state, THREAD, row["conversation_id"], row["actor_id"], row["team_id"], now_ms)
            for statement in _ERASED:
                state.run(statement, row["conversation_id"])
        if kind != THREAD:
            _bury(state, kind, id_, None, _team_of(state, kind, id_), now_ms)
    state.forget_erased()
    return True


def _take_out(state: State, kind: str, id_: str) -> bool:
    if kind == THREAD:
        return state.row(_IN_KIND[THREAD], id_) is not None
    if kind == AGENT:
        return state.run("UPDATE agents SET removed = 1 WHERE agent_id = ? AND removed = 0", id_) > 0
    state.run("UPDATE agents SET removed = 1 WHERE team_id = ?", id_)
    return state.run("UPDATE teams SET removed = 1 WHERE team_id = ? AND removed = 0", id_) > 0


def _team_of(state: State, kind: str, id_: str) -> str | None:
    if kind == TEAM:
        return id_
    row = state.row("SELECT team_id FROM agents WHERE agent_id = ?", id_)
    return None if row is None else str(row["team_id"])


def _bury(state: State, kind: str, id_: str, actor_id: str | None, team_id: str | None, now_ms: int) -> None:
    state.run("INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?, ?, ?)", kind, id_, actor_id, team_id, now_ms)
