"""`lab run`: load every scenario first, then run one after the other, and leave with the worst exit status."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from lab.commands.loading import check_revisions, check_scripts, load
from lab.errors import EnvironmentFault, ExitStatus, UsageError
from lab.faults.address import Address
from lab.private_files import write_private
from lab.report.console import ConsoleReport, PatientConsole
from lab.report.junit import junit_text, write_junit
from lab.report.page import page_text
from lab.report.result import result_json
from lab.report.words import HEADS
from lab.run.agents import ATTACH, REFERENCE, profile_of
from lab.run.fault_server import EMBEDDED, check_faults, server_address
from lab.run.interrupts import held_back
from lab.run.runner import RunOptions, RunResult, check_process_faults, check_requires, run_scenario
from lab.run.virtual import NotDeterministic, check_repeated, check_virtual
from lab.scenario.loader import find_scenarios, project_root, resolved_yaml
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual
from lab.sut.launch import variable_of

BLANK_PREFIX = "sut."
SEED_BITS = 32
DEFAULT_OUT = Path("runs")
SEVERITY = (
    ExitStatus.INTERRUPTED,
    ExitStatus.LAB_FAILED,
    ExitStatus.USAGE,
    ExitStatus.BROKEN,
    ExitStatus.UNKNOWN,
    ExitStatus.HELD,
)
"""Which exit status several runs together have: the first of these that any of them has."""


@dataclass(frozen=True)
class RunCommand:
    """The options of `lab run`, as the command line gave them."""

    paths: Sequence[Path]
    seed: int | None
    settings: Mapping[str, str]
    local_agent: str | None
    out: Path
    junit: Path | None
    as_json: bool
    tags: Sequence[str] = ()
    clock: str = "real"
    check_determinism: bool = False
    faults: str = EMBEDDED
    partner: str | None = None

    def carry_out(self) -> ExitStatus:
        """Run everything. Raises `UsageError` before the first run if any scenario or option is wrong."""
        self._check_clock()
        server = self._server
        scenarios = self._chosen([self._load(path) for path in find_scenarios(self.paths)])
        self._check_driven(scenarios)
        self._check_junit()
        if server is not None:
            for scenario in scenarios:
                check_faults(scenario, server)
        console = PatientConsole(stderr=self.as_json, quiet=self.as_json)
        results: list[RunResult] = []
        unwritten: list[EnvironmentFault] = []
        for number, scenario in enumerate(scenarios):
            if number:
                console.say(Text())
            results.append(self._one(scenario, ConsoleReport(console, self.clock), unwritten))
            if results[-1].interrupted or unwritten:
                break
        # A scenario that cannot be asked of a program says nothing of it, unless it is the only one.
        asked = [result for result in results if not result.verdict.not_applicable] or results
        statuses = [result.verdict.outcome.exit_status for result in asked]
        statuses += [ExitStatus.INTERRUPTED] if results[-1].interrupted else []
        worst = next(status for status in SEVERITY if status in statuses)
        unwritten += self._tell(results, worst, console)
        if unwritten:
            # Exit status 3, because whoever reads the files must not take them for the whole; the verdict all the same.
            raise EnvironmentFault(f"{unwritten[0]} {_verdicts(results)}")
        return worst

    @property
    def _server(self) -> Address | None:
        """The Toxiproxy server that carries the links; None for the embedded engine."""
        server = server_address(self.faults)
        if server is not None and self.clock == "virtual":
            raise UsageError("--faults HOST:PORT needs the real clock: a server's time cannot be simulated.")
        return server

    def _chosen(self, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
        """Those with one of the wanted tags; all when no tag is wanted."""
        if not self.tags:
            return scenarios
        chosen = [scenario for scenario in scenarios if set(self.tags) & set(scenario.tags)]
        if not chosen:
            known = sorted({tag for scenario in scenarios for tag in scenario.tags})
            raise UsageError(
                f"no scenario has the tag {' or '.join(self.tags)}; there are: {', '.join(known) or 'none'}."
            )
        return chosen

    def _check_driven(self, scenarios: Sequence[Scenario]) -> None:
        """An option that no scenario can take would let its user believe that their program was driven."""
        if self.partner is not None and all(scenario.partner is None for scenario in scenarios):
            raise UsageError(
                "--partner says which partner API is driven, and no scenario here drives one; name one that"
                " does, as scenarios/partner-chat.yaml. Which Local Agent is driven, --local-agent says."
            )
        if self.local_agent is not None and not any(scenario.local_agents for scenario in scenarios):
            raise UsageError(
                "--local-agent says which Local Agent is driven, and no scenario here drives one; name one that"
                " does, as scenarios/chat-resume.yaml. Which partner API is driven, --partner says."
            )

    def _check_junit(self) -> None:
        """Before the first run, so that no run is in vain."""
        if self.junit is not None and not os.access(self.junit.parent, os.W_OK | os.X_OK):
            raise UsageError(f"--junit {self.junit}: no file can be made in that folder. Name another place.")

    def _load(self, path: Path) -> Scenario:
        scenario = load(path, self._overrides)
        check_scripts(scenario)
        uses = [self.local_agent] if self.local_agent is not None else [s.use for s in scenario.local_agents.values()]
        check_revisions(scenario)
        check_requires(scenario, self.local_agent)
        check_process_faults(scenario, self.local_agent, self.clock)
        if self.clock == "virtual":
            check_virtual(scenario, self.local_agent)
        if scenario.partner is not None:
            # Only here: a run of the chat leg starts at once.
            from lab.run.partner.leg import foreign_of

            foreign_of(scenario, self.partner, self.clock, print)
        for use in uses:
            if use not in (REFERENCE, ATTACH):
                profile_of(use, _profiles(path))
        return scenario

    @property
    def _overrides(self) -> dict[str, str]:
        return {name: value for name, value in self.settings.items() if not name.startswith(BLANK_PREFIX)}

    def _one(self, scenario: Scenario, report: ConsoleReport, unwritten: list[EnvironmentFault]) -> RunResult:
        def show(text: str) -> None:
            report.pause()
            sys.stderr.write(text)

        seed = self._seed_of(scenario)
        options = RunOptions(
            out=self.out,
            seed=seed,
            local_agent=self.local_agent,
            partner=self.partner,
            blanks={
                name.removeprefix(BLANK_PREFIX): value
                for name, value in self.settings.items()
                if name.startswith(BLANK_PREFIX)
            },
            profiles=_profiles(scenario.file),
            repeat_command=self._again(scenario, seed),
            resolved=resolved_yaml(scenario.file, self._overrides),
            clock=self.clock,
            faults=self._server,
            show=show,
        )
        result = self._run(scenario, options, report)
        with held_back() as late:
            try:
                _write_views(result)
            except EnvironmentFault as fault:
                unwritten.append(fault)
            finally:
                report.result(result)
        if self.check_determinism and not result.interrupted:
            try:
                check_repeated(scenario, options, result)
            except NotDeterministic as difference:
                unwritten.append(difference)
        return replace(result, interrupted=result.interrupted or late.came)

    def _run(self, scenario: Scenario, options: RunOptions, report: ConsoleReport) -> RunResult:
        if self.clock == "real":
            return asyncio.run(run_scenario(scenario, options, report.listen))
        return run_virtual(lambda: run_scenario(scenario, options, report.listen), options.seed)

    def _check_clock(self) -> None:
        if self.check_determinism and self.clock != "virtual":
            raise UsageError("--check-determinism needs --clock virtual: on the real clock no two runs are alike.")

    def _seed_of(self, scenario: Scenario) -> int:
        """The command line's, the scenario's, or a fresh one, which the run then tells."""
        if self.seed is not None:
            return self.seed
        return scenario.seed if scenario.seed is not None else secrets.randbits(SEED_BITS)

    def _again(self, scenario: Scenario, seed: int) -> str:
        words = ["lab", "run", str(scenario.file), "--seed", str(seed)]
        if self.clock != "real":
            words += ["--clock", self.clock]
        if self.faults != EMBEDDED:
            words += ["--faults", self.faults]
        if self.local_agent is not None:
            words += ["--local-agent", self.local_agent]
        if self.partner is not None:
            words += ["--partner", self.partner]
        for name, value in self._overrides.items():
            words += ["--set", f"{name}={value}"]
        if self.out != DEFAULT_OUT:
            words += ["--out", str(self.out)]
        # A blank may hold a secret: its variable is named, its value stays with the user.
        blanks = [f"{variable_of(name.removeprefix(BLANK_PREFIX))}=…" for name in self.settings if self._is_blank(name)]
        return " ".join([*blanks, shlex.join(words)])

    @staticmethod
    def _is_blank(name: str) -> bool:
        return name.startswith(BLANK_PREFIX)

    def _tell(self, results: Sequence[RunResult], worst: ExitStatus, console: PatientConsole) -> list[EnvironmentFault]:
        """What is said of all runs together; what of it could not be written."""
        unwritten = []
        if self.as_json:
            console = PatientConsole()
            told = {"exitStatus": int(worst), "runs": [result_json(result) for result in results]}
            console.say(Text(json.dumps(told, indent=2)))
        elif len(results) > 1:
            held = sum(result.verdict.outcome.exit_status is ExitStatus.HELD for result in results)
            beside = sum(result.verdict.not_applicable for result in results)
            left = f", {beside} not applicable" if beside else ""
            console.say(Text(f"\n{held} of {len(results)} scenarios passed{left}"))
        if console.failure is not None:
            unwritten.append(EnvironmentFault(f"the output could not be written: {console.failure.strerror}."))
        if self.junit is not None:
            try:
                write_junit(self.junit, results)
            except EnvironmentFault as fault:
                unwritten.append(fault)
        return unwritten


def _verdicts(results: Sequence[RunResult]) -> str:
    """What each run came to, in a sentence."""
    told = [f"{one.scenario.name} {HEADS[one.verdict.outcome]} ({one.folder})" for one in results]
    return f"The verdict stands: {', '.join(told)}."


def _profiles(scenario_file: Path) -> Path:
    return project_root(scenario_file) / "scenarios" / "profiles"


def _write_views(result: RunResult) -> None:
    """The files beside the journal."""
    write_private(result.folder / "result.json", json.dumps(result_json(result), indent=2) + "\n")
    write_private(result.folder / "junit.xml", junit_text([result]))
    write_private(result.folder / "report.html", page_text(result))
    if result.defects:
        texts = ["".join(traceback.format_exception(defect)) for defect in result.defects]
        write_private(result.folder / "defects.txt", "\n".join(texts))
