"""Every participant of a scenario of the partner leg, started in order and wired through links."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.address import Address
from lab.faults.fault_link import FaultLink
from lab.grants.seal import Seal
from lab.grants.server import IssuerServer
from lab.journal.events import ParticipantDeclared
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import AgentSettings, GivenKeys, GrantClaims, McpCandidate, PartnerSettings
from lab.run.ending import Part, close_all, end_in_time
from lab.run.fault_server import Carrier, carrier_of
from lab.run.link_faults import LinkFaults
from lab.run.partner.doubles import make_issuer, make_store
from lab.run.partner.identity import ENVIRONMENT, NAMESPACE, PartnerIdentity, draw_partner_identity
from lab.run.services import ServiceFaults
from lab.scenario.model import Scenario
from lab.scenario.partner_model import PartnerAgentSpec, PartnerSpec
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.scenario.read_partner import misbehaviour_of
from lab.store.server import PATH, StoreServer
from lab.store.settings import CANONICAL_DESTINATION

OTHER_SERVER = ("other-store", "https://93.184.216.35/mcp")
"""A second store that an agent with several candidates is allowed; nothing listens there and nothing calls it."""


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


@dataclass
class PartnerWorld:
    """The running participants of a scenario of the partner leg."""

    ctx: RunContext
    around: RunContext
    """The same run with the wall clock of everything but the partner API, which a control can set ahead."""
    identity: PartnerIdentity
    store: StoreServer
    issuer: IssuerServer
    api: PartnerServer
    links: Mapping[str, FaultLink]
    faults: LinkFaults
    services: ServiceFaults
    base: Mapping[str, str]
    """Scheme, host and port at which each participant is reached: at its link, else at itself."""
    scratch: Path
    """Folder of what must not lie in the run's own: the state of the partner API."""
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
        self.faults.close()
        errors = await close_all((self.services, *self.links.values(), self.carrier, self.api, self.store, self.issuer))
        for further in errors[1:]:
            self.ctx.fail(further)
        if errors:
            raise errors[0]


async def build_partner_world(ctx: RunContext, scenario: Scenario, faults: Address | None = None) -> PartnerWorld:
    """Start store, issuer, partner API and links. If one cannot start, those before it are ended again.

    `faults` is the Toxiproxy server that carries the links; None takes the lab's own engine.
    """
    spec = scenario.partner
    if spec is None:
        raise MisuseError(f"{scenario.file}: no scenario of the partner leg")
    builder = _Builder(ctx, scenario, spec, _scratch(), carrier_of(ctx, faults))
    try:
        return await builder.build()
    except BaseException:
        await close_all(reversed(builder.started))
        shutil.rmtree(builder.scratch, ignore_errors=True)
        raise


class _Builder:
    def __init__(self, ctx: RunContext, scenario: Scenario, spec: PartnerSpec, scratch: Path, carrier: Carrier) -> None:
        self._ctx = ctx
        self._around = ctx.apart()
        self._scenario = scenario
        self._spec = spec
        self._carrier = carrier
        self._identity = draw_partner_identity(ctx, tuple(spec.api.agents))
        self._seal = Seal(self._identity.seal_key)
        self._links: dict[str, FaultLink] = {}
        self._base: dict[str, str] = {}
        self.scratch = scratch
        self.started: list[Part] = [carrier]

    async def build(self) -> PartnerWorld:
        """Start everything; what was started so far is in `started`."""
        spec = self._spec.store
        issuer_core = make_issuer(self._around, self._identity, self._seal, self._spec.issuer.ttl)
        store_core = make_store(self._around, self._identity, self._seal, issuer_core, spec.answers, spec.refusal)
        store_core.misbehave(misbehaviour_of(one) for one in spec.misbehave)
        store = StoreServer(self._around, STORE, store_core)
        issuer = IssuerServer(self._around, ISSUER, issuer_core)
        self._declare(STORE, "double", destination=CANONICAL_DESTINATION)
        self._declare(ISSUER, "double")
        await store.start()
        self.started.append(store)
        await issuer.start()
        self.started.append(issuer)
        await self._link(STORE, store.base)
        await self._link(ISSUER, issuer.base)
        # The partner API is told at its start where the store's link stands.
        api = PartnerServer(self._ctx, PARTNER_API, self._settings())
        self._declare(PARTNER_API, "reference", organizationId=self._identity.organization_id)
        await api.start()
        self.started.append(api)
        await self._link(PARTNER_API, api.url)
        return PartnerWorld(
            self._ctx,
            self._around,
            self._identity,
            store,
            issuer,
            api,
            self._links,
            LinkFaults(self._ctx, self._links, _no_instance),
            ServiceFaults(self._ctx, {PARTNER_API: api, STORE: _MortalStore(store)}),
            self._base,
            self.scratch,
            self._carrier,
        )

    def _declare(self, name: str, how: str, **facts: object) -> None:
        self._ctx.journal.record("run", ParticipantDeclared(name, name, how, facts))

    async def _link(self, target: str, base: str) -> None:
        """The link before `target`, if the scenario has one."""
        self._base[target] = base
        for spec in self._scenario.links.values():
            if spec.to != target:
                continue
            url = urlsplit(base)
            link = self._carrier.link(spec, (str(url.hostname), int(url.port or 0)))
            await link.start()
            self.started.append(link)
            self._links[spec.name] = link
            host, port = link.address
            self._base[target] = f"http://{host}:{port}"

    def _settings(self) -> PartnerSettings:
        spec, identity = self._spec.api, self._identity
        return PartnerSettings(
            identity.organization_id,
            spec.teams,
            tuple(self._agent(agent) for agent in spec.agents.values()),
            namespace=NAMESPACE,
            environment=ENVIRONMENT,
            destinations={CANONICAL_DESTINATION: self._base[STORE] + PATH},
            static_credential=identity.static_credential,
            keys=GivenKeys(identity.chat_key, identity.provisioning_key, identity.control_key),
            claim_reader=self._claims if spec.checks_claims else None,
            keep_alive_seconds=spec.keep_alive,
            status_after_error=spec.status_after_error,
            state_path=self.scratch / "partner.sqlite" if spec.keeps_state else None,
            mcp_era=spec.mcp_era,
        )

    def _agent(self, spec: PartnerAgentSpec) -> AgentSettings:
        store = McpCandidate(self._identity.server_id, CANONICAL_DESTINATION)
        candidates = {"store": (store,), "none": None, "lost": (), "several": (store, McpCandidate(*OTHER_SERVER))}
        return AgentSettings(
            self._identity.agents[spec.name],
            spec.team,
            spec.name,
            mcp=candidates[spec.mcp],
            script=spec.script,
            profile=spec.profile,
        )

    def _claims(self, grant: str) -> GrantClaims | None:
        opened = self._seal.open(grant)
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


def _scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="lab-"))
    except OSError as error:
        raise EnvironmentFault(
            f"no temporary folder can be made: {error.strerror}. Set TMPDIR to a folder with room."
        ) from error


def _no_instance(name: str) -> tuple[str, int]:
    raise MisuseError(f"{name}: no link of the partner leg moves to another instance")
