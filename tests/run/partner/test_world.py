"""Participants of the partner leg: wired through their links, and gone at the end, whatever happens."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError, NotApplicable, UsageError
from lab.grants.binding import GrantBinding
from lab.grants.seal import Seal
from lab.journal.events import LinkOpened, ParticipantDeclared
from lab.journal.writer import Journal
from lab.run.partner import world as module
from lab.run.partner.identity import PartnerIdentity, draw_partner_identity
from lab.run.partner.world import PartnerWorld, build_partner_world
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual
from lab.store.server import StoreServer
from tests.run.made import scenario as chat_scenario
from tests.run.partner.played import ASKED, OPENED, events_of, passed, play, written

LINKS = "links: { partner_api: {}, store: {}, issuer: {} }\n"


def left_in(folder: Path) -> list[Path]:
    return [*folder.iterdir()]


def made() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
    return RunContext(3, clock, Journal(clock.now))


def with_world(scenario: Scenario, do: Callable[[PartnerWorld], Awaitable[None]]) -> None:
    async def go() -> None:
        world = await build_partner_world(made(), scenario)
        try:
            await do(world)
        finally:
            await world.end()

    run_virtual(go, 3)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_each_is_reached_through_its_link(tmp_path: Path) -> None:
    """The model knows the store by its link too; without one a participant is reached at itself."""

    async def linked(world: PartnerWorld) -> None:
        for name in ("partner_api", "store", "issuer"):
            host, port = world.links[name].address
            assert world.base[name] == f"http://{host}:{port}"
        assert world.target.site.base.startswith(f"{world.base['partner_api']}/v1/orgs/")
        assert world.issuer_target.grants_url == f"{world.base['issuer']}/grants"
        assert [*world.model.settings.destinations.values()] == [f"{world.base['store']}/mcp"]
        events = [entry.event for entry in world.ctx.journal.entries]
        declared = {event.name: event.how for event in events if isinstance(event, ParticipantDeclared)}
        assert declared == {"store": "double", "issuer": "double", "partner_api": "reference"}
        assert {event.link for event in events if isinstance(event, LinkOpened)} == {*world.links}

    async def bare(world: PartnerWorld) -> None:
        assert world.links == {}
        assert world.base["store"] == world.store.base
        assert world.base["partner_api"] == world.model.url

    with_world(written(tmp_path, OPENED, more=LINKS), linked)
    with_world(written(tmp_path, OPENED, more="links: {}\n"), bare)


def test_ending_leaves_nothing(tmp_path: Path, folders: Path) -> None:
    """No task, no folder; it may be ended while a crash lasts."""

    async def crashed(world: PartnerWorld) -> None:
        assert [world.scratch] == left_in(folders)
        await world.model.crash()
        with pytest.raises(UsageError, match="while the partner API was crashed"):
            _ = world.controls

    with_world(written(tmp_path, OPENED, "{ keeps_state: true }"), crashed)
    assert left_in(folders) == []


def test_no_secret_is_in_what_is_shown_of_it(tmp_path: Path) -> None:
    """SEC-012: neither in its text nor in what it declares."""

    async def shown(world: PartnerWorld) -> None:
        secrets = world.secrets.values()
        assert len({*secrets}) == len(secrets) >= 6
        text = repr(world.identity) + repr(world.target) + repr(world.issuer_target)
        text += "".join(str(entry.event) for entry in world.ctx.journal.entries)
        assert [one for one in secrets if one in text] == []

    with_world(written(tmp_path, OPENED), shown)


@pytest.mark.parametrize("taken", ["partner_api", "store", "issuer"])
async def test_a_port_that_is_taken(taken: str, tmp_path: Path, folders: Path) -> None:
    """It is named; what was started before it is ended again, so that its ports are free."""
    names = ("partner_api", "store", "issuer")
    with socket.create_server(("127.0.0.1", 0)) as busy, _free_port() as one, _free_port() as two:
        frees = iter((one.getsockname()[1], two.getsockname()[1]))
        ports = {name: busy.getsockname()[1] if name == taken else next(frees) for name in names}
        one.close()
        two.close()
        scenario = written(tmp_path, OPENED, more=LINKS)
        with pytest.raises(EnvironmentFault, match=rf"127\.0\.0\.1:{ports[taken]}\b"):
            await build_partner_world(made(), scenario, ports=ports)
    assert left_in(folders) == []
    for name in names:
        socket.create_server(("127.0.0.1", ports[name])).close()


def _free_port() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_part_that_does_not_end_is_told_and_spares_no_other(
    tmp_path: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first error is raised, and the scratch folder is gone all the same."""
    close = StoreServer.close

    async def fails(self: StoreServer) -> None:
        await close(self)
        raise EnvironmentFault("the store would not end")

    async def go() -> None:
        world = await build_partner_world(made(), written(tmp_path, OPENED))
        monkeypatch.setattr(StoreServer, "close", fails)
        with pytest.raises(EnvironmentFault, match="would not end"):
            await world.end()
        with pytest.raises(MisuseError):
            _ = world.model.url
        assert left_in(folders) == []

    run_virtual(go, 3)


def test_no_room_for_a_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    scenario = written(tmp_path, OPENED)

    async def go() -> None:
        with pytest.raises(EnvironmentFault, match="no temporary folder can be made"):
            await build_partner_world(made(), scenario)

    run_virtual(go, 3)


async def test_a_scenario_of_the_chat_leg_has_no_such_world() -> None:
    with pytest.raises(MisuseError, match="no scenario of the partner leg"):
        await build_partner_world(made(), chat_scenario())


def test_another_partner_api_has_no_controls(tmp_path: Path) -> None:
    async def foreign(world: PartnerWorld) -> None:
        other = replace(world, api=None)
        with pytest.raises(NotApplicable, match="has no controls"):
            _ = other.controls

    with_world(written(tmp_path, OPENED), foreign)


def test_no_link_moves() -> None:
    """The grammar has no such fault in this leg."""
    with pytest.raises(MisuseError):
        module._no_instance("store")


@pytest.mark.req("PRIV-016")
def test_links_keep_nothing_of_what_passes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no grant and no body: of three links and their toxics the journal and the run's folder have numbers."""
    drawn: list[PartnerIdentity] = []
    grants: list[str] = []
    seal = Seal.seal

    def drawing(ctx: RunContext, names: tuple[str, ...]) -> PartnerIdentity:
        drawn.append(draw_partner_identity(ctx, names))
        return drawn[-1]

    def sealing(self: Seal, binding: GrantBinding, nonce: bytes) -> str:
        grants.append(seal(self, binding, nonce))
        return grants[-1]

    monkeypatch.setattr(module, "draw_partner_identity", drawing)
    monkeypatch.setattr(Seal, "seal", sealing)
    slow = "  - fault: {{ link: {}, toxic: latency, attributes: {{ latency: 20 }}, for: 60s }}\n"
    faults = "".join(slow.format(link) for link in ("partner_api", "store", "issuer"))
    result = passed(play(tmp_path, f"{faults}{ASKED}  - follow: {{ run: r1 }}\n", more=LINKS))
    assert {event.link for event in events_of(result, LinkOpened)} == {"partner_api", "store", "issuer"}
    left = b"".join(path.read_bytes() for path in result.folder.rglob("*") if path.is_file())
    assert left
    for name, secret in {**drawn[0].secrets(), **{f"grant {at}": grant for at, grant in enumerate(grants)}}.items():
        assert secret.encode() not in left, name
    assert grants
    for word in (b"Bearer ", b"tg1.", b"X-Store-Context-Grant"):
        assert word not in left
