"""Opening a conversation with a team's Admin Agent (CV-*)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.authority import Actor, Caller
from lab.partner.model.parts import Parts
from lab.partner.model.receipts import Receipt, input_hash
from lab.partner.model.refusals import configuration, unavailable
from lab.partner.model.settings import McpCandidate
from lab.partner.model.shape import Fields, idempotency_key_untrusted, read_object_untrusted
from lab.partner.model.words import EXTERNAL_ID_CHARACTERS, ID_CHARACTERS

OPERATION = "POST /conversations"


def only_candidate(candidates: Sequence[McpCandidate] | None) -> McpCandidate | None:
    """The one admitted store server; None for a profile without MCP (CV-004, CV-007, CV-017).

    Zero or several fail closed with 503 (CV-005, CV-006, CV-016).
    """
    if candidates is None:
        return None
    if len(candidates) != 1:
        raise configuration(f"{len(candidates)} candidates")
    return candidates[0]


def post_conversation(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """POST /conversations: {conversationId, actorId, teamId, agentId, mcp} (CV-001, CV-002)."""
    key = idempotency_key_untrusted(request)
    fields = Fields(read_object_untrusted(request), parts.settings.strict_json)
    user = fields.text("externalUserId", EXTERNAL_ID_CHARACTERS)
    team = fields.text("externalTeamId", EXTERNAL_ID_CHARACTERS)
    agent_id = fields.text("agentId", ID_CHARACTERS)
    fields.done()
    actor = parts.authority.actor_of(caller, user, team)
    _check_agent(parts, actor, agent_id)
    place = parts.place(caller, OPERATION)
    given = input_hash({"externalUserId": user, "externalTeamId": team, "agentId": agent_id})
    with parts.state.transaction():
        receipt = parts.receipts.find(place, key, given)
        if receipt is None:
            receipt = _create(parts, actor, agent_id)
            parts.receipts.keep(place, key, given, receipt, parts.now_ms())
            replay = False
        else:
            replay = True
    if receipt.answer is None:
        # CV-025: what the key opened is gone
        raise unavailable("removed conversation")
    # CV-015, CV-022: a replay has the status and the body of the first answer
    return success(
        201, receipt.answer, conversation_id=receipt.conversation_id, replay=replay, facts=dict(receipt.answer)
    )


def candidates_of(stored: str | None) -> tuple[McpCandidate, ...] | None:
    """The candidates of an agent as they lie in the state."""
    return None if stored is None else tuple(McpCandidate(*pair) for pair in json.loads(stored))


def stored_candidates(candidates: Sequence[McpCandidate] | None) -> str | None:
    """The candidates of an agent as they lie in the state."""
    if candidates is None:
        return None
    return json.dumps([[candidate.server_id, candidate.destination] for candidate in candidates])


def _check_agent(parts: Parts, actor: Actor, agent_id: str) -> None:
    """CV-018: unknown, of another team, or not the team's Admin Agent."""
    row = parts.state.row("SELECT * FROM agents WHERE agent_id = ? AND removed = 0", agent_id)
    if row is None or row["team_id"] != actor.team_id or not row["admin"]:
        raise unavailable("agent")


def _create(parts: Parts, actor: Actor, agent_id: str) -> Receipt:
    row = parts.state.row("SELECT * FROM agents WHERE agent_id = ?", agent_id)
    if row is None or not row["profile"]:
        raise configuration("profile")
    candidate = only_candidate(candidates_of(row["mcp"]))
    conversation_id = parts.ids.uuid()
    server_id, destination = (None, None) if candidate is None else (candidate.server_id, candidate.destination)
    parts.state.run(
        "INSERT INTO conversations (conversation_id, actor_id, team_id, agent_id, server_id, destination, created_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        conversation_id,
        actor.actor_id,
        actor.team_id,
        agent_id,
        server_id,
        destination,
        parts.now_ms(),
    )
    mcp = None if candidate is None else {"serverId": server_id, "destination": destination}
    answer = {
        "conversationId": conversation_id,
        "actorId": actor.actor_id,
        "teamId": actor.team_id,
        "agentId": agent_id,
        "mcp": mcp,
    }
    return Receipt(conversation_id, None, answer)
