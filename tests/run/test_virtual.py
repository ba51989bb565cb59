"""Whole scenarios on the virtual clock: one seed is one journal, and what is seen is what the real clock shows."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.cli import run_command_line
from lab.commands.loading import load
from lab.errors import ExitStatus
from lab.journal.events import Frame, JobAssigned, JobMoved, RunEnded, RunStarted, StreamPage
from lab.journal.reader import read_journal
from lab.journal.writer import Entry, Journal, entry_to_json
from lab.report.console import ConsoleReport
from lab.run import runner
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.loader import find_scenarios
from lab.scenario.model import FaultStep, Scenario
from lab.sim.guards import Limits
from lab.sim.run import run_virtual
from tests.command_line import PATIENCE, ROOT, environment

SCENARIOS = [load(file) for file in find_scenarios([ROOT / "scenarios"])]
NAMES = [scenario.name for scenario in SCENARIOS]


def scenario(name: str) -> Scenario:
    return SCENARIOS[NAMES.index(name)]


def hear_nothing(_scenario: Scenario, _seed: int, _journal: Journal) -> None:
    """Nobody is shown anything."""


def options(out: Path, seed: int, clock: str = "virtual") -> RunOptions:
    return RunOptions(out=out, seed=seed, clock=clock, show=lambda _text: None)


def virtually(wanted: Scenario, out: Path, seed: int = 7, limits: Limits | None = None) -> RunResult:
    return run_virtual(lambda: run_scenario(wanted, options(out, seed), hear_nothing), seed, limits=limits)


def really(wanted: Scenario, out: Path, seed: int = 7) -> RunResult:
    return asyncio.run(run_scenario(wanted, options(out, seed, "real"), hear_nothing))


def of_kind(entries: Sequence[Entry], kind: type[Any]) -> list[Any]:
    return [entry.event for entry in entries if isinstance(entry.event, kind)]


# One seed, one journal


BEGIN = """
import sys
from lab.cli import run_command_line
statuses = [run_command_line(["run", path, *sys.argv[2:]]) for path in sys.argv[1].split(":")]
"""


def start_lab(out: Path, paths: Sequence[Path], tmp: Path, hash_seed: str, code: str) -> subprocess.Popen[str]:
    """Runs in one process, in this order; `code` is carried out in it before."""
    tmp.mkdir()
    arguments = [":".join(map(str, paths)), "--clock", "virtual", "--seed", "7", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-c", code + BEGIN, *arguments],
        cwd=ROOT,
        env=environment(PYTHONHASHSEED=hash_seed, TMPDIR=str(tmp)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_two_processes(folder: Path, paths: Sequence[Path], code: str = "") -> list[str]:
    """The scenarios whose journals differ between two processes that have as little in common as they can."""
    outs = [folder / "out", folder / "elsewhere" / "further down" / "out"]
    outs[1].parent.mkdir(parents=True)
    children = [
        start_lab(outs[0], paths, folder / "tmp", "1", code),
        start_lab(outs[1], list(reversed(paths)), folder / "another tmp", "2", code),
    ]
    for child in children:
        _, said = child.communicate(timeout=4 * PATIENCE)
        assert said == ""
    journals = [
        {path.parent.parent.name: path.read_bytes() for path in out.glob("*/latest/journal.jsonl")} for out in outs
    ]
    assert journals[0].keys() == journals[1].keys() == {path.stem for path in paths}
    assert all(journals[0].values())
    return [name for name in journals[0] if journals[0][name] != journals[1][name]]


@pytest.mark.timeout(5 * PATIENCE)
def test_every_scenario_gives_one_journal_in_two_processes(tmp_path: Path) -> None:
    """Byte by byte: another hash seed, another folder, another TMPDIR, and the scenarios in another order."""
    assert in_two_processes(tmp_path, [one.file for one in SCENARIOS]) == []


PLANT = """
import os
from dataclasses import replace
from lab.run import runner
made = runner._run_started
runner._run_started = lambda *given: replace(made(*given), about={leak})
"""


@pytest.mark.parametrize(
    "leak",
    ["str(os.getpid())", "''.join({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})"],
    ids=["process id", "order of a set"],
)
def test_two_processes_show_a_leak(tmp_path: Path, leak: str) -> None:
    paths = [scenario("v1-fallback").file]
    assert in_two_processes(tmp_path, paths, PLANT.format(leak=leak)) == ["v1-fallback"]


KEPT: list[object] = []
COUNTED = itertools.count()


def place_in_memory() -> int:
    """Of an object that is kept, so that the next one lies elsewhere."""
    KEPT.append(object())
    return id(KEPT[-1])


LEAKS: dict[str, Callable[[], object]] = {
    "place in memory": place_in_memory,
    "counter of the process": lambda: next(COUNTED),
    "machine's clock": time.perf_counter_ns,
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_a_second_run_shows_a_leak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], leak: Callable[[], object]
) -> None:
    """`--check-determinism` ends with status 3 and shows the first entry that differs."""
    made = runner._run_started

    def leaky(*given: Any) -> RunStarted:
        return replace(made(*given), about=f"leaks {leak()}")

    monkeypatch.setattr(runner, "_run_started", leaky)
    assert check_determinism(tmp_path) == ExitStatus.LAB_FAILED
    said = capsys.readouterr().err
    assert "two runs of seed 7 differ at journal entry 0" in said
    assert said.count("leaks ") == 2


def check_determinism(out: Path) -> int:
    file = str(scenario("v1-fallback").file)
    return run_command_line(
        ["run", file, "--clock", "virtual", "--check-determinism", "--seed", "7", "--out", str(out)]
    )


def test_without_a_leak_a_second_run_shows_nothing(tmp_path: Path) -> None:
    """And leaves nothing: there is one run in the folder."""
    assert check_determinism(tmp_path) == ExitStatus.HELD
    assert len(list(tmp_path.glob("v1-fallback/*/journal.jsonl"))) == 2, "the run, and `latest`"


# What cannot be


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--local-agent", "attach"), "local_agent is attached"),
        (("--local-agent", f"{sys.executable} -m lab serve local-agent"), "local_agent is a program"),
        (("--local-agent", "lab-reference"), "local_agent is a program"),
        (("--clock", "real", "--check-determinism"), "--check-determinism needs --clock virtual"),
    ],
    ids=["attach", "command line", "profile", "real clock"],
)
def test_what_cannot_be_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], said: str
) -> None:
    given = ["run", str(scenario("chat-answer").file), "--clock", "virtual", "--out", str(tmp_path / "out")]
    assert run_command_line([*given, *arguments]) == ExitStatus.USAGE
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# Chance


def test_a_seed_decides_what_is_drawn_and_not_the_verdict(tmp_path: Path) -> None:
    runs = [virtually(scenario("chat-resume"), tmp_path, seed) for seed in (1, 1, 2, 3)]
    assert [run.verdict.outcome for run in runs] == [Outcome.PASS] * 4
    journals = [[entry_to_json(entry) for entry in run.entries] for run in runs]
    assert journals[0] == journals[1]
    assert len({json.dumps(journal) for journal in journals}) == 3
    ids = [{job.job_id for job in of_kind(run.entries, JobAssigned)} for run in runs[1:]]
    assert len(set.union(*ids)) == 3


def test_a_further_agent_shifts_no_id_of_the_others(tmp_path: Path) -> None:
    """Each draws from a stream of its own."""
    alone = scenario("chat-answer")
    agents = {**alone.local_agents, "another": replace(alone.local_agents["local_agent"], name="another")}
    both = replace(alone, local_agents=agents, steps=tuple(_of("local_agent", step) for step in alone.steps), expect=())
    runs = [virtually(one, tmp_path) for one in (alone, both)]
    assert [run.verdict.outcome for run in runs] == [Outcome.PASS] * 2
    first, second = (ids_of(run.entries) for run in runs)
    assert first == second
    assert len(of_kind(runs[1].entries, RunStarted)) == 1


def _of(agent: str, step: Any) -> Any:
    """The step, with its agent said, which has to be where there are two."""
    return replace(step, agent=agent) if hasattr(step, "agent") else step


def ids_of(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What was drawn for the first agent: its job's id, and the ids of what it sent."""
    frames = of_kind(entries, Frame)
    jobs = [event.job_id for event in of_kind(entries, JobAssigned)]
    return {"jobs": jobs, "tenants": sorted({one.tenant_id for one in frames if one.tenant_id})}


