"""A Local Agent under test, in the three ways in which one can be had: the reference, a program, an attached one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from lab.context import RunContext
from lab.errors import MisuseError, UsageError
from lab.journal.events import SutChanged
from lab.localagent.agent import LocalAgent
from lab.localagent.config import AgentConfig, Workspace
from lab.protocol.capabilities import of_revision
from lab.protocol.contract import Contract
from lab.run.agent_log import AgentLog
from lab.scenario.model import LocalAgentSpec
from lab.sim.hosts import Host
from lab.sim.loop import SimLoop
from lab.sut.process import SutProcess

REFERENCE_HANDLES = ("job.assign", "job.cancel", "approval.decision", "content.request")
"""Types of data frames that the reference agent has a handler for."""

ATTACH_SECONDS = 600.0
"""How long the lab waits for a person to start the agent that is to be attached."""


@dataclass(frozen=True)
class Surroundings:
    """What a Local Agent is told of its run, whatever it is."""

    tenant_id: str
    agent_id: str
    gateway_url: str
    gateway_token: str = field(repr=False)
    agent2_url: str
    agent2_token: str = field(repr=False)
    workspaces: Mapping[str, Path] = field(repr=False)
    """What the agent calls each of its workspaces."""
    folders: Mapping[str, Path] = field(repr=False)
    """Where each of them is; the same, unless the agent is the reference."""
    trusted_keys: Mapping[str, bytes]
    home: Path
    """A folder of its own, outside the run's folder."""
    chat: bool
    contract_folder: Path


class Sut(Protocol):
    """A Local Agent under test."""

    name: str
    patience: float
    """Seconds that it may take until its gateway hears of it; 0 when that is for the scenario's steps to say."""
    state: Path | None
    """The folder of what it keeps on disk, where the lab may look; None where nobody told."""
    facts: Mapping[str, object]
    """What laws need to know of it: `revision` of its contract, `window` (data frames without an ack at most), and what
    it has a handler for: `handles` (types of data frames), `serves` (kinds of content)."""

    async def start(self) -> None:
        """Bring it up; whether it is ready is what the gateway double sees."""

    async def close(self) -> None:
        """End it and all it started. Safe to call again."""

    async def kill(self) -> None:
        """End it at once, without its knowing."""

    async def restart(self) -> None:
        """Start it again, after `kill`."""

    def pause(self) -> None:
        """Stop it where it is."""

    def go_on(self) -> None:
        """Let it go on, after `pause`."""

    def death(self) -> str | None:
        """How it died, in a sentence; None while it lives, or when nobody can tell."""


class ReferenceSut:
    """The lab's own Local Agent, in this process."""

    def __init__(
        self, ctx: RunContext, spec: LocalAgentSpec, around: Surroundings, contract: Contract, log: AgentLog
    ) -> None:
        self.name = spec.name
        self.patience = 0.0
        self.state: Path | None = around.home / "state"
        self._ctx = ctx
        self._log = log
        config = AgentConfig(
            tenant_id=around.tenant_id,
            agent_id=around.agent_id,
            gateway_ws_url=around.gateway_url,
            gateway_token=around.gateway_token,
            agent2_url=around.agent2_url,
            agent2_token=around.agent2_token,
            workspaces=tuple(
                Workspace(name, str(path), str(around.folders[name])) for name, path in around.workspaces.items()
            ),
            trusted_keys=around.trusted_keys,
            state_dir=around.home / "state",
            signature_mode=spec.signature_mode,
            # An agent from before chat does not serve it, whatever agent2 can.
            chat=around.chat and bool(of_revision(("job.chat",), contract.revision)),
            clock_ahead=spec.clock,
            **_settings(spec),
        )
        chat = ("job.stream", "chat.session") if config.chat else ()
        self.facts: Mapping[str, object] = {
            "revision": contract.revision,
            "window": config.max_in_flight,
            "handles": REFERENCE_HANDLES,
            "serves": ("file.list", *chat),
        }
        self._make: Callable[[int], LocalAgent] = lambda life: LocalAgent(
            ctx.for_life(life), spec.name, config, contract
        )
        self._life = 1
        self._agent = self._make(self._life)
        self._host: Host | None = None
        self._starting: asyncio.Task[None] | None = None
        """The start of the life that a `restart` began."""

    async def start(self) -> None:
        """Start it; on the virtual clock it has a host of its own, which can be stopped and crash."""
        self._log.open()
        with self._log.speaking():
            await (self._spawn() if isinstance(asyncio.get_running_loop(), SimLoop) else self._agent.start())

    def _spawn(self) -> asyncio.Task[None]:
        self._host = Host(self.name)
        return self._host.spawn(self._agent.start(), f"start {self.name}")

    async def close(self) -> None:
        """End it."""
        try:
            if self._host is None or self._host.runs:
                with self._log.speaking():
                    await self._agent.close()
        finally:
            self._log.close()

    async def kill(self) -> None:
        """Let its host crash."""
        loop, host = self._simulated()
        loop.crash(host)

    async def restart(self) -> None:
        """A new agent on a new host, with what is on disk.

        Returns once the start is asked for, as with a program: how long it takes, such as with an agent2 that is
        down, is no part of the fault that is over. A start that fails ends the run.
        """
        self._simulated()
        self._life += 1
        self._agent = self._make(self._life)
        self._ctx.journal.record("sut", SutChanged(self.name, "started"))
        with self._log.speaking():
            self._starting = self._spawn()
        self._starting.add_done_callback(self._note_start)

    def _note_start(self, start: asyncio.Task[None]) -> None:
        error = None if start.cancelled() else start.exception()
        if error is not None:
            self._ctx.fail(error)

    def pause(self) -> None:
        """Stop its host."""
        self._simulated()[1].pause()

    def go_on(self) -> None:
        """Let its host go on."""
        loop, host = self._simulated()
        loop.resume(host)

    def _simulated(self) -> tuple[SimLoop, Host]:
        loop = asyncio.get_running_loop()
        if self._host is None or not isinstance(loop, SimLoop):
            raise MisuseError("on the real clock the reference agent cannot be killed: it shares the lab's process")
        return loop, self._host

    def death(self) -> str | None:
        """It shares the lab's life."""
        return None


