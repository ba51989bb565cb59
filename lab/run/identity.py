"""Who is who in a run: tenant, agents, keys, tokens, and the canaries that tell where content went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from lab.context import RunContext
from lab.protocol.signing import Signer

WORKSPACE_ID = "ws-main"

PROMPT_CANARY = "prompt"
"""The canary that stands in every prompt of the driver."""


@dataclass(frozen=True)
class AgentIdentity:
    """One Local Agent's ids and its credential at the gateway."""

    name: str
    agent_id: str
    gateway_token: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """Everything that is drawn once for a run. The values of canaries and tokens appear in no record of it."""

    tenant_id: str
    agents: Mapping[str, AgentIdentity]
    agent2_tokens: Mapping[str, str] = field(repr=False)
    signers: Mapping[str, Signer] = field(repr=False)
    signing_keys: Mapping[str, SigningKey] = field(repr=False)
    canaries: dict[str, str] = field(repr=False)

    def secrets(self) -> tuple[str, ...]:
        """What must be masked wherever a SUT's own words are kept."""
        tokens = (*(agent.gateway_token for agent in self.agents.values()), *self.agent2_tokens.values())
        return (*tokens, *self.canaries.values())


def draw_identity(
    ctx: RunContext, agents: tuple[str, ...], agent2s: tuple[str, ...], gateways: tuple[str, ...]
) -> Identity:
    """Draw a run's identity. `canaries` may still grow by those that scripts name."""
    canaries = {PROMPT_CANARY: ctx.secret_draws("canary", PROMPT_CANARY).token()}
    identities = {}
    for name in agents:
        token = ctx.secret_draws(name, "gateway token").token()
        identities[name] = AgentIdentity(name, ctx.draws(name, "agentId").uuid(), token)
        canaries[f"gateway-token.{name}"] = token
    tokens = {}
    for name in agent2s:
        tokens[name] = canaries[f"agent2-token.{name}"] = ctx.secret_draws(name, "token").token()
    keys = {name: SigningKey(ctx.secret_draws(name, "signing key").bytes(32)) for name in gateways}
    signers = {name: Signer(f"{name}-key-1", key, ctx.draws(name, "nonce").token) for name, key in keys.items()}
    return Identity(ctx.draws("run", "tenantId").uuid(), identities, tokens, signers, keys, canaries)
