"""Who is who in a run: tenant, agents, keys, tokens, and the canaries that tell where content went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from lab.agent2.beats import CANARY
from lab.context import RunContext
from lab.protocol.signing import Signer

WORKSPACE_ID = "ws-main"

PROMPT_CANARY = "prompt"
"""The canary that stands at both ends of every prompt of the driver."""

PROMPT_CANARY_CHARACTERS = 16


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

    def filled(self, text: str) -> str:
        """An input with the value of each key in the place of `{canary:NAME}`; one that nobody drew stays as it is."""
        return CANARY.sub(lambda match: self.canaries.get(match[1], match[0]), text)


def keys_named_in(texts: Iterable[str]) -> list[str]:
    """The names of the keys that inputs take at run time."""
    return [name for text in texts for name in CANARY.findall(text)]


def draw_identity(
    ctx: RunContext, agents: Sequence[str], agent2s: Sequence[str], gateways: Sequence[str] | Mapping[str, str]
) -> Identity:
    """Draw a run's identity. `canaries` may still grow by those that scripts name.

    `gateways` may map each name to that of the gateway whose key it shares.
    """
    roots = gateways if isinstance(gateways, Mapping) else {name: name for name in gateways}
    # Short, so that the first words of a prompt hold it whole; in hex as well, as a debug line may print it.
    prompt = ctx.secret_draws("canary", PROMPT_CANARY).token()[:PROMPT_CANARY_CHARACTERS]
    canaries = {PROMPT_CANARY: prompt, f"{PROMPT_CANARY}.hex": prompt.encode().hex()}
    identities = {}
    for name in agents:
        token = ctx.secret_draws(name, "gateway token").token()
        identities[name] = AgentIdentity(name, ctx.draws(name, "agentId").uuid(), token)
        canaries[f"gateway-token.{name}"] = token
    tokens = {}
    for name in agent2s:
        tokens[name] = canaries[f"agent2-token.{name}"] = ctx.secret_draws(name, "token").token()
    own_keys = {root: SigningKey(ctx.secret_draws(root, "signing key").bytes(32)) for root in roots.values()}
    own = {root: Signer(f"{root}-key-1", key, ctx.draws(root, "nonce").token) for root, key in own_keys.items()}
    keys = {name: own_keys[root] for name, root in roots.items()}
    signers = {name: own[root] for name, root in roots.items()}
    return Identity(ctx.draws("run", "tenantId").uuid(), identities, tokens, signers, keys, canaries)