def _settings(spec: LocalAgentSpec) -> dict[str, Any]:
    """A scenario's settings of the reference agent; one that it lacks, or of another type, raises `UsageError`."""
    defaults = {item.name: item.default for item in fields(AgentConfig) if item.default is not MISSING}
    for told in ("signature_mode", "chat", "clock_ahead"):
        # What the scenario says elsewhere.
        del defaults[told]
    for name, value in spec.settings.items():
        if name not in defaults:
            raise UsageError(f"{spec.name}: the reference agent has no setting `{name}`; it has {', '.join(defaults)}.")
        kind = type(defaults[name])
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise UsageError(f"{spec.name}: the setting `{name}` is a {kind.__name__}, such as {defaults[name]}.")
    return dict(spec.settings)


class ProgramSut:
    """A program that the lab starts, watches and stops."""

    def __init__(self, make: Callable[[int], SutProcess], patience: float, state: Path | None, window: int) -> None:
        self._make = make
        self._life = 1
        self._killed = False
        process = make(self._life)
        self.name = process.name
        self.patience = patience
        self.state = state
        self.facts: Mapping[str, object] = {"window": window}
        self._process = process

    async def start(self) -> None:
        """Start it."""
        await self._process.start()

    async def close(self) -> None:
        """Stop it and everything it started."""
        await self._process.stop()

    def death(self) -> str | None:
        """Its exit and last words, once it is gone."""
        return self._process.death_report() if self._process.exited.is_set() and not self._killed else None

    async def kill(self) -> None:
        """SIGKILL, to all of it."""
        self._killed = True
        await self._process.kill()

    async def restart(self) -> None:
        """Start it again, with a log of its own."""
        self._life += 1
        self._process = self._make(self._life)
        await self._process.start()
        self._killed = False

    def pause(self) -> None:
        """SIGSTOP, to all of it."""
        self._process.pause()

    def go_on(self) -> None:
        """SIGCONT, to all of it."""
        self._process.go_on()


class AttachedSut:
    """Something that a person or another system runs; the lab tells what it needs and waits."""

    def __init__(self, ctx: RunContext, name: str, environment: str, show: Callable[[str], None]) -> None:
        self.name = name
        self.patience = ATTACH_SECONDS
        self.state: Path | None = None
        self.facts: Mapping[str, object] = {}
        self._ctx = ctx
        self._environment = environment
        self._show = show

    async def kill(self) -> None:
        """It is not the lab's to kill; see `check_process_faults`."""
        raise MisuseError("an attached agent is not the lab's to kill")

    restart = kill

    def pause(self) -> None:
        """It is not the lab's to stop; see `check_process_faults`."""
        raise MisuseError("an attached agent is not the lab's to stop")

    go_on = pause

    async def start(self) -> None:
        """Show its environment."""
        self._show(f"# start your Local Agent `{self.name}` within {self.patience:g} s with\n{self._environment}")
        self._ctx.journal.record("sut", SutChanged(self.name, "attached"))

    async def close(self) -> None:
        """It is not the lab's to end."""

    def death(self) -> str | None:
        """Nobody can tell."""
        return None
