"""The two files of a living environment that hold its keys: for a driver, and for a shell."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from lab.journal.partner_events import PartnerRequest
from lab.journal.writer import Entry
from lab.partner.model.fixture_output import fixture_facts, remove_fixture, write_fixture
from lab.partner.model.settings import FixtureSettings
from lab.partner.model.words import LAB_BASE
from lab.run.partner.world import PartnerWorld
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.store.server import PATH
from lab.store.settings import CANONICAL_DESTINATION
from lab.up.files import KEYS, SHELL, write_shell

EMPLOYEE = "anna"

_ROTATION: Final = f"{LAB_BASE}/keys/rotate"


class KeyFiles:
    """Writes the files into `folder`; `begun_ms` is the wall time from which the environment lasts `seconds`."""

    def __init__(self, world: PartnerWorld, folder: Path, begun_ms: int, seconds: float) -> None:
        self._world = world
        self._folder = folder
        self._seconds = seconds
        self._ends_ms = begun_ms + round(seconds * 1000)
        self._left = False
        self._written = ""

    @property
    def shell(self) -> Path:
        """The file that a shell reads."""
        return self._folder / SHELL

    def write(self) -> None:
        """Write both with the keys that count now. A disk that refuses raises `EnvironmentFault`."""
        world, fixture = self._world, self._fixture()
        model, origin = world.model, world.base[PARTNER_API]
        facts = fixture_facts(model.settings, fixture, model.keys, origin, model.instance_id, self._ends_ms)
        self._written = model.instance_id
        write_fixture(fixture, facts)
        write_shell(self._folder, self._variables())

    def follow(self, entry: Entry) -> None:
        """Write them anew when the journal tells of a key that was rotated: the old one opens nothing any more."""
        if not self._left and isinstance(entry.event, PartnerRequest) and entry.event.route == _ROTATION:
            self.write()

    def leave(self) -> None:
        """Remove both, but not what another instance wrote (FX-046), and write no more. Safe to call again."""
        self._left = True
        remove_fixture(self._fixture(), self._written)
        with suppress(FileNotFoundError, NotADirectoryError):
            self.shell.unlink()

    def _fixture(self) -> FixtureSettings:
        issuer, identity = self._world.base[ISSUER], self._world.identity
        return FixtureSettings(
            self._folder / KEYS,
            CANONICAL_DESTINATION,
            f"{issuer}/grants",
            identity.issuer_key,
            "catalog_get",
            {"productId": 9001},
            self._seconds,
            register_url=f"{issuer}/conversations",
            register_key=identity.register_key,
        )

    def _variables(self) -> dict[str, str]:
        world, identity, base = self._world, self._world.identity, self._world.base
        agent = world.model.settings.agents[0]
        return {
            "API": api_url(world),
            "CHAT_KEY": world.model.keys.chat,
            "EMPLOYEE": EMPLOYEE,
            "TEAM": agent.team,
            "AGENT": agent.agent_id,
            "DESTINATION": CANONICAL_DESTINATION,
            "ISSUER_URL": f"{base[ISSUER]}/grants",
            "ISSUER_KEY": identity.issuer_key,
            "REGISTER_URL": f"{base[ISSUER]}/conversations",
            "REGISTER_KEY": identity.register_key,
            "STORE_URL": base[STORE] + PATH,
            "STORE_CREDENTIAL": identity.static_credential,
            "CONTROL_URL": f"{base[PARTNER_API]}{LAB_BASE}",
            "CONTROL_KEY": identity.control_key,
        }


def api_url(world: PartnerWorld) -> str:
    """Where the routes of the partner API lie (PA-006)."""
    return f"{world.base[PARTNER_API]}/v1/orgs/{world.identity.organization_id}/chat"
