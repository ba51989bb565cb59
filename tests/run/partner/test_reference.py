"""The lab's own model, set up as a scenario says."""

from __future__ import annotations

from pathlib import Path

from lab.clock import Clock
from lab.context import RunContext
from lab.grants.binding import GrantBinding
from lab.grants.seal import NONCE_BYTES, Seal
from lab.journal.writer import Journal
from lab.partner.model.settings import PartnerSettings
from lab.run.partner.identity import PartnerIdentity, draw_partner_identity
from lab.run.partner.reference import OTHER_SERVER, reference_settings
from lab.store.settings import CANONICAL_DESTINATION
from tests.run.partner.played import written

KEY = bytes(range(32))


def settings_of(folder: Path, api: str, seal: bytes = KEY) -> tuple[PartnerSettings, PartnerIdentity]:
    scenario = written(folder, "  - membership: { user: anna }\n", api)
    assert scenario.partner is not None
    clock = Clock(lambda: 0.0, 0)
    identity = draw_partner_identity(RunContext(1, clock, Journal(clock.now)), tuple(scenario.partner.api.agents))
    return reference_settings(scenario.partner.api, identity, Seal(seal), "http://127.0.0.1:9/mcp", folder), identity


def test_agents_have_the_stores_that_they_are_allowed(tmp_path: Path) -> None:
    api = "{ agents: { store: {}, talk: { mcp: none }, widow: { mcp: lost, profile: false }, many: { mcp: several } } }"
    settings, identity = settings_of(tmp_path, api)
    stores = {agent.name: agent.mcp for agent in settings.agents}
    (own,) = stores["store"] or ()
    assert (own.server_id, own.destination) == (identity.server_id, CANONICAL_DESTINATION)
    assert (stores["talk"], stores["widow"], stores["many"]) == (None, (), (own, OTHER_SERVER))
    assert [agent.profile for agent in settings.agents] == [True, True, False, True]
    assert {agent.agent_id for agent in settings.agents} == {*identity.agents.values()}
    assert settings.destinations == {CANONICAL_DESTINATION: "http://127.0.0.1:9/mcp"}


def test_words_of_the_scenario_reach_the_model(tmp_path: Path) -> None:
    api = '{ teams: [shop, office], keeps_state: true, status_after_error: true, keep_alive: 2s, mcp_era: "2026" }'
    settings, _ = settings_of(tmp_path, api)
    assert (settings.teams, settings.keep_alive_seconds, settings.mcp_era) == (("shop", "office"), 2.0, "2026")
    assert (settings.status_after_error, settings.state_path) == (True, tmp_path / "partner.sqlite")
    plain, _ = settings_of(tmp_path, "{}")
    assert (plain.status_after_error, plain.state_path, plain.claim_reader) == (False, None, None)


def test_grants_are_opened_by_the_seal_alone(tmp_path: Path) -> None:
    """CX-027, when the scenario asks for it."""
    settings, _ = settings_of(tmp_path, "{ checks_claims: true }")
    binding = GrantBinding("g", "org", "test", "team", "actor", "agent", "conversation", "https://x", 0, 10)
    assert settings.claim_reader is not None
    claims = settings.claim_reader(Seal(KEY).seal(binding, bytes(NONCE_BYTES)))
    assert claims is not None
    assert (claims.organization_id, claims.team_id, claims.actor_id) == ("org", "team", "actor")
    assert (claims.agent_id, claims.conversation_id, claims.destination) == ("agent", "conversation", "https://x")
    assert settings.claim_reader(Seal(bytes(32)).seal(binding, bytes(NONCE_BYTES))) is None
    assert settings.claim_reader("no grant") is None
