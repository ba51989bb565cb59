"""Every participant of a scenario, started in order and wired through links."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from lab.agent2.engine import Engine
from lab.agent2.script import Script, load_script
from lab.agent2.server import Agent2Server
from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.faults.address import Address
from lab.faults.fault_link import FaultLink, embedded, is_embedded
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Job
from lab.gateway.server import GatewayServer
from lab.journal.events import ParticipantDeclared, SecretsDrawn
from lab.protocol.contract import contract_of
from lab.protocol.gateway_side import GatewayPolicy
from lab.run.aftermath import look_back
from lab.run.agents import REFERENCE, SutChoice, how, make_sut, start_all, use_of
from lab.run.ending import Part, close_all, end_in_time
from lab.run.fault_server import carrier_of
from lab.run.identity import WORKSPACE_ID, Identity, draw_identity, keys_named_in
from lab.run.link_faults import LinkFaults
from lab.run.processes import ProcessFaults
from lab.run.services import ServiceFaults
from lab.run.suts import Surroundings, Sut
from lab.scenario.model import Agent2Spec, AssignStep, GatewaySpec, LocalAgentSpec, Scenario
from lab.sim.loop import SimLoop
from lab.tap.content import ContentTap
from lab.tap.frames import FrameTap

ANNOUNCED_HOMES = Path("/lab/agents")
"""Where reference agents say that their homes are."""


@dataclass
class World:
    """The running participants of a scenario, by name."""

    ctx: RunContext
    identity: Identity
    gateways: Mapping[str, GatewayServer]
    agent2s: Mapping[str, Agent2Server]
    links: Mapping[str, FaultLink]
    suts: dict[str, Sut]
    faults: LinkFaults
    services: ServiceFaults
    processes: ProcessFaults
    workspaces: dict[str, Path]
    """What each agent calls its workspace."""
    scratch: Path
    """Folder of what must not lie in the run's own: homes, state, workspaces."""
    carrier: Part
    """What stands beside the links, and tells what of them is left."""

    async def end(self) -> None:
        """End everything and remove what it left on disk, also when the caller is cancelled meanwhile.

        Raises `EnvironmentFault` when a part does not end in time, and the first error of a part that cannot.
        """
        try:
            await end_in_time(self._close())
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    async def _close(self) -> None:
        """End SUTs first; a failing part does not spare the others."""
        parts: tuple[Part, ...] = (
            *self.links.values(),
            self.carrier,
            *self.gateways.values(),
            *self.agent2s.values(),
        )
        errors: list[BaseException] = []
        try:
            self.faults.close()
            errors += await close_all((self.services, self.processes, *self.suts.values()))
            errors += await self._look_back()
        finally:
            # Also when the ending is given up: a part that hangs spares the others no more than one that fails.
            errors += await close_all(parts)
            shutil.rmtree(self.scratch, ignore_errors=True)
        for further in errors[1:]:
            self.ctx.fail(further)
        if errors:
            raise errors[0]

    async def _look_back(self) -> list[BaseException]:
        seen_links = [embedded(link) for link in self.links.values() if is_embedded(link)]
        try:
            await look_back(self.ctx, self.suts.values(), seen_links, self.identity.canaries)
        except Exception as error:  # noqa: BLE001  what cannot be looked at spares nobody from being ended
            return [error]
        return []


