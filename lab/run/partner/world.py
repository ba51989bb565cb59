"""Every participant of a scenario of the partner leg, started in order and wired through links."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError, NotApplicable, UsageError
from lab.faults.address import Address
from lab.faults.fault_link import FaultLink
from lab.faults.link import Link
from lab.grants.issuer import IssuerCore
from lab.grants.seal import Seal
from lab.grants.server import IssuerServer
from lab.journal.events import ParticipantDeclared
from lab.partner.client.fixture_output import FixtureOutput
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.settings import Target
from lab.partner.model.controls import Controls
from lab.partner.model.server import PartnerServer
from lab.run.ending import Part, close_all, end_in_time
from lab.run.fault_server import Carrier, carrier_of
from lab.run.link_faults import LinkFaults
from lab.run.partner.doubles import make_issuer, make_store, store_tool_set
from lab.run.partner.foreign import await_fixture, found_fixture, serving_of
from lab.run.partner.identity import PartnerIdentity, draw_partner_identity
from lab.run.partner.live import admitted_key, target_of
from lab.run.partner.reference import reference_settings
from lab.run.services import Mortal, ServiceFaults
from lab.scenario.model import Scenario
from lab.scenario.partner_model import PartnerSpec
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.scenario.read_partner import misbehaviour_of
from lab.store.fixture_input import FIXTURE_INPUT, FixtureInput, write_fixture_input
from lab.store.server import PATH, StoreServer
from lab.store.settings import CANONICAL_DESTINATION

NO_PORTS: Mapping[str, int] = MappingProxyType({})
"""Every link listens where it may."""


class _MortalStore:
    """A store that dies with its sessions."""

    def __init__(self, server: StoreServer) -> None:
        self._server = server

    async def crash(self) -> None:
        """Die as a process does."""
        await self._server.close()
        self._server.lose_sessions()

    async def start(self) -> None:
        """Come back where it was."""
        await self._server.start()


@dataclass(frozen=True)
class Foreign:
    """A partner API that the lab does not start: where its private files lie, and how the user is told to start it."""

    workspace: Path
    tell: Callable[[str], None]
    origin: str | None = None
    """Where it is reached, when that is not where its file says."""
    live_key: str | None = field(default=None, repr=False)
    """The chat key that was approved for a live one; None drives none."""

    def running(self, now_ms: int) -> FixtureOutput | None:
        """The one that runs now. See `found_fixture`."""
        return found_fixture(self.workspace, now_ms, allow_production=self.live_key is not None)


@dataclass
class PartnerWorld:
    """The running participants of a scenario of the partner leg."""

    ctx: RunContext
    around: RunContext
    """The same run with the wall clock of everything but the partner API, which a control can set ahead."""
    identity: PartnerIdentity
    target: Target
    issuer_target: IssuerTarget
    store: StoreServer
    issuer: IssuerServer
    issuer_core: IssuerCore
    api: PartnerServer | None
    """The lab's own model; None when another partner API is driven."""
    links: Mapping[str, FaultLink]
    faults: LinkFaults
    services: ServiceFaults
    base: Mapping[str, str]
    """Scheme, host and port at which each participant is reached: at its link, else at itself."""
    scratch: Path
    """Folder of what must not lie in the run's own: the state of the partner API."""
    carrier: Part
    """What stands beside the links, and tells what of them is left."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys by the names that a report may say."""
    fixture: FixtureOutput | None = None
    """What another partner API told of itself in its private file."""

    def check_time(self) -> None:
        """Raises `NotApplicable` when the fixture ends too soon for a further step (FX-039)."""
        if self.fixture is not None and not self.fixture.has_time(self.ctx.wall_ms()):
            raise NotApplicable(
                "expired: less than 60 s are left to the partner API's fixture. Start it again, and run again."
            )

    @property
    def model(self) -> PartnerServer:
        """The lab's own model. Raises `NotApplicable` when another partner API is driven."""
        if self.api is None:
            raise NotApplicable("not applicable: the partner API is not the lab's own, and has no controls")
        return self.api

    @property
    def controls(self) -> Controls:
        """What only the lab's own model can be made to do (PA-055).

        Raises `NotApplicable` for another partner API, and `UsageError` while a crash lasts.
        """
        if self.model.closed.is_set():
            raise UsageError("a control was used while the partner API was crashed. Use it before, or after its time.")
        return self.model.controls

    async def end(self) -> None:
        """End everything and remove what it left on disk, also when the caller is cancelled meanwhile.

        Raises `EnvironmentFault` when a part does not end in time, and the first error of a part that cannot.
        """
        try:
            await end_in_time(self._close())
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    async def _close(self) -> None:
        self.faults.close()
        own = () if self.api is None else (self.api,)
        errors = await close_all((self.services, *self.links.values(), self.carrier, *own, self.store, self.issuer))
        for further in errors[1:]:
            self.ctx.fail(further)
        if errors:
            raise errors[0]


