"""A living environment: the participants of a scenario of the partner leg, its files, and its control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.context import RunContext
from lab.partner.model.fixture_output import fixture_facts, write_fixture
from lab.partner.model.settings import FixtureSettings
from lab.run.ending import close_all
from lab.run.partner.world import PartnerWorld, build_partner_world
from lab.scenario.model import Scenario
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.store.server import PATH
from lab.store.settings import CANONICAL_DESTINATION
from lab.up.control import UpControl
from lab.up.files import KEYS, ControlFile, remove, write_control, write_shell

PORTS = {PARTNER_API: 5, STORE: 6, ISSUER: 7}
"""How far behind the base port each link listens (FX-005, FX-022)."""

EMPLOYEE = "anna"


@dataclass
class Environment:
    """What `lab up` has started. Call `close`."""

    world: PartnerWorld
    control: UpControl
    folder: Path
    shell: Path
    endpoints: Mapping[str, str]
    """What a person is told, by what it is."""

    async def close(self) -> None:
        """End everything, and remove the private files."""
        try:
            remove(self.folder)
        finally:
            errors = await close_all((self.control,))
            await self.world.end()
        if errors:
            raise errors[0]


async def start_environment(
    ctx: RunContext, scenario: Scenario, base_port: int, folder: Path, seconds: float, pid: int
) -> Environment:
    """Start the participants with fresh keys, and write the files that say where they are.

    `base_port` 0 lets the system choose. What cannot start raises `EnvironmentFault`, and nothing is left.
    """
    ports = {target: base_port + offset for target, offset in PORTS.items()} if base_port else {}
    world = await build_partner_world(ctx, scenario, ports=ports)
    ends = ctx.now() + seconds
    key = ctx.secret_draws("up", "control").token()
    control = UpControl(ctx, world, scenario.file, key, lambda: ends - ctx.now())
    try:
        await control.start()
        return _written(ctx, world, scenario, control, key, folder, seconds, pid)
    except BaseException:
        try:
            remove(folder)
        finally:
            await close_all((control,))
            await world.end()
        raise


def _written(
    ctx: RunContext,
    world: PartnerWorld,
    scenario: Scenario,
    control: UpControl,
    key: str,
    folder: Path,
    seconds: float,
    pid: int,
) -> Environment:
    identity, base = world.identity, world.base
    api = f"{base[PARTNER_API]}/v1/orgs/{identity.organization_id}/chat"
    settings = world.model.settings
    fixture = FixtureSettings(
        folder / KEYS,
        CANONICAL_DESTINATION,
        f"{base[ISSUER]}/grants",
        identity.issuer_key,
        "catalog_get",
        {"productId": 9001},
        seconds,
        register_url=f"{base[ISSUER]}/conversations",
        register_key=identity.register_key,
    )
    ends_ms = ctx.wall_ms() + round(seconds * 1000)
    facts = fixture_facts(settings, fixture, world.model.keys, base[PARTNER_API], world.model.instance_id, ends_ms)
    write_fixture(fixture, facts)
    agent = settings.agents[0]
    shell = write_shell(
        folder,
        {
            "API": api,
            "CHAT_KEY": identity.chat_key,
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
            "CONTROL_URL": f"{base[PARTNER_API]}/__lab",
            "CONTROL_KEY": identity.control_key,
        },
    )
    write_control(folder, ControlFile(control.url, key, pid, str(scenario.file)))
    endpoints = {
        "partner API": api,
        "its OpenAPI file": f"{base[PARTNER_API]}/openapi.json",
        "store (MCP)": base[STORE] + PATH,
        "grant issuer, for tests only": f"{base[ISSUER]}/grants",
        "keys": str(folder / KEYS),
    }
    return Environment(world, control, folder, shell, endpoints)
