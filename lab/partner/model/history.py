"""The conversation's history: newest first, in pages (HIS-*)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping

from lab.clock import timestamp
from lab.journal.events import digest
from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.attachments import attachments_by_id
from lab.partner.model.authority import Caller
from lab.partner.model.cursors import Cursors, Position
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import invalid
from lab.partner.model.runs import Run, events_after, find_run
from lab.partner.model.shape import actor_query_untrusted
from lab.partner.model.state import State
from lab.partner.model.turn_view import TurnView, view_of
from lab.partner.model.words import HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MOST

_LIMIT = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)
_EVERY_EVENT = -1
_CURSOR_KEY = "cursor_key"
_FIRST = Position((1 << 63) - 1, (1 << 63) - 1)


def get_history(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """GET messages: {items, nextCursor} (HIS-003)."""
    limit = _limit_untrusted(request.parameter("limit"))
    cursor = request.parameter("cursor")
    actor_query_untrusted(request)
    before = _FIRST
    if cursor is not None:
        # HIS-028: the cursor is of this conversation and from here, before anything is looked up
        position = cursors_of(parts).read_untrusted(cursor, request.path["conversationId"])
        if position is None:
            raise invalid("cursor")
        before = position
    _, conversation = parts.own_conversation(caller, request)
    rows = parts.state.rows(
        "SELECT * FROM items WHERE conversation_id = ? AND (created_ms, position) < (?, ?) "
        "ORDER BY created_ms DESC, position DESC LIMIT ?",
        conversation.conversation_id,
        before.created_ms,
        before.number,
        limit + 1,
    )
    page = rows[:limit]
    following = None
    if len(rows) > limit:
        # HIS-026, HIS-029: after the last item that was shown; what is new lies before it
        last = Position(page[-1]["created_ms"], page[-1]["position"])
        following = cursors_of(parts).write(conversation.conversation_id, last)
    items = [_item(parts, row) for row in page]
    facts = {"items": [_facts(item) for item in items], "last": following is None}
    data = {"items": items, "nextCursor": following}
    return success(200, data, conversation_id=conversation.conversation_id, facts=facts)


def cursors_of(parts: Parts) -> Cursors:
    """The cursors of this instance; their key lives as long as its state."""
    key = parts.state.meta(_CURSOR_KEY)
    if key is None:
        key = parts.ctx.secret_draws(parts.name, "history cursors").bytes(32).hex()
        parts.state.set_meta(_CURSOR_KEY, key)
    return Cursors(bytes.fromhex(key))


def add_user_item(parts: Parts, run: Run) -> None:
    """The message itself, visible from acceptance on (HIS-032)."""
    _add(parts, run, "user", run.message, run.attachment_ids)


def ensure_answer_item(parts: Parts, run: Run) -> None:
    """The answer's item, which appears with the turn's first text or tool (HIS-032)."""
    if parts.state.row("SELECT 1 FROM items WHERE run_id = ? AND role = 'assistant'", run.run_id) is None:
        _add(parts, run, "assistant", "", ())


def keep_answer(state: State, run_id: str) -> None:
    """Write down the answer of a turn at its end."""
    view = turn_view(state, run_id)
    state.run(
        "UPDATE items SET text = ?, parts = ? WHERE run_id = ? AND role = 'assistant'",
        view.text,
        None if view.parts is None else json.dumps(view.parts),
        run_id,
    )


def add_legacy_item(parts: Parts, conversation_id: str, turn_id: str, role: str, text: str, created_ms: int) -> None:
    """A message from before there was a journal: it has no parts and no run that made it (HIS-021, HIS-038)."""
    parts.state.run(
        "INSERT INTO items (item_id, conversation_id, turn_id, role, text, created_ms) VALUES (?, ?, ?, ?, ?, ?)",
        parts.ids.uuid(),
        conversation_id,
        turn_id,
        role,
        text,
        created_ms,
    )


def turn_view(state: State, run_id: str) -> TurnView:
    """What the run has journaled up to now."""
    return view_of(events_after(state, run_id, 0, _EVERY_EVENT))


def _add(parts: Parts, run: Run, role: str, text: str, files: tuple[str, ...]) -> None:
    # HIS-030: an answer is never older than its question, though a clock were set back in between
    parts.state.run(
        "INSERT INTO items (item_id, conversation_id, turn_id, run_id, role, text, attachment_ids, created_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        parts.ids.uuid(),
        run.conversation_id,
        run.turn_id,
        run.run_id,
        role,
        text,
        json.dumps(list(files)),
        max(run.created_ms, parts.now_ms()),
    )


def _item(parts: Parts, row: sqlite3.Row) -> dict[str, object]:
    text, shown = row["text"], None if row["parts"] is None else json.loads(row["parts"])
    if row["role"] == "assistant" and row["run_id"] is not None:
        run = find_run(parts.state, row["run_id"])
        if run is not None and not run.over:
            # While the turn goes on, its journal is what there is (HIS-022).
            view = turn_view(parts.state, run.run_id)
            text, shown = view.text, view.parts
    item: dict[str, object] = {
        "id": row["item_id"],
        "turnId": row["turn_id"],
        "role": row["role"],
        "text": text,
        "createdAt": timestamp(row["created_ms"]),
        "attachments": attachments_by_id(parts.state, json.loads(row["attachment_ids"])),
    }
    if shown is not None:
        item["parts"] = shown
    return item


def _facts(item: Mapping[str, object]) -> dict[str, object]:
    return {"id": item["id"], "turnId": item["turnId"], "role": item["role"], "text": digest("text", str(item["text"]))}


def _limit_untrusted(text: str | None) -> int:
    if text is None:
        return HISTORY_LIMIT_DEFAULT
    if not _LIMIT.fullmatch(text) or int(text) > HISTORY_LIMIT_MOST:
        raise invalid("limit")
    return int(text)
