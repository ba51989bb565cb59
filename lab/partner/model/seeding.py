"""What was provisioned before the chat begins, written into a fresh state: keys, teams, agents (PA-052)."""

from __future__ import annotations

from collections.abc import Sequence

from lab.draws import Draws
from lab.partner.model.authority import key_hash
from lab.partner.model.conversations import stored_candidates
from lab.partner.model.keyring import CHAT_ROLE, PROVISIONING_ROLE, Keyring
from lab.partner.model.settings import PartnerSettings
from lab.partner.model.state import State
from lab.partner.model.words import CHAT_KEY_SCOPES, PROVISIONING_SCOPES


def seed(state: State, settings: PartnerSettings, keyring: Keyring, ids: Draws) -> None:
    """Bring in what is not there yet; what a former life stored, revoked or removed stays as it is."""
    with state.transaction():
        add_key(state, CHAT_ROLE, keyring.chat, CHAT_KEY_SCOPES, settings.namespace)
        add_key(state, PROVISIONING_ROLE, keyring.provisioning, PROVISIONING_SCOPES, settings.namespace)
        for external_team_id in settings.teams:
            if state.row("SELECT 1 FROM teams WHERE external_team_id = ?", external_team_id) is None:
                state.run("INSERT INTO teams VALUES (?, ?, ?, 0)", ids.uuid(), external_team_id, ids.uuid())
        for agent in settings.agents:
            state.run(
                "INSERT OR IGNORE INTO agents SELECT ?, team_id, ?, ?, ?, 0 FROM teams WHERE external_team_id = ?",
                agent.agent_id,
                stored_candidates(agent.mcp),
                agent.profile,
                agent.admin,
                agent.team,
            )


def add_key(state: State, role: str, key: str, scopes: Sequence[str], namespace: str) -> None:
    """A key by its hash; one that is known already stays as it is, revoked or not."""
    state.run("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, 0)", key_hash(key), role, " ".join(scopes), namespace)
