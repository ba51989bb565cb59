"""Turns from before journals and measurements, laid into the state by the lab (HIS-038)."""

from __future__ import annotations

from lab.clock import timestamp
from lab.partner.model.authority import Conversation
from lab.partner.model.keyring import CHAT_ROLE
from lab.partner.model.parts import Parts
from lab.partner.model.sse import compact
from lab.partner.model.words import RunStatus


def seed_history(parts: Parts, conversation: Conversation, turns: int) -> list[str]:
    """Completed turns without a journal, timings or usage (HIS-021, TM-005, US-016); their run ids, oldest first.

    Each has its run, its two items and the events that a replay of it needs.
    """
    return [_seed_turn(parts, conversation, number) for number in range(1, turns + 1)]


def _seed_turn(parts: Parts, conversation: Conversation, number: int) -> str:
    run_id, turn_id, now = parts.ids.uuid(), parts.ids.uuid(), parts.now_ms()
    question, answer = f"legacy question {number}", f"legacy answer {number}"
    parts.state.run(
        "INSERT INTO runs (run_id, conversation_id, turn_id, status, key_role, namespace, actor_id, team_id, agent_id, "
        "subject_version, message, claimed, created_ms, claimed_ms, ended_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 1, ?, ?, ?)",
        run_id,
        conversation.conversation_id,
        turn_id,
        RunStatus.COMPLETED,
        CHAT_ROLE,
        parts.settings.namespace,
        conversation.actor_id,
        conversation.team_id,
        conversation.agent_id,
        question,
        now,
        now,
        now,
    )
    for role, text in (("user", question), ("assistant", answer)):
        parts.state.run(
            "INSERT INTO items (item_id, conversation_id, turn_id, role, text, created_ms) VALUES (?, ?, ?, ?, ?, ?)",
            parts.ids.uuid(),
            conversation.conversation_id,
            turn_id,
            role,
            text,
            now,
        )
    # TM-043: a replayed run_status of a run that was never measured says null
    ended: dict[str, object] = {"reason": None, "toolErrors": [], "timings": None, "usage": None}
    told: tuple[tuple[str, dict[str, object]], ...] = (
        ("turn", {"turnId": turn_id, "ts": timestamp(now)}),
        ("text", {"text": answer}),
        ("done", {"stopReason": "completed"}),
        ("run_status", {"status": RunStatus.COMPLETED, **ended}),
    )
    for sequence, (kind, data) in enumerate(told, 1):
        line = compact({"type": kind, **data}).encode()
        parts.state.run("INSERT INTO events VALUES (?, ?, ?, ?)", run_id, sequence, kind, line)
    return run_id
