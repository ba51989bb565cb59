"""How a Local Agent is had: the reference, a program that the lab starts, or one that somebody attaches."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.context import RunContext
from lab.errors import UsageError
from lab.localagent.config import MAX_IN_FLIGHT
from lab.protocol.contract import Contract
from lab.run.agent_log import AgentLog
from lab.run.suts import AttachedSut, ProgramSut, ReferenceSut, Surroundings, Sut
from lab.scenario.model import FaultStep, LocalAgentSpec, Scenario
from lab.sut.launch import blank_values, environment_to_show, resolve
from lab.sut.port import free_port
from lab.sut.process import SutProcess
from lab.sut.profile import Profile, find_profile, profile_for_command
from lab.sut.values import SutValues

REFERENCE, ATTACH = "reference", "attach"

REFERENCE_AS_CHILD = "lab-reference"
"""The profile by which the reference agent is started as a program."""


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
    log_path = choice.logs / f"{spec.name}.log"
    if use == REFERENCE:
        return ReferenceSut(ctx, spec, around, contract, AgentLog(ctx, spec.name, log_path, secrets, canaries))
    values = _values(spec, around)
    if use == ATTACH:
        launch = resolve(profile_for_command("attached"), values, around.home, {}, os.environ)
        return AttachedSut(ctx, spec.name, environment_to_show(launch), choice.show)
    profile = profile_of(use, choice.profiles)
    launch = resolve(profile, values, around.home, choice.blanks, os.environ)
    told = (*secrets, *values.secrets(), *blank_values(profile, choice.blanks, os.environ))

    def make(life: int) -> SutProcess:
        path = log_path if life == 1 else log_path.with_name(f"{spec.name}-{life}.log")
        return SutProcess(ctx, spec.name, launch, path, told, canaries)

    return ProgramSut(make, profile.ready_within, launch.state, _window(launch.environment))


def use_of(scenario: Scenario, name: str, use: str | None, *, simulated: bool) -> str:
    """How a local agent is had in a run.

    The reference shares the lab's process, so where a fault is to strike it as a program on the real clock, it runs
    as a child.
    """
    wanted = use or scenario.local_agents[name].use
    struck = any(isinstance(step, FaultStep) and step.fault.process == name for step in scenario.steps)
    return REFERENCE_AS_CHILD if wanted == REFERENCE and struck and not simulated else wanted


def _window(environment: Mapping[str, str]) -> int:
    """The window of a program by its environment (LA-005); a number that is none leaves the default."""
    default, least, most = MAX_IN_FLIGHT
    told = environment.get("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "")
    return min(max(int(told), least), most) if told.isdecimal() and told.isascii() else default


def how(use: str) -> str:
    """The word of the journal for a way to have a SUT: reference, attach or command."""
    return use if use in (REFERENCE, ATTACH) else "command"


def profile_of(use: str, folder: Path) -> Profile:
    """A profile by its name, or an ad-hoc one for a command line: anything with a blank or a slash in it."""
    if any(mark in use for mark in (" ", "/")):
        return profile_for_command(use)
    return find_profile(use, folder)


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