async def build_world(
    ctx: RunContext, scenario: Scenario, contract_folder: Path, choice: SutChoice, faults: Address | None = None
) -> World:
    """Start the doubles and links, then the SUTs. If a part cannot start, those before it are ended again.

    `faults` is the Toxiproxy server that carries the links; None takes the lab's own engine.
    """
    roots = {spec.name: spec.root for spec in scenario.gateways.values()}
    identity = draw_identity(ctx, tuple(scenario.local_agents), tuple(scenario.agent2s), roots)
    try:
        scratch = Path(tempfile.mkdtemp(prefix="lab-"))
    except OSError as error:
        raise EnvironmentFault(
            f"no temporary folder can be made: {error.strerror}. Set TMPDIR to a folder with room."
        ) from error
    builder = _Builder(ctx, scenario, contract_folder, choice, identity)
    gateways: dict[str, GatewayServer] = {}
    agent2s: dict[str, Agent2Server] = {}
    links: dict[str, FaultLink] = {}
    carrier = carrier_of(ctx, faults)
    link_faults = LinkFaults(ctx, links, lambda name: gateways[name].address)
    services = ServiceFaults(ctx, agent2s)
    suts: dict[str, Sut] = {}
    processes = ProcessFaults(ctx, suts)
    world = World(ctx, identity, gateways, agent2s, links, suts, link_faults, services, processes, {}, scratch, carrier)
    try:
        # Scripts and workspaces first: they bring canaries, which every tap must know.
        for name in scenario.local_agents:
            workspace = scratch / name / "workspace"
            workspace.mkdir(parents=True, mode=0o700)
            # One seed gives one journal wherever the run lies, so the reference calls its workspace by a fixed name.
            fixed = builder.use_of(name) == REFERENCE
            world.workspaces[name] = ANNOUNCED_HOMES / name / "workspace" if fixed else workspace
            identity.canaries[f"workspace-path.{name}"] = str(world.workspaces[name])
        builder.read_scripts()
        for agent2_spec in scenario.agent2s.values():
            agent2s[agent2_spec.name] = builder.agent2(agent2_spec)
        for gateway_spec in scenario.gateways.values():
            gateways[gateway_spec.name] = builder.gateway(gateway_spec)
        for agent2 in agent2s.values():
            await agent2.start()
        for gateway in gateways.values():
            await gateway.start()
            gateway.strike_link = world.faults.strike_behind
        for link in scenario.links.values():
            target = _address_of(world, link.to)
            links[link.name] = carrier.link(link, target)
            await links[link.name].start()
        for agent_spec in scenario.local_agents.values():
            world.suts[agent_spec.name] = builder.sut(agent_spec, world)
        await start_all(world.suts)
    except BaseException:
        await world.end()
        raise
    return world


ANSWER_CANARY_CHARACTERS = 32
"""An answer of at least so many characters is a canary by its beginning; a shorter one may stand anywhere by chance."""


class _Builder:
    def __init__(
        self, ctx: RunContext, scenario: Scenario, contract_folder: Path, choice: SutChoice, identity: Identity
    ) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._contract_folder = contract_folder
        self._choice = choice
        self._simulated = isinstance(asyncio.get_running_loop(), SimLoop)
        self._identity = identity
        self._jobs: dict[str, dict[str, Job]] = {}
        """The jobs of each gateway, which its instances share."""
        self._scripts: dict[str, dict[str, Script]] = {}

    def _declare(self, name: str, role: str, kind: str, **facts: object) -> None:
        self._ctx.journal.record("run", ParticipantDeclared(name, role, kind, facts))

    def read_scripts(self) -> None:
        """Read the scripts, draw the keys that they and inputs name, and tell the journal which canaries these are."""
        for spec in self._scenario.agent2s.values():
            self._scripts[spec.name] = {kind: load_script(path) for kind, path in spec.scripts.items()}
        scripts = [script for scripts in self._scripts.values() for script in scripts.values()]
        inputs = [text for step in self._scenario.steps if isinstance(step, AssignStep) for text in step.inputs]
        named = [*(name for script in scripts for name in script.canaries), *keys_named_in(inputs)]
        for name in dict.fromkeys(named):
            self._identity.canaries.setdefault(name, self._ctx.secret_draws("canary", name).token())
        if named:
            self._ctx.journal.record("run", SecretsDrawn(tuple(dict.fromkeys(named))))

    def use_of(self, name: str) -> str:
        """How a local agent is had."""
        return use_of(self._scenario, name, self._choice.use, simulated=self._simulated)

    def agent2(self, spec: Agent2Spec) -> Agent2Server:
        scripts = self._scripts[spec.name]
        for kind, script in scripts.items():
            for number, answer in enumerate(script.answers(ANSWER_CANARY_CHARACTERS)):
                # What agent2 answers is content too, and must turn up nowhere else.
                self._identity.canaries[f"answer.{spec.name}.{kind}.{number}"] = answer
        engine = Engine(spec.kinds, scripts, self._identity.tenant_id, self._identity.canaries)
        self._declare(spec.name, "agent2", "double", kinds=list(spec.kinds))
        token = self._identity.agent2_tokens[spec.name]
        return Agent2Server(self._ctx, spec.name, engine, token, health_delay=spec.health_delay)

    def gateway(self, spec: GatewaySpec) -> GatewayServer:
        agents = tuple(
            agent.name
            for agent in self._scenario.local_agents.values()
            if self._scenario.gateways[agent.gateway].root == spec.root
        )
        # Connections have the names of their gateway's; where there is one only it needs none.
        prefix = "c" if len(self._scenario.gateways) == 1 else f"{spec.name}-c"
        jobs = self._jobs.setdefault(spec.root, {})
        self._declare(spec.name, "gateway", "double", tenantMode=spec.tenant_mode, revision=spec.revision)
        return make_gateway(
            self._ctx, spec, agents, self._identity, self._contract_folder, conn_prefix=prefix, jobs=jobs
        )

    def sut(self, spec: LocalAgentSpec, world: World) -> Sut:
        identity = self._identity
        mine = identity.agents[spec.name]
        home = world.scratch / spec.name
        signer = identity.signers[spec.gateway]
        around = Surroundings(
            tenant_id=identity.tenant_id,
            agent_id=mine.agent_id,
            gateway_url=f"ws://{_address(world, self._scenario, spec, spec.gateway)}/agent",
            gateway_token=mine.gateway_token,
            agent2_url=f"http://{_address(world, self._scenario, spec, spec.agent2)}",
            agent2_token=identity.agent2_tokens[spec.agent2],
            workspaces={WORKSPACE_ID: world.workspaces[spec.name]},
            folders={WORKSPACE_ID: home / "workspace"},
            trusted_keys={signer.key_id: signer.public_key},
            home=home,
            chat="chat" in self._scenario.agent2s[spec.agent2].kinds,
            contract_folder=self._contract_folder,
        )
        roots = {name: _root_hashes(path) for name, path in around.workspaces.items()}
        contract = contract_of(self._contract_folder, spec.revision)
        choice = replace(self._choice, use=self.use_of(spec.name))
        sut = make_sut(self._ctx, spec, around, contract, choice, identity.canaries, identity.secrets())
        facts = {"agentId": mine.agent_id, "roots": roots, **sut.facts}
        self._declare(spec.name, "local_agent", how(self.use_of(spec.name)), **facts)
        return sut


