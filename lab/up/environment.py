"""A living environment: the participants of a scenario of the partner leg, its files, and its control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.context import RunContext
from lab.run.ending import close_all
from lab.run.partner.world import PartnerWorld, build_partner_world
from lab.scenario.model import Scenario
from lab.scenario.one_fault import read_participants
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.store.server import PATH
from lab.up.control import UpControl
from lab.up.files import KEYS, ControlFile, remove_control, write_control
from lab.up.key_files import KeyFiles, api_url

PORTS = {PARTNER_API: 5, STORE: 6, ISSUER: 7}
"""How far behind the base port each link listens (FX-005, FX-022)."""


@dataclass
class Environment:
    """What `lab up` has started. Call `close`."""

    world: PartnerWorld
    control: UpControl
    folder: Path
    keys: KeyFiles
    endpoints: Mapping[str, str]
    """What a person is told, by what it is."""

    @property
    def shell(self) -> Path:
        """The file that a shell reads for the tour."""
        return self.keys.shell

    async def close(self) -> None:
        """End everything, and remove the private files."""
        try:
            self.keys.leave()
            remove_control(self.folder)
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
    # Once: whoever writes on the file, or on its scripts, while the environment lives blocks no fault.
    participants = read_participants(scenario)
    world = await build_partner_world(ctx, scenario, ports=ports)
    ends = ctx.now() + seconds
    key = ctx.secret_draws("up", "control").token()
    control = UpControl(ctx, world, participants, key, lambda: ends - ctx.now())
    keys = KeyFiles(world, folder, ctx.wall_ms(), seconds)
    try:
        await control.start()
        keys.write()
        # A control of the model can change a key at any time.
        ctx.journal.listen(keys.follow)
        write_control(folder, ControlFile(control.url, key, pid, str(scenario.file)))
        return Environment(world, control, folder, keys, _endpoints(world, folder))
    except BaseException:
        try:
            keys.leave()
            remove_control(folder)
        finally:
            await close_all((control,))
            await world.end()
        raise


def _endpoints(world: PartnerWorld, folder: Path) -> Mapping[str, str]:
    base = world.base
    return {
        "partner API": api_url(world),
        "its OpenAPI file": f"{base[PARTNER_API]}/openapi.json",
        "store (MCP)": base[STORE] + PATH,
        "grant issuer, for tests only": f"{base[ISSUER]}/grants",
        "keys": str(folder / KEYS),
    }
