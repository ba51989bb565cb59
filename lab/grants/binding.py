"""What a grant is good for: the whole binding that is sealed in it (CX-017)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from lab.journal.events import digest

WORDS = {
    "grant_id": "grantId",
    "organization_id": "organizationId",
    "environment": "environment",
    "team_id": "teamId",
    "actor_id": "actorId",
    "agent_id": "agentId",
    "conversation_id": "conversationId",
    "destination": "destination",
}
"""The binding's ids, and their names where others read them: journals and the control."""

_ID = re.compile(r"[A-Za-z0-9._:/+=\[\]-]{1,512}", re.ASCII)
"""What an id, or a destination, looks like."""


@dataclass(frozen=True, slots=True)
class GrantBinding:
    """For whom, for what and until when; times in milliseconds since 1970 UTC. Valid while now < `expires_at_ms`."""

    grant_id: str
    organization_id: str
    environment: str
    team_id: str
    actor_id: str
    agent_id: str
    conversation_id: str
    destination: str
    issued_at_ms: int
    expires_at_ms: int

    def told(self) -> dict[str, object]:
        """The ids, as a journal has them."""
        return {word: told_id(getattr(self, name)) for name, word in WORDS.items()}


def told_id(text: str) -> object:
    """An id as a journal has it. A text of another form could be anything, so that only its digest is told."""
    return text if _ID.fullmatch(text) else digest("id", text)


NAMES = tuple(field.name for field in fields(GrantBinding))
TIMES = ("issued_at_ms", "expires_at_ms")
