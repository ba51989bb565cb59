"""`lab explore`: what it refuses, what it finds and writes, and how it ends."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.cli import run_command_line
from lab.commands import explore as command
from lab.explore import search as searching
from tests.bugs.plants import all_plants, planted
from tests.command_line import Child, make_project
from tests.command_line import lab as lab_in_a_child
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
    began = time.monotonic()
    done = lab("scenarios/one.yaml", "--runs", "1000000", "--minutes", "0.01", "--json")
    assert done.status == 0
    assert 1 <= json.loads(done.out)["runs"] < 1000
    assert time.monotonic() - began < 30


# Something found: 1


def test_what_is_found_fails_again_by_its_file(project: Project, lab: Lab, slip: None) -> None:
    """One law is told once, with its file, the command, and how many more plans broke it."""
    project(one=FIX)
    done = lab("scenarios/one.yaml", "--runs", "12", "--out", "found")
    assert (done.status, done.err) == (1, "")
    lines = done.out.splitlines()
    failed = [line for line in lines if line.startswith("FAIL  ") and " ways to fail" not in line]
    files = sorted(Path("found").iterdir())
    assert len(failed) == len(set(failed)) == len(files) >= 1
    assert f"FAIL  {len(files)} ways to fail, in found" == lines[-1]
    assert any("agent-frames-valid" in line for line in failed)
    for file in files:
        assert f"      again: lab run {file} --clock virtual" in lines
        assert file.read_text("utf-8").startswith("# Found by exploring scenarios/one.yaml with seed 1, plan ")
        # The mistake is still planted in this process.
        assert run_command_line(["run", str(file), "--clock", "virtual", "--out", "again"]) == 1


def test_a_file_of_a_finding_holds_without_the_mistake(project: Project, lab: Lab) -> None:
    """In a fresh process, which is given nothing but the file."""
    folder = project(one=FIX)
    with planted(all_plants()[SLIP].put):
        assert lab("scenarios/one.yaml", "--runs", "12", "--out", "found").status == 1
    for file in sorted(Path("found").iterdir()):
        done = lab_in_a_child("run", file, "--clock", "virtual", cwd=folder)
        assert done.returncode == 0, done.stdout


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
    found = next(found for found in told["found"] if "agent-frames-valid" in found["broken"])
    assert len(found["said"]) == len(found["broken"])
    assert 1 <= len(found["faults"]) <= 4
    assert found["again"] == f"lab run {found['file']} --clock virtual"


def test_a_folder_that_cannot_be_written(project: Project, lab: Lab, slip: None) -> None:
    """Status 3 and one sentence, whoever runs it: a file stands where the folder is due."""
    folder = project(one=FIX)
    (folder / "taken").write_text("")
    done = lab("scenarios/one.yaml", "--runs", "12", "--out", "taken/found")
    assert done.status == 3
    assert "what was found cannot be written there: " in done.err
    assert "Name another place with --out." in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_is_a_file(project: Project, lab: Lab) -> None:
    folder = project(one=READY)
    (folder / "taken").write_text("")
    done = lab("scenarios/one.yaml", "--out", "taken")
    assert (done.status, done.out) == (2, "")
    assert "--out" in done.err


# Ctrl-C: 130


def test_what_was_found_before_an_interrupt_is_kept(
    project: Project, lab: Lab, slip: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is told, and the file of the finding is there."""
    project(one=FIX)

    def until_found(*arguments: object) -> None:
        each = arguments[-1]
        assert callable(each)

        def told(tried: searching.Tried) -> bool:
            assert each(tried)
            if tried.trial.broken:
                raise KeyboardInterrupt
            return True

        search(*arguments[:-1], told)  # type: ignore[arg-type]

    search = command.search
    monkeypatch.setattr(command, "search", until_found)
    done = lab("scenarios/one.yaml", "--out", "found")
    assert done.status == 130
    assert len(list(Path("found").iterdir())) == 1
    assert done.out.splitlines()[-1] == "FAIL  1 ways to fail, in found"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_every_process_and_tells_what_was_tried(project: Project, workers: str) -> None:
    """As a terminal sends it: to the command and its workers alike."""
    folder = project(one=FIX)
    with Child(["explore", "scenarios/one.yaml", "--runs", "100000", "--workers", workers], cwd=folder) as child:
        child.until("exploring up to 100000 fault plans")
        child.until(" of 100000 runs")
        child.send(signal.SIGINT)
        assert child.end() == 130
    assert "Traceback" not in child.text
    *_, progress, verdict = child.text.splitlines()
    assert " of 100000 runs · " in progress
    assert verdict.split()[0] in ("PASS", "FAIL")
