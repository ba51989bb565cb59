"""Starting and ending every participant."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.errors import EnvironmentFault, UsageError
from lab.faults.plan import Fault
from lab.gateway.server import GatewayServer
from lab.journal.events import ConnectionLeft, LinkOpened, ParticipantDeclared, SecretsDrawn, SutFile
from lab.journal.writer import Journal
from lab.protocol.contract import default_contract_folder
from lab.run import ending
from lab.run import world as worlds
from lab.run.agents import SutChoice
from lab.run.fault_server import OwnEngine
from lab.run.identity import WORKSPACE_ID, draw_identity
from lab.run.link_faults import LinkFaults
from lab.run.processes import ProcessFaults
from lab.run.services import ServiceFaults
from lab.run.suts import Sut
from lab.run.world import World, build_world
from lab.scenario.model import Agent2Spec, AssignStep, GatewaySpec, LinkSpec, LocalAgentSpec, Scenario
from tests.command_line import ROOT
from tests.run.made import context, scenario

LINKS = {"gateway": LinkSpec("gateway", "gateway"), "agent2": LinkSpec("agent2", "agent2")}


def running() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, 1_700_000_000_000)
    return RunContext(1, clock, Journal(clock.now))


def choice(folder: Path, use: str | None = None) -> SutChoice:
    return SutChoice(use, {}, ROOT / "scenarios" / "profiles", folder, print)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where homes and states lie, to be looked at."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def build(ctx: RunContext, made: Scenario, folder: Path, use: str | None = None) -> World:
    return await build_world(ctx, made, default_contract_folder(), choice(folder, use))


async def test_all_that_a_scenario_names_is_there(tmp_path: Path, temporary: Path) -> None:
    """Several of each, an agent by its own link before the one for all; nothing is left of them at the end."""
    ctx = running()
    made = scenario(
        gateways={"west": GatewaySpec("west"), "east": GatewaySpec("east", tenant_mode="hosted")},
        agent2s={"agent2": Agent2Spec("agent2", kinds=("chat",), health_delay=0.05)},
        local_agents={
            "one": LocalAgentSpec("one", gateway="west"),
            "two": LocalAgentSpec("two", gateway="east"),
        },
        links={
            "all": LinkSpec("all", "west"),
            "mine": LinkSpec("mine", "west", of="one", delay=0.001),
            "other": LinkSpec("other", "west", of="two"),
        },
    )
    world = await build(ctx, made, tmp_path)
    try:
        assert worlds._address(world, made, made.local_agents["one"], "west") == ":".join(
            map(str, world.links["mine"].address)
        )
        assert worlds._address(world, made, made.local_agents["two"], "east") == ":".join(
            map(str, world.gateways["east"].address)
        )
        assert world.agent2s["agent2"].url.endswith(
            worlds._address(world, made, made.local_agents["one"], "agent2").rpartition(":")[2]
        )
        began = asyncio.get_running_loop().time()
        async with aiohttp.ClientSession() as http, http.get(f"{world.agent2s['agent2'].url}/health") as health:
            assert health.status == 200
        assert asyncio.get_running_loop().time() - began >= 0.05
        workspaces = [world.scratch / name / "workspace" for name in ("one", "two")]
        for path in (world.scratch, *workspaces):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert [world.identity.canaries[f"workspace-path.{name}"] for name in ("one", "two")] == [
            "/lab/agents/one/workspace",
            "/lab/agents/two/workspace",
        ]
    finally:
        await world.end()
    declared = [entry.event for entry in ctx.journal.entries if isinstance(entry.event, ParticipantDeclared)]
    assert [(one.name, one.role, one.how) for one in declared] == [
        ("agent2", "agent2", "double"),
        ("west", "gateway", "double"),
        ("east", "gateway", "double"),
        ("one", "local_agent", "reference"),
        ("two", "local_agent", "reference"),
    ]
    assert [one.facts["roots"] for one in declared[3:]] == [
        {WORKSPACE_ID: [hashlib.sha256(str(path).encode()).hexdigest()]} for path in world.workspaces.values()
    ]
    assert [entry.event.link for entry in ctx.journal.entries if isinstance(entry.event, LinkOpened)] == [
        "all",
        "mine",
        "other",
    ]
    assert left_in(temporary) == []


async def test_a_workspace_is_known_by_each_form_of_its_path(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may resolve the link that leads to it."""
    link = tmp_path / "link"
    link.symlink_to(temporary)
    monkeypatch.setattr("tempfile.tempdir", str(link))
    ctx = running()
    world = await build(ctx, scenario(), tmp_path, "attach")
    await world.end()
    path = world.scratch / "local_agent" / "workspace"
    (declared,) = (
        entry.event
        for entry in ctx.journal.entries
        if isinstance(entry.event, ParticipantDeclared) and entry.event.role == "local_agent"
    )
    forms = (str(path), str(path).replace(str(link), str(temporary)))
    assert declared.facts["roots"] == {WORKSPACE_ID: [hashlib.sha256(form.encode()).hexdigest() for form in forms]}


