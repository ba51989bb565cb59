"""The lab's own partner API model, set up as a scenario says."""

from __future__ import annotations

from pathlib import Path

from lab.grants.seal import Seal
from lab.partner.model.settings import AgentSettings, GivenKeys, GrantClaims, McpCandidate, PartnerSettings
from lab.run.partner.identity import ENVIRONMENT, NAMESPACE, PartnerIdentity
from lab.scenario.partner_model import PartnerAgentSpec, PartnerApiSpec
from lab.store.settings import CANONICAL_DESTINATION

OTHER_SERVER = McpCandidate("other-store", "https://93.184.216.35/mcp")
"""A second store that an agent with several candidates is allowed; nothing listens there and nothing calls it."""


def reference_settings(
    spec: PartnerApiSpec, identity: PartnerIdentity, seal: Seal, store_url: str, scratch: Path
) -> PartnerSettings:
    """The model's settings; it reaches the store at `store_url`, and keeps its state, if any, in `scratch`."""
    return PartnerSettings(
        identity.organization_id,
        spec.teams,
        tuple(_agent(agent, identity) for agent in spec.agents.values()),
        namespace=NAMESPACE,
        environment=ENVIRONMENT,
        destinations={CANONICAL_DESTINATION: store_url},
        static_credential=identity.static_credential,
        keys=GivenKeys(identity.chat_key, identity.provisioning_key, identity.control_key),
        claim_reader=(lambda grant: _claims(seal, grant)) if spec.checks_claims else None,
        keep_alive_seconds=spec.keep_alive,
        status_after_error=spec.status_after_error,
        state_path=scratch / "partner.sqlite" if spec.keeps_state else None,
        mcp_era=spec.mcp_era,
    )


def _agent(spec: PartnerAgentSpec, identity: PartnerIdentity) -> AgentSettings:
    store = McpCandidate(identity.server_id, CANONICAL_DESTINATION)
    candidates = {"store": (store,), "none": None, "lost": (), "several": (store, OTHER_SERVER)}
    return AgentSettings(
        identity.agents[spec.name],
        spec.team,
        spec.name,
        mcp=candidates[spec.mcp],
        script=spec.script,
        profile=spec.profile,
    )


def _claims(seal: Seal, grant: str) -> GrantClaims | None:
    opened = seal.open(grant)
    if opened is None:
        return None
    return GrantClaims(
        opened.organization_id,
        opened.environment,
        opened.team_id,
        opened.actor_id,
        opened.agent_id,
        opened.conversation_id,
        opened.destination,
    )
