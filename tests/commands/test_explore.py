"""`lab explore`: what it refuses, what it finds and writes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lab.cli import run_command_line
from lab.commands import explore as command
from lab.errors import EnvironmentFault
from lab.explore.drawing import Targets
from lab.explore.search import Budget, Tried, search
from lab.explore.workers import Workers
from lab.report import explored
from lab.report.console import PatientConsole
from lab.report.explored import Live
from lab.report.numbers import plural
from tests.bugs.plants import all_plants, planted
from tests.command_line import PATIENCE, ROOT, Child, environment, make_project
from tests.explore.killed import LEFT_OPEN, collected

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)

READY = "steps:\n  - wait: { for: local_agent.ready, within: 5s }\n"
FIX = (
    "agent2: { kinds: [fix], scripts: { fix: fixtures/agent2/fix.yaml } }\n"
    "steps:\n"
    "  - wait: { for: local_agent.ready, within: 10s }\n"
    '  - assign: { job: f1, kind: fix, input: "Why?" }\n'
    "  - result: { job: f1, within: 20s }\n"
    "expect:\n"
    "  - job.f1.outcome: pr_opened\n"
)
SLIP = "agent-queue-flushed-before-ready"
"""Shows at any cut with work on its way."""

LAW = "agent-frames-valid"
"""What it breaks."""

PLANTING = f"""\
from tests.bugs.plants import Patch, all_plants

all_plants()["{SLIP}"].put(Patch())
"""
"""What a child does before anything else, its workers too."""


@dataclass
class Done:
    """A finished command."""

    status: int
    out: str
    err: str


Lab = Callable[..., Done]
Project = Callable[..., Path]


@pytest.fixture
def lab(capfd: pytest.CaptureFixture[str]) -> Lab:
    """`lab explore` in this process, with one worker."""

    def call(*arguments: str | Path) -> Done:
        status = run_command_line(["explore", "--workers", "1", *map(str, arguments)])
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    def make(**scenarios: str) -> Path:
        monkeypatch.chdir(make_project(tmp_path, **scenarios))
        return tmp_path

    return make


@pytest.fixture
def slip() -> Iterator[None]:
    """An agent that makes a mistake when its link breaks."""
    with planted(all_plants()[SLIP].put):
        yield


# What is wrong before it begins: 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["scenarios/none.yaml"], "scenarios/none.yaml: there is no such file."),
        (["scenarios"], "scenarios: this is a folder; due is a scenario file."),
        (["scenarios/wrong.yaml"], "scenarios/wrong.yaml:4:5: steps[0]"),
        (["scenarios/odd.yaml"], "there is no file `fixtures/agent2/none.yaml` below the project's root"),
        (["scenarios/program.yaml"], "only the reference agent runs on the virtual clock"),
        (["scenarios/one.yaml", "--runs", "0"], "--runs"),
        (["scenarios/one.yaml", "--minutes", "0"], "--minutes"),
        (["scenarios/one.yaml", "--workers", "0"], "--workers"),
        (["scenarios/one.yaml", "--seed", "-1"], "--seed"),
        ([], "SCENARIO"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(
    project: Project, lab: Lab, arguments: list[str], told: str
) -> None:
    folder = project(
        one=READY,
        wrong="steps:\n  - wayt: {}\n",
        odd=f"agent2: {{ kinds: [fix], scripts: {{ fix: fixtures/agent2/none.yaml }} }}\n{READY}",
        program=f"local_agent: {{ use: lab-reference }}\n{READY}",
    )
    done = lab(*arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err
    assert not (folder / "runs").exists()


def test_a_scenario_that_fails_by_itself_is_nothing_to_explore(project: Project, lab: Lab) -> None:
    """Status 2, with the command that shows why."""
    folder = project(one=FIX.replace("pr_opened", "no_change"))
    done = lab("scenarios/one.yaml", "--seed", "4")
    assert (done.status, done.out) == (2, "")
    assert "scenarios/one.yaml: the scenario does not pass by itself (fail)" in done.err
    assert "`lab run scenarios/one.yaml --clock virtual --seed 4`" in done.err
    assert not (folder / "runs").exists()


def test_a_finding_is_written_where_it_finds_its_scripts(
    project: Project, lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Or its command would be of no use. Without scripts any place will do."""
    folder, elsewhere = project(one=FIX, two=READY), tmp_path_factory.mktemp("elsewhere")
    done = lab("scenarios/one.yaml", "--runs", "1", "--out", elsewhere)
    assert (done.status, done.out) == (2, "")
    assert f"would not find the scripts of scenarios/one.yaml. Name a folder below {folder} with --out." in done.err
    assert lab("scenarios/two.yaml", "--runs", "1", "--out", elsewhere).status == 0


