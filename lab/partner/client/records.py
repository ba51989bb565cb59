"""What the driver keeps of the things that a scenario names by labels."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.partner.client.run_events import RunEvents
from lab.partner.client.shapes import Attachment, Conversation, Grant, Membership, Run


@dataclass(slots=True)
class Member:
    """An employee. `revision` is the highest sourceRevision that was sent."""

    label: str
    external_user_id: str
    external_team_id: str
    role: str = "member"
    revision: int = 0
    stored: Membership | None = None
    """What the API told of it last."""

    @property
    def actor(self) -> dict[str, str]:
        """How requests name the employee (PA-044)."""
        return {"externalUserId": self.external_user_id, "externalTeamId": self.external_team_id}


@dataclass(slots=True)
class ConversationRecord:
    """A conversation. `version` is what an answer told last: 0 for a new one, None once an answer was lost (CX-011)."""

    label: str
    member: Member
    told: Conversation
    version: int | None = 0
    grants: list[Grant] = field(default_factory=list)
    """What was minted for it, the newest last."""

    @property
    def ids(self) -> dict[str, str]:
        """What fills the routes of it."""
        return {"conversationId": self.told.conversation_id}


@dataclass(slots=True)
class FileRecord:
    """An uploaded file; the last upload's, when one was repeated (AT-040)."""

    label: str
    conversation: ConversationRecord
    told: Attachment


@dataclass(slots=True)
class RunRecord:
    """A run, and what its events added up to so far."""

    label: str
    conversation: ConversationRecord
    told: Run
    """As the API told it last."""
    events: RunEvents

    @property
    def ids(self) -> dict[str, str]:
        """What fills the routes of it."""
        return {**self.conversation.ids, "runId": self.told.run_id}
