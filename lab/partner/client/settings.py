"""What the driver drives, and how patient it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.partner.client.asking import Site
from lab.partner.client.calls import CallSettings
from lab.partner.client.context import MOST_ROUNDS
from lab.partner.client.follow import FollowSettings
from lab.partner.client.history_walk import MOST_PAGES
from lab.partner.client.polling import DEADLINE_S
from lab.partner.client.words import base_path

LEASE_S = 240
"""What the driver asks for: less than the five minutes that are allowed (MB-022)."""


@dataclass(frozen=True, slots=True)
class Target:
    """The API to drive. `url` is its origin as the driver reaches it, which may be a link's address (FX-042).

    `external_team_id` and `agent_id` are what steps use that name none (PA-052).
    """

    url: str
    organization_id: str
    chat_key: str = field(repr=False)
    external_team_id: str | None = None
    agent_id: str | None = None

    @property
    def site(self) -> Site:
        """Where its routes lie (PA-006)."""
        return Site(f"{self.url.rstrip('/')}{base_path(self.organization_id)}", self.chat_key)


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """How patient the driver is; seconds."""

    calls: CallSettings = field(default_factory=CallSettings)
    following: FollowSettings = field(default_factory=FollowSettings)
    follow_deadline_s: float = 600.0
    poll_deadline_s: float = DEADLINE_S
    lease_s: int = LEASE_S
    renews_leases: bool = True
    strict_tools: bool = False
    """Whether a run with failed tool calls counts as unsuccessful (MSG-019)."""
    most_context_rounds: int = MOST_ROUNDS
    most_pages: int = MOST_PAGES
