"""What a partner API model is set up with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.errors import UsageError
from lab.partner.model.words import ENVIRONMENT_VARIABLE, ENVIRONMENTS

FIXTURE_SECONDS: Final = 1800.0
"""FX-011: a fixture stops by itself after so long."""


@dataclass(frozen=True, slots=True)
class McpCandidate:
    """A store MCP server that an operator has admitted (CV-004)."""

    server_id: str
    destination: str
    """Canonical HTTPS URL, compared as an exact string (CX-034)."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """An agent that was provisioned before the chat begins.

    `mcp` None is a profile without any MCP: conversation only (CV-017); an empty tuple has lost its candidates.
    `profile` False has no usable operator profile; `admin` False is not the team's Admin Agent (CV-018).
    `script` says what its model thinks; None takes the built-in script. `worker_tools` is the frozen list (PA-023).
    """

    agent_id: str
    team: str
    """The externalTeamId of its team."""
    name: str = "Admin Agent"
    mcp: tuple[McpCandidate, ...] | None = None
    script: Path | None = None
    profile: bool = True
    admin: bool = True
    worker_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """Keys that the world drew for the first start; a later one without a state path draws its own (FX-026)."""

    chat: str = field(repr=False)
    provisioning: str = field(repr=False)
    control: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class GrantClaims:
    """What a grant says of itself, for the claim check at bind (CX-027)."""

    organization_id: str
    environment: str
    team_id: str
    actor_id: str
    agent_id: str
    conversation_id: str
    destination: str


ClaimReader = Callable[[str], GrantClaims | None]
"""Opens a grant; None: it does not open."""


@dataclass(frozen=True, slots=True)
class FixtureSettings:
    """The private output file (FX-017…020, FX-035) and what stands in it beside the model's own facts.

    `seconds` is the life of the fixture; with `self_ending` the server closes when it is over (FX-011).
    """

    path: Path
    destination: str
    grant_issuer_url: str | None = None
    grant_issuer_key: str | None = field(default=None, repr=False)
    tool_name: str | None = None
    tool_input: Mapping[str, object] | None = None
    seconds: float = FIXTURE_SECONDS
    self_ending: bool = False
    register_url: str | None = None
    """Where the lab's own issuer learns of conversations (GR-012); another issuer has no such route."""
    register_key: str | None = field(default=None, repr=False)
    origin: str | None = None
    """The apiOrigin to tell, when the model is reached by another address than its own."""


@dataclass(frozen=True, slots=True)
class PartnerSettings:
    """One organization of the partner API with its teams and agents. Defaults are the strict readings of the ledger."""

    organization_id: str
    teams: tuple[str, ...]
    """externalTeamIds that were provisioned (MB-034)."""
    agents: tuple[AgentSettings, ...]
    namespace: str = "lab"
    environment: str = "test"
    destinations: Mapping[str, str] = field(default_factory=dict)
    """Canonical destination to the URL that the test transport takes for it (MCP-005, FX-016)."""
    static_credential: str = field(default="", repr=False)
    """What the model bears at the store (FX-045)."""
    keys: GivenKeys | None = None
    strict_json: bool = True
    """PA-046: unknown fields of a body are refused."""
    claim_reader: ClaimReader | None = None
    """When there is one, a grant's claims are checked at bind already (CX-027)."""
    keep_alive_seconds: float = 15.0
    """SSE-039."""
    status_after_error: bool = False
    """SSE-036: the other variant, in which a run_status follows an error event."""
    state_path: Path | None = None
    """None: nothing survives a stop (FX-026)."""
    fixture: FixtureSettings | None = None
    mcp_era: str = "2025"
    """2025 (sessions) or 2026 (stateless)."""

    def __post_init__(self) -> None:
        if self.environment not in ENVIRONMENTS:
            raise UsageError(
                f"The environment of the partner API is {self.environment!r}; it must be one of "
                f"{', '.join(ENVIRONMENTS)}. Correct {ENVIRONMENT_VARIABLE} or leave it unset for test."
            )
        if not self.organization_id or "/" in self.organization_id:
            raise UsageError("The organization id of the partner API must be a non-empty text without a slash.")
        unknown = [agent.agent_id for agent in self.agents if agent.team not in self.teams]
        if unknown:
            raise UsageError(f"The agent {unknown[0]} belongs to a team that is not among the teams. Add the team.")


def environment_from(variables: Mapping[str, str]) -> str:
    """PARTNER_API_ENVIRONMENT, `test` when it is unset or empty; NODE_ENV has no say (PA-008, PA-060).

    The value is judged by `PartnerSettings`.
    """
    return variables.get(ENVIRONMENT_VARIABLE) or ENVIRONMENTS[0]
