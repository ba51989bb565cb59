"""Whole runs in a child, as a user has them: each exit status, and what a run leaves."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import stat
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.journal.events import Frame, RunEnded
from lab.journal.reader import read_journal
from tests.command_line import ROOT, Child, lab, make_project

CHAT = "scenarios/chat-answer.yaml"
BAD = ROOT / "tests" / "run" / "bad_agent.py"
READY = "steps:\n  - wait: { for: local_agent.ready, within: 10s }\n"
FILES = ["journal.jsonl", "junit.xml", "logs", "report.html", "result.json", "scenario.yaml"]


def bad(bug: str) -> str:
    return shlex.join([sys.executable, str(BAD), bug])


def journal_of(out: Path, scenario: str) -> str:
    return (out / scenario / "latest" / "journal.jsonl").read_text("utf-8")


def last_entry(out: Path, scenario: str) -> dict[str, object]:
    entry: dict[str, object] = json.loads(journal_of(out, scenario).splitlines()[-1])
    return entry


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left_in(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if name.startswith("lab-")]


def alive(mark: str) -> list[str]:
    """Processes whose command line holds `mark`."""
    import psutil

    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if mark in line and process.status() != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def test_a_run_that_holds_leaves_all_that_it_promises(tmp_path: Path) -> None:
    """Status 0; the program SUT in a home of its own; files for the owner only; nothing left behind."""
    done = lab("run", CHAT, "--out", tmp_path / "out", "--local-agent", "lab-reference", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    folder = tmp_path / "out" / "chat-answer" / "latest"
    assert names_in(folder) == FILES
    assert names_in(folder / "logs") == ["lab.log", "local_agent.log"]
    for path in (folder.resolve(), *folder.resolve().rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert read_journal(folder / "journal.jsonl")[-1].event == RunEnded("completed")
    assert "PASS" in done.stdout
    assert left_in(tmp_path) == []
    assert (folder / "scenario.yaml").read_text("utf-8") == (ROOT / CHAT).read_text("utf-8")


SERVE = shlex.join([sys.executable, "-m", "lab", "serve", "local-agent"])


@pytest.mark.parametrize(
    ("agent", "cut"),
    [("reference", "3s"), ("lab-reference", "700ms"), (SERVE, "700ms")],
    ids=["own", "profile", "line"],
)
def test_the_main_scenario(tmp_path: Path, agent: str, cut: str) -> None:
    """Nothing is lost over a cut, whatever the agent is, and it is told in numbers."""
    arguments = ("--local-agent", agent, "--set", f"steps.3.fault.for={cut}", "--out", tmp_path, "--json")
    done = lab("run", "scenarios/chat-resume.yaml", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    figures = run["figures"]
    assert (figures["events"], figures["resumes"], figures["faults"]) == (200, 1, 1)
    assert figures["resume_seconds"] >= (3.0 if cut == "3s" else 0.7)
    assert {"resume-rules", "stream-complete"} <= {law["id"] for law in run["laws"] if law["status"] == "held"}
    assert all(one["held"] for one in run["expectations"])


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        ("loses-an-event", "FAIL  stream-complete (local_agent)"),
        ("tears-sessions", "a chat.session body of 36 bytes"),
        ("refuses-pages", "not within 1 s: the end of the stream; 0 events in 0 pages came"),
        ("tells-the-prompt", "FAIL  content-stays-in-its-fields (local_agent)"),
        ("dies", "local_agent ended with exit code 9"),
    ],
)
def test_an_agent_that_breaks_a_promise(tmp_path: Path, bug: str, told: str) -> None:
    """Status 1, with what broke; what the agent said stays masked, and is not in the journal."""
    arguments = ("--out", tmp_path, "--local-agent", bad(bug), "--set", "steps.2.stream.within=1s")
    done = lab("run", CHAT, *arguments)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout + done.stderr
    assert told in done.stdout
    entries = read_journal(tmp_path / "chat-answer" / "latest" / "journal.jsonl")
    assert isinstance(entries[-1].event, RunEnded)
    asked = sum(isinstance(entry.event, Frame) and entry.event.type == "content.request" for entry in entries)
    # An agent that is ready and refuses is asked a few times, not as often as the machine can.
    assert asked < 12
    if bug == "loses-an-event":
        # The digests of a page are told by the lines of the script, from one that is not there any more on.
        assert re.search(r"text   events 0 to 4 are fixtures/agent2/short-answer\.yaml:\d+", done.stdout)
        assert "frames → from the agent" in done.stdout
    if bug == "dies":
        assert "my last words, with [masked]" in done.stdout
        assert "last words, with" not in journal_of(tmp_path, "chat-answer")


@pytest.mark.parametrize(("word", "status"), [("$LAB_GATEWAY_TOKEN", 1), ("nothing", 3)])
def test_a_program_that_dies_at_its_start(tmp_path: Path, word: str, status: int) -> None:
    """Status 3, unless it said its token; that is masked, and no control character is on the terminal."""
    program = tmp_path / "agent.sh"
    program.write_text(f"#!/bin/sh\necho \"I have {word} at $HOME\"\nprintf 'in \\033[31mred\\n' >&2\nexit 3\n")
    program.chmod(0o700)
    done = lab("run", CHAT, "--out", tmp_path / "out", "--local-agent", program, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (status, "")
    assert "local_agent ended with exit code 3" in done.stdout
    assert f"I have {'[masked]' if status == 1 else word}" in done.stdout
    assert "\x1b" not in done.stdout
    folder = tmp_path / "out" / "chat-answer" / "latest"
    ET.fromstring((folder / "junit.xml").read_text("utf-8"))
    assert last_entry(tmp_path / "out", "chat-answer")["end"] == "failed"
    assert left_in(tmp_path) == []


@pytest.mark.req("LA-047")
def test_a_program_has_a_home_of_its_own(tmp_path: Path) -> None:
    """Neither the user's agent id nor his store is there."""
    program = tmp_path / "agent.sh"
    program.write_text('#!/bin/sh\nls -A "$HOME"; echo "home $HOME"; exit 3\n')
    program.chmod(0o700)
    done = lab("run", CHAT, "--out", tmp_path / "out", "--local-agent", program, TMPDIR=str(tmp_path))
    home = re.search(r"home (\S+)", done.stdout)
    assert home is not None
    assert home[1] != os.environ["HOME"]
    assert not Path(home[1]).exists()


