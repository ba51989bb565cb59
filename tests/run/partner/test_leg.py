"""Runs of the partner leg as a user has them: what is printed, what is left, and how they are stopped."""

from __future__ import annotations

import json
import re
import signal
import stat
from pathlib import Path

import pytest

from lab.journal.events import RunEnded
from lab.journal.reader import read_journal
from tests.command_line import Child, environment, lab

FILES = ["journal.jsonl", "junit.xml", "logs", "report.html", "result.json", "scenario.yaml"]
LONG = "scenarios/partner/stream-cut.yaml"


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("lab-")]


def test_a_run_that_holds(tmp_path: Path) -> None:
    """Status 0; steps and figures in the leg's own words; files for the owner only; nothing left."""
    done = lab("run", "scenarios/partner-chat.yaml", "--out", tmp_path / "out", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    folder = tmp_path / "out" / "partner-chat" / "latest"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    for path in folder.resolve().rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert read_journal(folder / "journal.jsonl")[-1].event == RunEnded("completed")
    assert left_in(tmp_path) == []
    for line in (
        "membership of anna",
        "bind c1",
        "follow r1 to its end",
        "11 events · completed",
        "2 items in 1 pages",
    ):
        assert line in done.stdout
    assert re.search(r"\d+ calls · 11 events in 1 stream · 1 tool run", done.stdout), done.stdout
    assert "laws: " in done.stdout
    kept = done.stdout + "".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())
    assert "tg1." not in kept


def test_a_step_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    """Status 1, on the terminal, in JSON and in JUnit."""
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "scenario: wrong\nabout: A wrong code\npartner_api: {}\nsteps:\n"
        "  - membership: { user: anna, lease: 10m, fails: CHAT_CONFLICT }\n"
    )
    done = lab("run", file, "--out", tmp_path / "out", "--json")
    assert done.returncode == 1
    (run,) = json.loads(done.stdout)["runs"]
    (finding,) = [one for one in run["findings"] if one["head"] == "step"]
    assert finding["seen"] == "refused: CHAT_INVALID (400); CHAT_CONFLICT was due"
    assert finding["line"] == 5
    assert "CHAT_CONFLICT was due" in (tmp_path / "out" / "wrong" / "latest" / "junit.xml").read_text("utf-8")


@pytest.mark.parametrize("line", ["membership", "to 40 events"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_turn(line: str, number: signal.Signals, tmp_path: Path) -> None:
    """Status 130, the journal up to there, a verdict, and no folder left."""
    out = tmp_path / "out"
    with Child(["run", LONG, "--out", out], env=environment(TMPDIR=str(tmp_path))) as child:
        child.until(line)
        child.send(number)
        assert child.end() == 130, child.text
    assert "Traceback" not in child.text
    assert "INTERRUPTED" in child.text
    folder = out / "stream-cut" / "latest"
    assert read_journal(folder / "journal.jsonl")[-1].event == RunEnded("interrupted")
    assert json.loads((folder / "result.json").read_text("utf-8"))["outcome"] == "interrupted"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert left_in(tmp_path) == []


def test_the_clock_and_the_partner_are_in_the_command_to_repeat_it(tmp_path: Path) -> None:
    done = lab(
        "run", "scenarios/partner-chat.yaml", "--clock", "virtual", "--partner", "reference", "--out", tmp_path / "o"
    )
    assert done.returncode == 0
    again = re.search(r"again: (lab run .*)", done.stdout)
    assert again is not None
    assert "--seed 11 --clock virtual --partner reference" in again[1]
