"""The three ways to have a Local Agent in a run: the reference, a program that the lab starts, and an attached one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from lab.context import RunContext
from lab.errors import UsageError
from lab.journal.events import SutChanged
from lab.localagent.agent import LocalAgent
from lab.localagent.config import AgentConfig, Workspace
from lab.protocol.contract import Contract
from lab.scenario.model import LocalAgentSpec
from lab.sut.launch import blank_values, environment_to_show, resolve
from lab.sut.port import free_port
from lab.sut.process import SutProcess
from lab.sut.profile import Profile, find_profile, profile_for_command
from lab.sut.values import SutValues

REFERENCE, ATTACH = "reference", "attach"

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

    async def start(self) -> None:
        """Bring it up; whether it is ready is what the gateway double sees."""

    async def close(self) -> None:
        """End it and all it started. Safe to call again."""

    def death(self) -> str | None:
        """How it died, in a sentence; None while it lives, or when nobody can tell."""


class ReferenceSut:
    """The lab's own Local Agent, in this process."""

    def __init__(self, ctx: RunContext, spec: LocalAgentSpec, around: Surroundings, contract: Contract) -> None:
        self.name = spec.name
        self.patience = 0.0
        config = AgentConfig(
            tenant_id=around.tenant_id,
            agent_id=around.agent_id,
            gateway_ws_url=around.gateway_url,
            gateway_token=around.gateway_token,
            agent2_url=around.agent2_url,
            agent2_token=around.agent2_token,
            workspaces=tuple(Workspace(name, str(path)) for name, path in around.workspaces.items()),
            trusted_keys=around.trusted_keys,
            state_dir=around.home / "state",
            signature_mode=spec.signature_mode,
            chat=around.chat,
            clock_ahead=spec.clock,
            **_settings(spec),
        )
        self._agent = LocalAgent(ctx, spec.name, config, contract)

    async def start(self) -> None:
        """Start it."""
        await self._agent.start()

    async def close(self) -> None:
        """End it."""
        await self._agent.close()

    def death(self) -> str | None:
        """It shares the lab's life."""
        return None


class ProgramSut:
    """A program that the lab starts, watches and stops."""

    def __init__(self, process: SutProcess, patience: float) -> None:
        self.name = process.name
        self.patience = patience
        self._process = process

    async def start(self) -> None:
        """Start it."""
        await self._process.start()

    async def close(self) -> None:
        """Stop it and everything it started."""
        await self._process.stop()

    def death(self) -> str | None:
        """Its exit and last words, once it is gone."""
        return self._process.death_report() if self._process.exited.is_set() else None


class AttachedSut:
    """Something that a person or another system runs; the lab tells what it needs and waits."""

    def __init__(self, ctx: RunContext, name: str, environment: str, show: Callable[[str], None]) -> None:
        self.name = name
        self.patience = ATTACH_SECONDS
        self._ctx = ctx
        self._environment = environment
        self._show = show

    async def start(self) -> None:
        """Show its environment."""
        self._show(f"# start your Local Agent `{self.name}` within {self.patience:g} s with\n{self._environment}")
        self._ctx.journal.record("sut", SutChanged(self.name, "attached"))

    async def close(self) -> None:
        """It is not the lab's to end."""

    def death(self) -> str | None:
        """Nobody can tell."""
        return None


@dataclass(frozen=True)
class SutChoice:
    """How local agents are had: what the command line said instead of the scenario, and where to look."""

    use: str | None
    blanks: Mapping[str, str]
    profiles: Path
    logs: Path
    show: Callable[[str], None]


def make_sut(
    ctx: RunContext,
    spec: LocalAgentSpec,
    around: Surroundings,
    contract: Contract,
    choice: SutChoice,
    canaries: Mapping[str, str],
    secrets: tuple[str, ...],
) -> Sut:
    """The SUT that a scenario or the command line asks for. Raises `UsageError` for one that cannot be had."""
    use = choice.use or spec.use
    if use == REFERENCE:
        return ReferenceSut(ctx, spec, around, contract)
    values = _values(spec, around)
    if use == ATTACH:
        launch = resolve(profile_for_command("attached"), values, around.home, {}, os.environ)
        return AttachedSut(ctx, spec.name, environment_to_show(launch), choice.show)
    profile = profile_of(use, choice.profiles)
    launch = resolve(profile, values, around.home, choice.blanks, os.environ)
    log = choice.logs / f"{spec.name}.log"
    told = (*secrets, *values.secrets(), *blank_values(profile, choice.blanks, os.environ))
    process = SutProcess(ctx, spec.name, launch, log, told, canaries)
    return ProgramSut(process, profile.ready_within)


def how(use: str) -> str:
    """The word of the journal for a way to have a SUT: reference, attach or command."""
    return use if use in (REFERENCE, ATTACH) else "command"


def profile_of(use: str, folder: Path) -> Profile:
    """A profile by its name, or an ad-hoc one for a command line: anything with a blank or a slash in it."""
    if any(mark in use for mark in (" ", "/")):
        return profile_for_command(use)
    return find_profile(use, folder)


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


def _values(spec: LocalAgentSpec, around: Surroundings) -> SutValues:
    if spec.settings or spec.clock:
        raise UsageError(
            f"{spec.name}: `settings` and `clock` are the reference agent's; "
            "take them out, or run with --local-agent reference."
        )
    return SutValues(
        gateway_ws_url=around.gateway_url,
        gateway_token=around.gateway_token,
        agent2_url=around.agent2_url,
        agent2_token=around.agent2_token,
        tenant_id=around.tenant_id,
        agent_id=around.agent_id,
        workspaces=around.workspaces,
        trusted_keys=around.trusted_keys,
        signature_mode=spec.signature_mode,
        free_port=free_port(),
        python=sys.executable,
        contract_dir=around.contract_folder,
    )


async def start_all(suts: Mapping[str, Sut]) -> None:
    """Start every SUT, side by side; the first error is raised once none is starting any more."""
    results = await asyncio.gather(*(sut.start() for sut in suts.values()), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
