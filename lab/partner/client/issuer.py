"""The driver's side of the grant issuer, which stands in for the store in tests alone (GR-005)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.partner.client.answers import bare_untrusted
from lab.partner.client.asking import JSON_TYPE, Ask, Departure, Site
from lab.partner.client.calls import Calls
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.shapes import Conversation, Grant, grant_untrusted
from lab.partner.client.words import POST_GRANT, POST_REGISTRATION


@dataclass(frozen=True, slots=True)
class IssuerTarget:
    """Where grants are had: `grants_url` is posted to as it stands (GR-009), with `issuer_key` (GR-002).

    `registrations_url` and `register_key` are those of the lab's own issuer, which learns of conversations there
    (GR-012); both None for an issuer that knows them by itself.
    """

    grants_url: str
    issuer_key: str = field(repr=False)
    registrations_url: str | None = None
    register_key: str | None = field(default=None, repr=False)


class IssuerClient:
    """Registers conversations and mints grants. Each key goes to its own route alone (PRIV-020)."""

    def __init__(self, calls: Calls, target: IssuerTarget) -> None:
        self._calls = calls
        self._target = target

    async def register(self, conversation: Conversation) -> Outcome[None]:
        """Tell the issuer of a conversation that was created; done at once where the issuer takes no registrations."""
        target = self._target
        if target.registrations_url is None or target.register_key is None:
            return Done(None, 0)
        mcp = conversation.mcp
        members = {
            "conversationId": conversation.conversation_id,
            "actorId": conversation.actor_id,
            "teamId": conversation.team_id,
            "agentId": conversation.agent_id,
            "destination": None if mcp is None else mcp.destination,
        }
        ask = _posted(POST_REGISTRATION, target.registrations_url, target.register_key, members)
        return await self._calls.call(ask, lambda _: None, bare_untrusted)

    async def mint(self, conversation: Conversation, departure: Departure | None = None) -> Outcome[Grant]:
        """A fresh grant for a conversation with an MCP target (GR-001, GR-007)."""
        mcp = conversation.mcp
        members: dict[str, Any] = {"conversationId": conversation.conversation_id, "agentId": conversation.agent_id}
        if mcp is not None:
            members["destination"] = mcp.destination
        ask = _posted(POST_GRANT, self._target.grants_url, self._target.issuer_key, members, departure)
        return await self._calls.call(ask, grant_untrusted, bare_untrusted)


def _posted(route: str, url: str, key: str, members: Mapping[str, Any], departure: Departure | None = None) -> Ask:
    ask = Site("", key).ask(route, {}, members=members, departure=departure)
    return Ask(
        route,
        url,
        ask.key,
        ask.body,
        JSON_TYPE,
        headers=ask.headers,
        sent=ask.sent,
        input=ask.input,
        conversation_id=str(members["conversationId"]),
        marks=ask.marks,
    )