# Guards and Ctrl-C


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (Limits(horizon=2.0), "HorizonPassed"),
        (Limits(turns=500), "TooManyTurns"),
        (Limits(wall_seconds=1e-6), "WallClockPassed"),
    ],
    ids=["horizon", "turns", "machine's time"],
)
def test_a_guard_ends_a_run_in_good_order(tmp_path: Path, limits: Limits, error: str) -> None:
    """The world is ended, the laws are judged, and the verdict is the lab's failure."""
    run = virtually(scenario("chat-resume"), tmp_path, limits=limits)
    assert run.verdict.outcome is Outcome.LAB_FAILED
    assert run.verdict.outcome.exit_status is ExitStatus.LAB_FAILED
    ended = read_journal(run.folder / "journal.jsonl")[-1].event
    assert ended == RunEnded("failed", error)
    assert run.verdict.judged
    assert not run.defects
    assert any("waits in" in finding.sentence + finding.seen for finding in run.verdict.findings)


def test_ctrl_c_ends_a_run_in_good_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In mid-stream, as a user presses it: status 130, a journal, and no further run."""
    listen = ConsoleReport.listen

    def press(report: ConsoleReport, wanted: Scenario, seed: int, journal: Journal) -> None:
        listen(report, wanted, seed, journal)
        journal.listen(lambda entry: os.kill(os.getpid(), signal.SIGINT) if entry.n == 100 else None)

    monkeypatch.setattr(ConsoleReport, "listen", press)
    former = signal.getsignal(signal.SIGINT)
    files = [str(scenario(name).file) for name in ("chat-resume", "fix-job")]
    status = run_command_line(["run", *files, "--clock", "virtual", "--seed", "7", "--out", str(tmp_path)])
    assert status == ExitStatus.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is former
    entries = read_journal(tmp_path / "chat-resume" / "latest" / "journal.jsonl")
    assert entries[-1].event == RunEnded("interrupted")
    assert 100 < len(entries) < 400
    assert not (tmp_path / "fix-job").exists()
    assert json.loads((tmp_path / "chat-resume" / "latest" / "result.json").read_text())["outcome"] == "interrupted"
    capsys.readouterr()


# Both clocks


@dataclass(frozen=True)
class Story:
    """What a run comes to, without how long anything took."""

    outcome: Outcome
    laws: dict[str, str]
    expectations: list[bool | None]
    jobs: dict[str, tuple[list[str], int | None]]
    """The states of each job by its label, and how many job.event frames its caller was told of."""
    streams: dict[str, tuple[int, bool]]
    """How many events the driver has of each job's stream (0 where a fault tore it), and whether it has them all."""