async def test_instances_of_a_gateway_share_agents_keys_and_jobs(tmp_path: Path) -> None:
    """And nothing else: their connections have names of their own, their sessions are not one another's."""
    ctx = running()
    made = scenario(
        gateways={
            "gateway": GatewaySpec("gateway"),
            "b": GatewaySpec("b", instance_of="gateway"),
            "c": GatewaySpec("c"),
        },
        links={},
    )
    world = await build(ctx, made, tmp_path)
    try:
        first, second, other = (world.gateways[name].core for name in ("gateway", "b", "c"))
        assert first.jobs is second.jobs
        assert first.jobs is not other.jobs
        agent_id = world.identity.agents["local_agent"].agent_id
        assert [core.connect(agent_id, 0.0) for core in (second, second)] == ["b-c1", "b-c2"]
        signers = world.identity.signers
        assert signers["gateway"] is signers["b"]
        assert signers["gateway"].public_key != signers["c"].public_key
    finally:
        await world.end()


@pytest.mark.parametrize("broken", ["script", "program", "gateway"])
async def test_what_cannot_start_leaves_nothing(
    tmp_path: Path, temporary: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever had been started before it."""
    made, use, error = scenario(links=LINKS), None, UsageError
    if broken == "script":
        spec = Agent2Spec("agent2", kinds=("chat",), scripts={"chat": tmp_path / "none.yaml"})
        made = replace(made, agent2s={"agent2": spec})
    elif broken == "program":
        use = "./none at all"
    else:
        error = EnvironmentFault  # type: ignore[assignment]

        async def refuse(_self: object) -> None:
            raise EnvironmentFault("no port is left")

        monkeypatch.setattr("lab.gateway.server.GatewayServer.start", refuse)
    before = len(asyncio.all_tasks())
    with pytest.raises(error):
        await build(running(), made, tmp_path, use)
    assert left_in(temporary) == []
    assert len(asyncio.all_tasks()) == before


async def test_no_place_for_what_must_not_lie_in_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence with what to set."""
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    with pytest.raises(EnvironmentFault, match="Set TMPDIR to a folder with room"):
        await build(running(), scenario(), tmp_path)


class FakePart:
    """Ends as it is told."""

    name = "part"
    patience = 0.0
    state: Path | None = None

    def __init__(self, ended: list[str], name: str, error: Exception | None = None, *, hangs: bool = False) -> None:
        self._ended, self._name, self._error = ended, name, error
        self.go = asyncio.Event()
        if not hangs:
            self.go.set()

    async def close(self) -> None:
        await self.go.wait()
        self._ended.append(self._name)
        if self._error is not None:
            raise self._error


def world_of(ctx: RunContext, parts: Mapping[str, FakePart], scratch: Path) -> World:
    suts = cast(dict[str, Sut], dict(parts))
    link_faults = LinkFaults(ctx, {}, lambda _gateway: ("127.0.0.1", 0))
    identity = draw_identity(ctx, (), (), ())
    return World(
        ctx,
        identity,
        {},
        {},
        {},
        suts,
        link_faults,
        ServiceFaults(ctx, {}),
        ProcessFaults(ctx, suts),
        {},
        scratch,
        OwnEngine(ctx),
    )


async def test_a_part_that_fails_spares_no_other_and_no_error_is_lost(tmp_path: Path) -> None:
    """The first is raised, the others are noted."""
    ctx, ended = context(), cast(list[str], [])
    errors = [ValueError("a"), RuntimeError("b"), KeyError("c")]
    parts = {name: FakePart(ended, name, error) for name, error in zip("abc", errors, strict=True)}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ValueError, match="a"):
        await world_of(ctx, parts, scratch).end()
    assert ended == ["a", "b", "c"]
    assert ctx.defects == errors[1:]
    assert not scratch.exists()