async def build_partner_world(
    ctx: RunContext,
    scenario: Scenario,
    faults: Address | None = None,
    *,
    ports: Mapping[str, int] = NO_PORTS,
    foreign: Foreign | None = None,
) -> PartnerWorld:
    """Start store, issuer, partner API and links. If one cannot start, those before it are ended again.

    `faults` is the Toxiproxy server that carries the links; None takes the lab's own engine, whose links listen at
    `ports`, by their targets, where they are named there. `foreign` takes the place of the lab's own partner API.
    """
    spec = scenario.partner
    if spec is None:
        raise MisuseError(f"{scenario.file}: no scenario of the partner leg")
    builder = _Builder(ctx, scenario, spec, carrier_of(ctx, faults), dict(ports))
    try:
        return await builder.build(foreign)
    except BaseException:
        await close_all(reversed(builder.started))
        shutil.rmtree(builder.scratch, ignore_errors=True)
        raise


class _Builder:
    def __init__(
        self, ctx: RunContext, scenario: Scenario, spec: PartnerSpec, carrier: Carrier, ports: dict[str, int]
    ) -> None:
        self._ctx = ctx
        self._around = ctx.apart()
        self._scenario = scenario
        self._spec = spec
        self._carrier = carrier
        self._ports = ports
        self._identity = draw_partner_identity(ctx, tuple(spec.api.agents))
        self._seal = Seal(self._identity.seal_key)
        self._links: dict[str, FaultLink] = {}
        self._base: dict[str, str] = {}
        self.scratch = _scratch()
        self.started: list[Part] = [carrier]

    async def build(self, foreign: Foreign | None) -> PartnerWorld:
        """Start everything; what was started so far is in `started`."""
        running = None if foreign is None else foreign.running(self._ctx.wall_ms())
        if foreign is not None and running is not None and running.issuer is None:
            # It was told of a store before: that is where it has to be again.
            serving = serving_of(foreign.workspace)
            self._ports[STORE] = serving.port
            self._identity = replace(self._identity, static_credential=serving.static_credential)
        issuer_core = make_issuer(self._around, self._identity, self._seal, self._spec.issuer.ttl)
        store, issuer = await self._doubles(issuer_core)
        services: dict[str, Mortal] = {STORE: _MortalStore(store)}
        api: PartnerServer | None = None
        output: FixtureOutput | None = None
        if foreign is None:
            api = services[PARTNER_API] = await self._reference()
            target, grants = self._own_target(), self._own_issuer()
        else:
            output = await self._fixture(foreign, running)
            target, grants = self._foreign_target(output), output.issuer or self._own_issuer()
        return PartnerWorld(
            self._ctx,
            self._around,
            self._identity,
            target,
            grants,
            store,
            issuer,
            issuer_core,
            api,
            self._links,
            LinkFaults(self._ctx, self._links, _no_instance),
            ServiceFaults(self._ctx, services),
            self._base,
            self.scratch,
            self._carrier,
            self._identity.secrets(),
            output,
        )

    async def _doubles(self, issuer_core: IssuerCore) -> tuple[StoreServer, IssuerServer]:
        spec = self._spec.store
        core = make_store(self._around, self._identity, self._seal, issuer_core, spec.answers, spec.refusal)
        core.misbehave(misbehaviour_of(one) for one in spec.misbehave)
        # A link listens at the port that is asked for; without one the store itself does.
        linked = any(link.to == STORE for link in self._scenario.links.values())
        store = StoreServer(self._around, STORE, core, port=0 if linked else self._ports.get(STORE, 0))
        issuer = IssuerServer(self._around, ISSUER, issuer_core)
        self._declare(STORE, "double", destination=CANONICAL_DESTINATION)
        self._declare(ISSUER, "double")
        await store.start()
        self.started.append(store)
        await issuer.start()
        self.started.append(issuer)
        await self._link(STORE, store.base)
        await self._link(ISSUER, issuer.base)
        return store, issuer

    async def _reference(self) -> PartnerServer:
        """The lab's own model, which is told at its start where the store's link stands."""
        url = self._base[STORE] + PATH
        settings = reference_settings(self._spec.api, self._identity, self._seal, url, self.scratch)
        api = PartnerServer(self._ctx, PARTNER_API, settings)
        self._declare(PARTNER_API, "reference", organizationId=self._identity.organization_id)
        await api.start()
        self.started.append(api)
        await self._link(PARTNER_API, api.url)
        return api

    async def _fixture(self, foreign: Foreign, running: FixtureOutput | None) -> FixtureOutput:
        """The running fixture, or the one that is started now that it can know of the store."""
        if running is None:
            url = self._base[STORE] + PATH
            given = FixtureInput(url, self._identity.static_credential)
            registered = {int(urlsplit(url).port or 0)}
            write_fixture_input(foreign.workspace / FIXTURE_INPUT, given, store_tool_set(), registered)
            running = await await_fixture(foreign.workspace, self._ctx.wall_ms, foreign.tell)
        origin = foreign.origin or running.api_origin
        chat_key = admitted_key(running, origin, foreign.live_key)
        target = target_of(running, origin)
        self._declare(PARTNER_API, "attach", organizationId=running.organization_id, origin=origin, target=target)
        # What is encrypted up to a name cannot pass through a link that has another one.
        if origin.startswith("http://"):
            await self._link(PARTNER_API, origin)
        else:
            self._base[PARTNER_API] = origin
        self._identity = replace(
            self._identity,
            organization_id=running.organization_id,
            chat_key=chat_key,
            provisioning_key=running.provisioning_key,
            issuer_key=self._identity.issuer_key if running.issuer is None else running.issuer.issuer_key,
            agents={name: running.agent_id or agent for name, agent in self._identity.agents.items()},
        )
        return running

    def _own_target(self) -> Target:
        return Target(self._base[PARTNER_API], self._identity.organization_id, self._identity.chat_key)

    def _foreign_target(self, output: FixtureOutput) -> Target:
        return replace(self._own_target(), agent_id=output.agent_id, external_team_id=output.external_team_id)

    def _own_issuer(self) -> IssuerTarget:
        base, identity = self._base[ISSUER], self._identity
        return IssuerTarget(f"{base}/grants", identity.issuer_key, f"{base}/conversations", identity.register_key)

    def _declare(self, name: str, how: str, **facts: object) -> None:
        self._ctx.journal.record("run", ParticipantDeclared(name, name, how, facts))

    async def _link(self, target: str, base: str) -> None:
        """The link before `target`, if the scenario has one."""
        self._base[target] = base
        for spec in self._scenario.links.values():
            if spec.to != target:
                continue
            url = urlsplit(base)
            upstream = (str(url.hostname), int(url.port or 80))
            port = self._ports.get(target)
            link: FaultLink = (
                self._carrier.link(spec, upstream)
                if port is None
                else Link(self._ctx, spec.name, upstream, port=port, delay=spec.delay, to=spec.to)
            )
            await link.start()
            self.started.append(link)
            self._links[spec.name] = link
            self._base[target] = f"http://{link.address[0]}:{link.address[1]}"


def _scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="lab-"))
    except OSError as error:
        raise EnvironmentFault(
            f"no temporary folder can be made: {error.strerror}. Set TMPDIR to a folder with room."
        ) from error


def _no_instance(name: str) -> tuple[str, int]:
    raise MisuseError(f"{name}: no link of the partner leg moves to another instance")