def story(run: RunResult) -> Story:
    torn = torn_streams(run.scenario)
    labels = {event.job_id: event.label for event in of_kind(run.entries, JobAssigned)}
    jobs: dict[str, tuple[list[str], int | None]] = {}
    for moved in of_kind(run.entries, JobMoved):
        states, _ = jobs.setdefault(labels.get(moved.job_id, moved.job_id), ([], None))
        states.append(moved.state)
        jobs[labels.get(moved.job_id, moved.job_id)] = (states, moved.events)
    return Story(
        run.verdict.outcome,
        without_timed({f"{one.law.id} of {one.law.party}": str(one.status) for one in run.verdict.judged}),
        [one.held for one in run.verdict.held],
        jobs,
        {
            labels[page.job_id]: (0 if labels[page.job_id] in torn else page.total, page.done)
            for page in of_kind(run.entries, StreamPage)
        },
    )


def torn_streams(wanted: Scenario) -> list[str]:
    """Those of which a scenario expects a range of events: how many came before the fault is decided by the clock."""
    ranged = [one for one in wanted.expect if isinstance(one.due, Mapping) and "min" in one.due]
    return [one.path.split(".")[1] for one in ranged if one.path.startswith("stream.")]


TIMED = {
    "cursors-tell-nothing": "it compares the cursors of a stream's pages; a short stream comes in one page or in two",
}
"""Laws that have something to judge or not, as it happens, on the real clock too."""


def without_timed(laws: dict[str, str]) -> dict[str, str]:
    """The laws, with one status in place of two where chance decides between them."""
    timed = [f"{law} of local_agent" for law in TIMED]
    return laws | {law: "held or nothing" for law in timed if laws[law] in ("held", "nothing")}


QUICK = ("chat-answer", "chat-resume", "lost-ack")
"""Which scenarios are run on the real clock each time."""


def needs_a_process(wanted: Scenario) -> bool:
    """Whether it kills or stops the agent: on the real clock the reference agent shares the lab's process."""
    return any(isinstance(step, FaultStep) and step.fault.process for step in wanted.steps)


COMPARED = [one for one in SCENARIOS if ("chat" in one.tags or one.name in QUICK) and not needs_a_process(one)]


def _compared(wanted: Scenario) -> object:
    slow = [pytest.mark.slow, pytest.mark.timeout(wanted.deadline + 2 * PATIENCE)]
    return pytest.param(wanted, id=wanted.name, marks=[] if wanted.name in QUICK else slow)


@pytest.mark.parametrize("wanted", [_compared(one) for one in COMPARED])
def test_both_clocks_tell_one_story(tmp_path: Path, wanted: Scenario) -> None:
    assert story(virtually(wanted, tmp_path)) == story(really(wanted, tmp_path))