def with_gateway(ctx: RunContext, suts: Mapping[str, FakePart], gateway: FakePart, scratch: Path) -> World:
    """A world that has something to end behind its agents."""
    return replace(world_of(ctx, suts, scratch), gateways=cast("dict[str, GatewayServer]", {"gateway": gateway}))


async def test_agents_that_cannot_be_looked_back_at_spare_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is told behind that of an agent, and what is behind it is ended."""

    async def unreadable(*_: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(worlds, "look_back", unreadable)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ctx, ended = context(), cast(list[str], [])
    agent = FakePart(ended, "agent", ValueError("of the agent"))
    with pytest.raises(ValueError, match="of the agent"):
        await with_gateway(ctx, {"a": agent}, FakePart(ended, "gateway"), scratch).end()
    assert ended == ["agent", "gateway"]
    assert [str(defect) for defect in ctx.defects] == ["no disk"]
    assert not scratch.exists()


async def test_a_program_that_cannot_go_on_spares_nobody(tmp_path: Path) -> None:
    """It stands as the faults are ended."""

    class Frozen(FakePart):
        async def restart(self) -> None:
            """It was never killed."""

        def pause(self) -> None:
            """It stands."""

        def go_on(self) -> None:
            raise ValueError("gone")

    ended: list[str] = []
    world = with_gateway(context(), {"a": Frozen(ended, "agent")}, FakePart(ended, "gateway"), tmp_path / "none")
    await world.processes.strike(Fault("p", "pause", process="a"))
    with pytest.raises(ValueError, match="gone"):
        await world.end()
    assert ended == ["agent", "gateway"]


async def test_an_agent_that_hangs_spares_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is behind it is ended once its time is over."""
    monkeypatch.setattr(ending, "CLOSING_SECONDS", 0.02)
    ended: list[str] = []
    agent = FakePart(ended, "agent", hangs=True)
    with pytest.raises(EnvironmentFault, match=r"did not end within 0\.02 s"):
        await with_gateway(context(), {"a": agent}, FakePart(ended, "gateway"), tmp_path / "none").end()
    assert ended == ["gateway"]


async def test_a_part_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time, and the folder is gone all the same."""
    monkeypatch.setattr(ending, "CLOSING_SECONDS", 0.02)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    world = world_of(context(), {"a": FakePart([], "a", hangs=True)}, scratch)
    with pytest.raises(EnvironmentFault, match=r"did not end within 0\.02 s"):
        await world.end()
    assert not scratch.exists()


async def test_ctrl_c_while_it_ends_does_not_tear_the_ending(tmp_path: Path) -> None:
    """Also the second one: everything is ended first, then the cancellation goes on its way."""
    ended: list[str] = []
    part = FakePart(ended, "a", hangs=True)
    ending = asyncio.create_task(world_of(context(), {"a": part}, tmp_path / "none").end())
    for _ in range(3):
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.sleep(0)
    assert not ending.done()
    part.go.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(ending, 10)
    assert ended == ["a"]


async def test_keys_that_scripts_and_inputs_name_are_told_as_secrets(tmp_path: Path) -> None:
    """Each once, with a value that every witness knows; the journal has their names."""
    ctx = running()
    script = ROOT / "tests" / "bugs" / "scripts" / "secret-chat.yaml"
    made = scenario(
        (AssignStep(9, None, "q1", "chat", ("{canary:my_key} and {canary:first_key}",)),),
        agent2s={"agent2": Agent2Spec("agent2", kinds=("chat",), scripts={"chat": script})},
    )
    world = await build(ctx, made, tmp_path, "attach")
    await world.end()
    told = [entry.event.canaries for entry in ctx.journal.entries if isinstance(entry.event, SecretsDrawn)]
    assert told == [("first_key", "second_key", "my_key")]
    assert len({world.identity.canaries[name] for name in told[0]}) == 3


async def test_what_an_agent_leaves_is_told_before_the_rest_is_ended(tmp_path: Path) -> None:
    """Its files by their modes, once it has ended; then they are removed."""
    ctx = running()
    world = await build(ctx, scenario(links=LINKS), tmp_path)
    state = world.suts["local_agent"].state
    assert state is not None
    state.mkdir(mode=0o700, exist_ok=True)
    (state / "queue.json").touch(mode=0o600)
    await world.end()
    files = [entry.event.path for entry in ctx.journal.entries if isinstance(entry.event, SutFile)]
    assert "queue.json" in files
    assert not [entry for entry in ctx.journal.entries if isinstance(entry.event, ConnectionLeft)]
    assert not state.exists()
