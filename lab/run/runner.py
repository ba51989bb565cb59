"""One run: from a scenario and its options, through the world and its steps, to a verdict and a folder of files."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import lab
from lab.clock import Clock
from lab.context import RunContext
from lab.contract.chosen import ContractInUse, contract_in_use
from lab.errors import EnvironmentFault, LabError, MisuseError, UsageError
from lab.faults.address import Address
from lab.journal.events import JOURNAL_VERSION, RunEnded, RunStarted
from lab.journal.writer import Entry, Journal
from lab.laws import judge_all
from lab.private_files import write_private
from lab.run.agents import ATTACH, REFERENCE, SutChoice, how
from lab.run.chat_leg import ChatLeg
from lab.run.defects import RunJournal, noting_defects
from lab.run.figures import figures_of
from lab.run.folder import make_run_folder
from lab.run.interrupts import Interrupts
from lab.run.leg import Leg
from lab.run.script_places import read_places
from lab.run.verdict import Verdict, reach_verdict
from lab.scenario.model import FaultStep, Scenario
from lab.sim.guards import SimulationStopped
from lab.sim.loop import SimLoop


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a scenario."""

    out: Path
    seed: int
    local_agent: str | None = None
    partner: str | None = None
    """The partner API to drive in place of the scenario's own word; see `foreign_of`."""
    blanks: Mapping[str, str] = field(default_factory=dict)
    profiles: Path = Path("scenarios/profiles")
    repeat_command: str = ""
    resolved: str = ""
    """The scenario's text as it is run."""
    clock: str = "real"
    """Which clock the loop is on: real or virtual."""
    faults: Address | None = None
    """The Toxiproxy server that carries the links; None takes the lab's own engine."""
    show: Callable[[str], None] = print
    """Tells the user what he must have to start an attached agent."""


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    scenario: Scenario
    seed: int
    folder: Path
    verdict: Verdict
    entries: list[Entry]
    clock: str
    seconds: float
    """By the run's own clock."""
    wall_seconds: float
    repeat_command: str
    versions: Mapping[str, str]
    defects: tuple[BaseException, ...] = ()
    """Errors of the lab itself; their tracebacks go into the folder, not to the user."""
    interrupted: bool = False
    """Whether the user wants no further run, also when this one was over already."""