# Nothing found: 0


def test_where_no_plan_breaks_a_promise(project: Project, lab: Lab) -> None:
    folder = project(one=READY)
    done = lab("scenarios/one.yaml", "--runs", "4")
    assert (done.status, done.err) == (0, "")
    head, *_, progress, verdict = done.out.splitlines()
    assert head == "one · exploring up to 4 fault plans      seed 1"
    assert progress.startswith("  4 of 4 runs · ")
    assert progress.endswith("(fault × moment) struck · 0 failed")
    assert verdict == "PASS  no plan broke a promise"
    assert not (folder / "runs").exists()


def test_time_bounds_a_search_as_well(project: Project, lab: Lab) -> None:
    """Most of so many plans are never begun; a plan that was begun is finished."""
    project(one=READY)
    done = lab("scenarios/one.yaml", "--runs", "1000000", "--minutes", "0.01", "--json")
    assert done.status == 0
    told = json.loads(done.out)
    assert 1 <= told["runs"] < 1000
    assert told["notTried"] == 1000000 - told["runs"]


def test_no_spinner_turns_where_trials_run(project: Project, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a thread, and one worker is this process."""
    project(one=READY)
    asked: list[bool] = []

    def live(console: PatientConsole, *, spins: bool) -> AbstractContextManager[Live]:
        asked.append(spins)
        return explored.live(console, spins=spins)

    monkeypatch.setattr(command, "live", live)
    assert lab("scenarios/one.yaml", "--runs", "1").status == 0
    assert asked == [False]


# Something found: 1


def test_what_is_found_fails_again_by_its_file(project: Project, lab: Lab, slip: None) -> None:
    """One law is told once, with its file, the command, and how many more plans broke it."""
    project(one=FIX)
    done = lab("scenarios/one.yaml", "--runs", "12", "--out", "found")
    assert (done.status, done.err) == (1, "")
    lines = done.out.splitlines()
    failed = [line for line in lines[:-1] if line.startswith("FAIL  ")]
    files = sorted(Path("found").iterdir())
    assert all(re.fullmatch(r"one-found-1-[0-9]+\.yaml", file.name) for file in files)
    assert len(failed) == len(set(failed)) == len(files) >= 1
    assert f"FAIL  {plural(len(files), 'way')} to fail, in found" == lines[-1]
    assert any(LAW in line for line in failed)
    for file in files:
        assert f"      again: lab run {file} --clock virtual" in lines
        assert file.read_text("utf-8").startswith("# Found by exploring scenarios/one.yaml with seed 1, plan ")
        # The mistake is still planted in this process.
        assert run_command_line(["run", str(file), "--clock", "virtual", "--out", "again"]) == 1


def test_a_file_is_enough_for_a_process_of_its_own(project: Project) -> None:
    """Found by two workers; it fails where the mistake is, and holds where it is not."""
    folder = project(one=FIX)
    (folder / "sitecustomize.py").write_text(PLANTING)
    mistaken = environment(PYTHONPATH=f"{folder}{os.pathsep}{ROOT}")
    asked = ["explore", "scenarios/one.yaml", "--runs", "12", "--workers", "2", "--out", "found"]
    with Child(asked, cwd=folder, env=mistaken) as child:
        assert child.end() == 1
    found = re.search(rf"^FAIL  .*{LAW}.*$", child.text, re.MULTILINE)
    assert found is not None, child.text
    again = re.search(r"again: lab (.*)$", child.text[found.start() :], re.MULTILINE)
    assert again is not None
    with Child(again[1].split(), cwd=folder, env=mistaken) as child:
        assert child.end() == 1
    assert f"FAIL  {LAW}" in child.text
    with Child(again[1].split(), cwd=folder) as child:
        assert child.end() == 0, child.text


def test_as_json(project: Project, lab: Lab, slip: None) -> None:
    """One document, and nothing else; it says the same."""
    project(one=FIX)
    done = lab("scenarios/one.yaml", "--runs", "12", "--out", "found", "--json")
    assert (done.status, done.err) == (1, "")
    told = json.loads(done.out)
    assert (told["scenario"], told["seed"], told["runs"]) == ("scenarios/one.yaml", 1, 12)
    assert told["failures"] == sum(1 + found["more"] for found in told["found"])
    assert 0 < len(told["struck"]) <= told["strikable"]
    assert all(struck["times"] >= 1 for struck in told["struck"])
    assert {found["file"] for found in told["found"]} == {str(file) for file in Path("found").iterdir()}
    found = next(found for found in told["found"] if LAW in found["broken"])
    assert len(found["said"]) == len(found["broken"])
    assert 1 <= len(found["faults"]) <= 4
    assert found["again"] == f"lab run {found['file']} --clock virtual"


def test_a_folder_that_cannot_be_written(project: Project, lab: Lab, slip: None) -> None:
    """Status 3 and one sentence, whoever runs it: a file stands where the folder is due."""
    folder = project(one=FIX)
    (folder / "taken").write_text("")
    done = lab("scenarios/one.yaml", "--runs", "12", "--out", "taken/found")
    assert done.status == 3
    assert "no folder for what is found can be made there" in done.err
    assert "Name another place with --out." in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_is_a_file(project: Project, lab: Lab) -> None:
    folder = project(one=READY)
    (folder / "taken").write_text("")
    done = lab("scenarios/one.yaml", "--out", "taken")
    assert (done.status, done.out) == (2, "")
    assert "--out" in done.err


# What goes wrong in the middle: 3


def test_what_was_found_is_told_whatever_ends_the_search(
    project: Project, lab: Lab, slip: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(one=FIX)

    def until_found(
        targets: Targets, seed: int, budget: Budget, workers: Workers, each: Callable[[Tried], bool]
    ) -> None:
        def told(tried: Tried) -> bool:
            assert each(tried)
            if tried.trial.broken:
                raise EnvironmentFault("out of luck.")
            return True

        search(targets, seed, budget, workers, told)

    monkeypatch.setattr(command, "search", until_found)
    done = lab("scenarios/one.yaml", "--out", "found")
    assert (done.status, done.err) == (3, "lab: out of luck.\n")
    assert done.out.splitlines()[-1] == "FAIL  1 way to fail, in found"
    done = lab("scenarios/one.yaml", "--out", "found", "--json")
    assert (done.status, json.loads(done.out)["ending"]) == (3, "stopped")


DYING = """\
import multiprocessing, os
from lab.explore import trial

def explored(*_):
    assert multiprocessing.parent_process() is not None
    os._exit(9)

trial.explored = explored
"""
"""A worker that ends in its first trial."""


def test_a_worker_that_dies_is_told_with_its_plans(project: Project) -> None:
    folder = project(one=READY)
    (folder / "sitecustomize.py").write_text(DYING)
    asked = ["explore", "scenarios/one.yaml", "--seed", "4", "--workers", "2"]
    with Child(asked, cwd=folder, env=environment(PYTHONPATH=f"{folder}{os.pathsep}{ROOT}")) as child:
        assert child.end() == 3
    assert "lab: a worker ended by itself" in child.text
    assert re.search(r"these plans of seed 4: 0\b", child.text)
    assert "0 of 200 runs" in child.text
    assert "STOPPED  no plan broke a promise" in child.text
    assert "Traceback" not in child.text


KEPT = """\
from lab.explore import trial

trial.MEMORY = {memory!r}
"""


def test_a_parent_that_is_killed_leaves_no_files(project: Project) -> None:
    """Its workers notice, take away what their trials have on disk, and end."""
    folder = project(one=FIX)
    memory = folder / "memory"
    memory.mkdir()
    (folder / "sitecustomize.py").write_text(KEPT.format(memory=str(memory)))
    asked = ["explore", "scenarios/one.yaml", "--runs", "100000", "--workers", "2"]
    with Child(asked, cwd=folder, env=environment(PYTHONPATH=f"{folder}{os.pathsep}{ROOT}")) as child:
        child.until(" of 100000 runs")
        started = psutil.Process(child.process.pid).children(recursive=True)
        child.send(signal.SIGKILL)
        child.process.wait(PATIENCE)
        assert psutil.wait_procs(started, PATIENCE)[1] == []
    assert list(memory.iterdir()) == []


@pytest.mark.parametrize("scenario", ["one", "wrong"])
def test_sigterm_means_afterwards_what_it_meant_before(project: Project, lab: Lab, scenario: str) -> None:
    """Whether anything was explored or not."""
    project(one=READY, wrong=FIX.replace("pr_opened", "no_change"))

    def mine(*_: object) -> None:
        """A handler of the caller's."""

    former = signal.signal(signal.SIGTERM, mine)
    try:
        lab(f"scenarios/{scenario}.yaml", "--runs", "1")
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, former)


