"""The private output file of a fixture: what a driver needs to call this instance (FX-017…020, FX-035)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lab.clock import timestamp
from lab.partner.model.keyring import Keyring
from lab.partner.model.settings import FixtureSettings, PartnerSettings
from lab.private_files import replace_private


def fixture_facts(
    settings: PartnerSettings,
    fixture: FixtureSettings,
    keyring: Keyring,
    api_origin: str,
    instance_id: str,
    expires_ms: int,
) -> Mapping[str, object]:
    """The members of the file. expiresAt and fixtureExpiresAt are one instant (FX-030)."""
    expires = timestamp(expires_ms)
    agent = settings.agents[0] if settings.agents else None
    optional = {
        "grantIssuerUrl": fixture.grant_issuer_url,
        "grantIssuerKey": fixture.grant_issuer_key,
        "registerUrl": fixture.register_url,
        "registerKey": fixture.register_key,
        "agentId": None if agent is None else agent.agent_id,
        "externalTeamId": None if agent is None else agent.team,
        "toolName": fixture.tool_name,
        "toolInput": fixture.tool_input,
    }
    return {
        "apiOrigin": fixture.origin or api_origin,
        "organizationId": settings.organization_id,
        "namespace": settings.namespace,
        "environment": settings.environment,
        "provisioningKey": keyring.provisioning,
        "chatKey": keyring.chat,
        "destination": fixture.destination,
        "staticCredential": settings.static_credential,
        "expiresAt": expires,
        "instanceId": instance_id,
        "fixtureExpiresAt": expires,
        **{name: value for name, value in optional.items() if value is not None},
    }


def write_fixture(fixture: FixtureSettings, facts: Mapping[str, object]) -> None:
    """Write it as a private file, whole or not at all (FX-032)."""
    replace_private(fixture.path, json.dumps(facts, indent=2) + "\n")


def remove_fixture(fixture: FixtureSettings, instance_id: str) -> None:
    """FX-046: delete it on a clean stop, unless another instance has written its own meanwhile."""
    try:
        written = json.loads(fixture.path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(written, dict) and written.get("instanceId") == instance_id:
        fixture.path.unlink(missing_ok=True)