async def run_scenario(
    scenario: Scenario, options: RunOptions, listen: Callable[[Scenario, int, Journal], None]
) -> RunResult:
    """Run a scenario on the running loop, whichever clock that has. `listen` gets the journal before anything is in it.

    Raises `UsageError`, `ContractError` and `EnvironmentFault` for what is wrong before it begins; later failures are
    in the verdict.
    """
    interrupts = Interrupts()
    seed, began, contract = options.seed, time.perf_counter(), contract_in_use()
    started = datetime.now(UTC)
    folder = make_run_folder(options.out, scenario.name, started.strftime("%Y%m%dT%H%M%SZ"), seed)
    write_private(folder / "scenario.yaml", options.resolved)
    logs = folder / "logs"
    loop = asyncio.get_running_loop()
    clock = Clock(loop.time, time.time_ns() // 1_000_000)
    journal = _open_journal(folder, logs, clock)
    ctx = RunContext(seed, clock, journal, secret_seed=secrets.randbits(128))
    journal.on_full = ctx.defects.append
    listen(scenario, seed, journal)
    choice = SutChoice(options.local_agent, options.blanks, options.profiles, logs, options.show)
    run = _Run(ctx, scenario, choice, options)
    with noting_defects(ctx, logs / "lab.log"):
        stop, interrupted = await run.carry_out(_run_started(scenario, options, clock, contract), interrupts)
    verdict = run.judge(stop, interrupted)
    journal.close()
    await asyncio.sleep(0)  # so that an interrupt that came while the laws were judged is known
    defects = _defects(ctx, stop)
    return RunResult(
        scenario,
        seed,
        folder,
        verdict,
        journal.entries,
        options.clock,
        clock.now(),
        time.perf_counter() - began,
        options.repeat_command,
        _versions(contract),
        defects,
        interrupts.came,
    )


def _open_journal(folder: Path, logs: Path, clock: Clock) -> RunJournal:
    try:
        logs.mkdir(mode=0o700)
        return RunJournal(clock.now, folder / "journal.jsonl")
    except OSError as error:
        raise EnvironmentFault(
            f"{folder}: the run's files cannot be made there: {error.strerror}. Name another place with --out."
        ) from error


def _defects(ctx: RunContext, stop: BaseException | None) -> tuple[BaseException, ...]:
    """Errors of the lab's own code, each once: what is raised on purpose has said all in its sentence."""
    errors = [*ctx.defects, *([stop] if stop is not None else [])]
    own = {id(error): error for error in errors if not isinstance(error, LabError) or isinstance(error, MisuseError)}
    return tuple(own.values())


def _run_started(scenario: Scenario, options: RunOptions, clock: Clock, contract: ContractInUse) -> RunStarted:
    revisions = ",".join(dict.fromkeys(gateway.revision for gateway in scenario.gateways.values()))
    return RunStarted(
        JOURNAL_VERSION,
        scenario.name,
        scenario.about,
        options.seed,
        options.clock,
        clock.epoch_ms,
        lab.__version__,
        contract.label(revisions),
    )


def _versions(contract: ContractInUse) -> dict[str, str]:
    return {
        "lab": lab.__version__,
        "contract": str(contract),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "pid": str(os.getpid()),
    }


def _when_stopped(steps: asyncio.Task[None]) -> list[SimulationStopped]:
    """Let a guard of the simulation end the steps, so that the world is ended and the run judged; why it did."""
    why: list[SimulationStopped] = []

    def end(error: SimulationStopped) -> None:
        why.append(error)
        steps.cancel()

    loop = asyncio.get_running_loop()
    if isinstance(loop, SimLoop):
        loop.selector.stopping = end
    return why


class _Run:
    def __init__(self, ctx: RunContext, scenario: Scenario, choice: SutChoice, options: RunOptions) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._leg = _leg(ctx, scenario, choice, options)

    async def carry_out(self, started: RunStarted, interrupts: Interrupts) -> tuple[BaseException | None, bool]:
        """Build the world, run the steps, end the world; what stopped it early, and whether that was Ctrl-C."""
        self._ctx.journal.record("run", started)
        steps = asyncio.get_running_loop().create_task(self._leg.run(), name="steps")
        interrupts.watch(steps)
        stopped = _when_stopped(steps)
        stop: BaseException | None = None
        try:
            await steps
        except asyncio.CancelledError:
            if not interrupts.came and not stopped:
                raise
            stop = stopped[0] if stopped else None
        except Exception as error:  # noqa: BLE001  every failure becomes part of the verdict
            stop = error
        interrupted = interrupts.came
        if stop is None and self._ctx.defects:
            stop = self._ctx.defects[0]
        end = "interrupted" if interrupted else "completed" if stop is None else "failed"
        self._ctx.journal.record("run", RunEnded(end, type(stop).__name__ if stop is not None else ""))
        if stop is None and self._ctx.defects:
            stop = self._ctx.defects[0]
        return stop, interrupted

    def judge(self, stop: BaseException | None, interrupted: bool) -> Verdict:
        """The verdict over the journal as it is now."""
        entries = self._ctx.journal.entries
        return reach_verdict(
            entries,
            self._scenario,
            judge_all(entries),
            self._leg.held,
            figures_of(entries),
            stop,
            interrupted,
            read_places(entries, self._scenario),
        )


def _leg(ctx: RunContext, scenario: Scenario, choice: SutChoice, options: RunOptions) -> Leg:
    if scenario.partner is None:
        return ChatLeg(ctx, scenario, choice, options.faults)
    # Only here: a run of the chat leg starts at once.
    from lab.run.partner.leg import PartnerLeg, foreign_of

    foreign = foreign_of(scenario, options.partner, options.clock, options.show)
    return PartnerLeg(ctx, scenario, options.faults, foreign)


def check_process_faults(scenario: Scenario, use: str | None, clock: str) -> None:
    """Raises `UsageError` for a scenario with a fault of a program that is not the lab's to strike."""
    for step in scenario.steps:
        if not isinstance(step, FaultStep) or step.fault.process is None:
            continue
        spec = scenario.local_agents[step.fault.process]
        what = f"{scenario.file}:{step.line}: `{step.fault.kind}` of {spec.name}"
        if (use or spec.use) == ATTACH:
            raise UsageError(f"{what}: an attached agent is not the lab's to {step.fault.kind}.")
        if (use or spec.use) == REFERENCE and clock != "virtual" and (spec.settings or spec.clock):
            raise UsageError(
                f"{what}: on the real clock it makes the reference agent a program of its own, which takes no "
                "`settings` and no `clock`. Run it with --clock virtual."
            )


def check_requires(scenario: Scenario, use: str | None) -> None:
    """Raises `UsageError` for a scenario that needs the reference agent and is run with another."""
    if REFERENCE not in scenario.requires:
        return
    for spec in scenario.local_agents.values():
        if how(use or spec.use) != REFERENCE:
            raise UsageError(
                f"{scenario.file}: `requires: [reference]`: this scenario needs the reference agent. "
                "Run it without --local-agent."
            )