def _root_hashes(path: Path) -> list[str]:
    """The SHA-256 of a workspace's path in each form in which a program may name it."""
    forms = dict.fromkeys((str(path), str(path.resolve())))
    return [hashlib.sha256(form.encode("utf-8", "surrogateescape")).hexdigest() for form in forms]


def make_gateway(
    ctx: RunContext,
    spec: GatewaySpec,
    agent_names: tuple[str, ...],
    identity: Identity,
    contract_folder: Path,
    port: int = 0,
    conn_prefix: str = "c",
    jobs: dict[str, Job] | None = None,
) -> GatewayServer:
    """A gateway double with its taps, not started yet. See `GatewayCore` for `conn_prefix` and `jobs`."""
    agents = {identity.agents[name].agent_id: name for name in agent_names}
    tokens = {identity.agents[name].agent_id: identity.agents[name].gateway_token for name in agent_names}
    signer = identity.signers[spec.name]
    core = GatewayCore(
        contract_of(contract_folder, spec.revision),
        identity.tenant_id,
        tuple(agents),
        ctx.clock.epoch_ms,
        GatewayPolicy(spec.tenant_mode, spec.signature, offered=spec.limits, knows_v2=spec.protocol_v2),
        signer if spec.signature else None,
        ctx.draws(spec.name, "ids").uuid,
        conn_prefix,
        jobs,
    )
    tap = FrameTap(
        contract_folder,
        spec.revision,
        identity.tenant_id,
        tuple(agents),
        {signer.key_id: signer.public_key},
        identity.canaries,
        ctx.clock.epoch_ms,
    )
    content_tap = ContentTap(contract_folder, spec.revision, identity.canaries)
    return GatewayServer(ctx, spec.name, core, tap, content_tap, agents, tokens, port=port)


def _address(world: World, scenario: Scenario, spec: LocalAgentSpec, target: str) -> str:
    """Where an agent reaches its gateway or agent2: its own link, else the one for all, else the double itself."""
    links = [link for link in scenario.links.values() if link.to == target and link.of in (None, spec.name)]
    links.sort(key=lambda link: link.of is None)
    host, port = world.links[links[0].name].address if links else _address_of(world, target)
    return f"{host}:{port}"


def _address_of(world: World, target: str) -> tuple[str, int]:
    if target in world.gateways:
        return world.gateways[target].address
    url = urlsplit(world.agent2s[target].url)
    return str(url.hostname), int(url.port or 0)
