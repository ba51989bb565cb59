"""Who is who in a run of the partner leg: organization, agents, and the keys, none of which any record of it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.context import RunContext

NAMESPACE = "lab"
ENVIRONMENT = "test"
SEAL_KEY_BYTES = 32


@dataclass(frozen=True)
class PartnerIdentity:
    """Everything that is drawn once for a run. `agents` maps an agent's name in the scenario to its id."""

    organization_id: str
    server_id: str
    """The id of the store among the servers that an operator has admitted."""
    agents: Mapping[str, str]
    chat_key: str = field(repr=False)
    provisioning_key: str = field(repr=False)
    control_key: str = field(repr=False)
    """Of the model's and the issuer's lab controls."""
    static_credential: str = field(repr=False)
    issuer_key: str = field(repr=False)
    register_key: str = field(repr=False)
    seal_key: bytes = field(repr=False)

    def secrets(self) -> dict[str, str]:
        """The keys by the names that a report may say."""
        return {
            "chatKey": self.chat_key,
            "provisioningKey": self.provisioning_key,
            "controlKey": self.control_key,
            "staticCredential": self.static_credential,
            "grantIssuerKey": self.issuer_key,
            "registerKey": self.register_key,
        }


def draw_partner_identity(ctx: RunContext, agents: Sequence[str]) -> PartnerIdentity:
    """Draw a run's identity for the agents of these names."""

    def key(name: str) -> str:
        return ctx.secret_draws("partner", name).token()

    return PartnerIdentity(
        organization_id=ctx.draws("run", "organizationId").uuid(),
        server_id=ctx.draws("store", "serverId").uuid(),
        agents={name: ctx.draws(f"agent {name}", "agentId").uuid() for name in agents},
        chat_key=key("chatKey"),
        provisioning_key=key("provisioningKey"),
        control_key=key("controlKey"),
        static_credential=key("staticCredential"),
        issuer_key=key("grantIssuerKey"),
        register_key=key("registerKey"),
        seal_key=ctx.secret_draws("partner", "seal").bytes(SEAL_KEY_BYTES),
    )