def test_a_program_that_never_connects(tmp_path: Path) -> None:
    """Status 3 once the profile's time to get ready is over; it is gone with its children."""
    make_project(tmp_path, quiet=READY)
    sleeper = f"sleep 1{os.getpid()}7"
    (tmp_path / "scenarios" / "profiles" / "mute.yaml").write_text(
        "profile: mute\nabout: Says nothing\nready: { within: 300ms }\n"
        f'command: [sh, -c, "{sleeper} & {sleeper}; :"]\n'
    )
    done = lab("run", "scenarios/quiet.yaml", "--local-agent", "mute", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (3, "")
    assert "local_agent never connected to the gateway: nothing came within 0.3 s" in done.stdout
    assert alive(sleeper) == []
    assert left_in(tmp_path) == []


def test_a_program_that_does_not_hear_its_stop_signal(tmp_path: Path) -> None:
    """It is killed, which is told in every view of the run, and is no broken promise."""
    make_project(tmp_path, quiet=READY)
    (tmp_path / "scenarios" / "profiles" / "deaf.yaml").write_text(
        "profile: deaf\nabout: Hears nothing\nready: { within: 300ms }\nstop: { signal: SIGTERM, grace: 200ms }\n"
        "command: [sh, -c, \"trap '' TERM; while :; do sleep 1; done\"]\n"
    )
    done = lab("run", "scenarios/quiet.yaml", "--local-agent", "deaf", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (3, "")
    told = re.search(r"NOTE  (local_agent did not end within 0\.\d s of its stop signal: .* killed)", done.stdout)
    assert told is not None, done.stdout
    folder = tmp_path / "runs" / "quiet" / "latest"
    for view in ("report.html", "junit.xml"):
        assert told[1] in (folder / view).read_text("utf-8")
    (notice,) = json.loads((folder / "result.json").read_text("utf-8"))["notices"]
    assert notice["participant"] == "local_agent"


@pytest.mark.parametrize("room", [2_000, 9_000])
def test_a_full_disk(tmp_path: Path, room: int) -> None:
    """Status 3 in a sentence, with no traceback, whichever file meets it first."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = lab("run", CHAT, "--out", tmp_path / "out", before=limited, TMPDIR=str(tmp_path))
    assert done.returncode == 3
    assert "could not be written: File too large. Free some space" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert left_in(tmp_path) == []
    if room == 2_000:
        assert "LAB FAILED lab   the journal could not be written" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((CHAT,), "seed"),
        ((CHAT,), "conversation q1"),
        ((CHAT, "--local-agent", "sleep 1000"), "seed"),
        (("scenarios/chat-resume.yaml", "--local-agent", "lab-reference"), "to 40 events"),
        (("scenarios/lost-ack.yaml",), "assign f1"),
        (("scenarios/lost-ack.yaml",), "laws:"),
    ],
    ids=["starting", "ending", "a mute program", "waiting for a resume", "a result", "after the verdict"],
)
def test_ctrl_c_twice(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    """Status 130, the journal up to there, a verdict, no process and no folder left."""
    out = tmp_path / "out"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)}
    with Child(["run", *arguments, "--out", out], env=env) as child:
        child.until(line)
        child.send(signal.SIGINT)
        child.send(signal.SIGINT)
        status = child.end()
    # A signal in the interpreter's very last moments ends it by that signal, which a shell calls 130 too.
    assert status in (130, -signal.SIGINT), child.text
    assert "Traceback" not in child.text
    name = Path(arguments[0]).stem
    if line == "laws:":
        assert last_entry(out, name)["end"] == "completed"
    else:
        assert "INTERRUPTED" in child.text
        assert "again: lab run" in child.text
        assert {"event": "run.ended", "end": "interrupted"}.items() <= last_entry(out, name).items()
    assert (out / name / "latest" / "report.html").exists()
    assert left_in(tmp_path) == []
    assert alive(str(out)) == []
    assert alive("sleep 1000") == []


def test_sigterm_is_a_clean_stop_too(tmp_path: Path) -> None:
    """For a CI that gives up; further scenarios do not begin."""
    project = make_project(tmp_path, one=f"{READY}  - idle: 30s\n", two=READY)
    with Child(["run", "scenarios"], cwd=project) as child:
        child.until("local agent ready")
        child.send(signal.SIGTERM)
        assert child.end() == 130
    assert "INTERRUPTED" in child.text
    assert "two ·" not in child.text