# Ctrl-C: 130


def test_what_was_found_before_an_interrupt_is_kept(
    project: Project, lab: Lab, slip: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is told, and the file of the finding is there."""
    project(one=FIX)

    def until_found(
        targets: Targets, seed: int, budget: Budget, workers: Workers, each: Callable[[Tried], bool]
    ) -> None:
        def told(tried: Tried) -> bool:
            assert each(tried)
            if tried.trial.broken:
                raise KeyboardInterrupt
            return True

        search(targets, seed, budget, workers, told)

    monkeypatch.setattr(command, "search", until_found)
    done = lab("scenarios/one.yaml", "--out", "found")
    assert done.status == 130
    assert len(list(Path("found").iterdir())) == 1
    assert done.out.splitlines()[-1] == "FAIL  1 way to fail, in found"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_what_was_found_and_ends_every_process(project: Project, workers: str) -> None:
    folder = project(one=FIX)
    (folder / "sitecustomize.py").write_text(PLANTING)
    asked = ["explore", "scenarios/one.yaml", "--runs", "100000", "--workers", workers, "--out", "found"]
    with Child(asked, cwd=folder, env=environment(PYTHONPATH=f"{folder}{os.pathsep}{ROOT}")) as child:
        child.until(f"FAIL  {LAW}")
        child.until("again: ")
        workers_of = psutil.Process(child.process.pid).children(recursive=True)
        child.send(signal.SIGINT)
        assert child.end() == 130
    assert "Traceback" not in child.text
    assert " of 100000 runs · " in child.text
    files = list((folder / "found").iterdir())
    assert child.text.splitlines()[-1] == f"FAIL  {plural(len(files), 'way')} to fail, in found"
    assert files
    assert psutil.wait_procs(workers_of, PATIENCE)[1] == []


def test_ctrl_c_before_anything_was_found(project: Project) -> None:
    """As a terminal sends it, to the workers as well."""
    folder = project(one=READY)
    with Child(["explore", "scenarios/one.yaml", "--runs", "100000", "--workers", "2"], cwd=folder) as child:
        child.until(" of 100000 runs")
        for one in psutil.Process(child.process.pid).children(recursive=True):
            one.send_signal(signal.SIGINT)
        child.send(signal.SIGINT)
        assert child.end() == 130
    assert "Traceback" not in child.text
    *_, progress, left_out, verdict = child.text.splitlines()
    assert re.match(r"  [0-9]+ of 100000 runs · ", progress)
    assert re.fullmatch(r"  left out: [0-9]+ plans not tried", left_out)
    assert verdict == "INTERRUPTED  no plan broke a promise"
