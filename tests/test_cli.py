"""The command line itself: help, imports, pipes, and what becomes of errors."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cli
from lab.errors import EnvironmentFault, ExitStatus, RemoteError
from tests.command_line import LAB, PATIENCE, ROOT, environment, lab

HEAVY = ("aiohttp", "websockets", "rich", "jsonschema", "jsonschema_rs", "jinja2", "nacl", "junitparser", "yaml")


def test_help_is_instant(tmp_path: Path) -> None:
    """It imports nothing that only a command needs."""
    script = (
        "import sys\nfrom lab.cli import run_command_line\nstatus = run_command_line(['--help'])\n"
        f"print('loaded', status, sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded 0 []"
    for word in ("contract", "explain", "list", "run", "serve", "validate", "130 after Ctrl-C"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["list"],
        ["validate"],
        ["explain"],
        ["serve"],
        ["serve", "gateway"],
        ["serve", "agent2"],
        ["serve", "local-agent"],
        ["contract"],
    ],
)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Both spellings, status 0."""
    assert cli.run_command_line([*command, "-h"]) == 0
    short = capsys.readouterr().out
    assert cli.run_command_line([*command, "--help"]) == 0
    assert capsys.readouterr().out == short
    assert short.startswith("Usage: lab ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["run"], "Missing argument"),
        (["run", "--bogus", "x"], "No such option"),
        (["explain"], "Missing argument"),
        (["run", "x", "--seed", "seven"], "'seven' is not a valid integer"),
    ],
)
def test_a_wrong_usage(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, on standard error."""
    assert cli.run_command_line(arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """As a wrong usage."""
    assert cli.run_command_line([]) == 2
    captured = capsys.readouterr()
    assert "Commands:" in captured.out + captured.err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert cli.run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lab, version ")


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (EnvironmentFault("no port"), ExitStatus.LAB_FAILED, "lab: no port\n"),
        (RemoteError("wrong"), ExitStatus.BROKEN, "lab: wrong\n"),
        (KeyboardInterrupt(), ExitStatus.INTERRUPTED, "lab: interrupted\n"),
        (
            ValueError("odd"),
            ExitStatus.LAB_FAILED,
            "lab: a defect of the lab: ValueError; the lines above say where.\n",
        ),
    ],
)
def test_what_becomes_of_an_error(
    error: BaseException,
    status: ExitStatus,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A sentence and its status; a defect is never taken for a broken promise."""

    def failing(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr("lab.commands.explain.explain_command", failing)
    assert cli.run_command_line(["explain", "x"]) == status
    said = capsys.readouterr().err
    assert said.endswith(told)
    assert ("Traceback" in said) is isinstance(error, ValueError)


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """No word about it, no traceback; a run goes on to its end and has its own status."""
    for arguments in (["list"], ["run", "tests/scenarios/valid-pass/idle-only.yaml", "--out", str(tmp_path)]):
        read, write = os.pipe()
        process = subprocess.Popen(
            [*LAB, *arguments], cwd=ROOT, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True
        )
        os.close(write)
        os.close(read)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (0, "")
    assert (tmp_path / "idle-only" / "latest" / "result.json").exists()


def test_a_verdict_is_not_lost_on_a_reader_that_goes_away(tmp_path: Path) -> None:
    """A run that failed has its status, also when nobody reads its document to the end."""
    read, write = os.pipe()
    os.close(read)
    arguments = ["run", "tests/scenarios/valid-fail/expected-refusal.yaml", "--out", str(tmp_path), "--json"]
    process = subprocess.Popen(
        [*LAB, *arguments], cwd=ROOT, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (1, "")


def test_an_output_that_is_full(tmp_path: Path) -> None:
    """Status 3 in a sentence."""
    for arguments in (["list"], ["run", "tests/scenarios/valid-pass/idle-only.yaml", "--out", str(tmp_path)]):
        with Path("/dev/full").open("w") as full:
            process = subprocess.run(
                [*LAB, *arguments],
                cwd=ROOT,
                env=environment(),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert process.returncode == 3
        verdict = " The verdict stands: idle-only PASS (" if arguments[0] == "run" else "\n"
        assert process.stderr.startswith(f"lab: the output could not be written: No space left on device.{verdict}")
        assert process.stderr.count("\n") == 1


def test_the_installed_command_and_the_module_are_one() -> None:
    """`python -m lab` has the command's name."""
    assert lab("--version").stdout.startswith("lab, version ")
    assert lab("run").stderr.startswith("Usage: lab run ")


def test_a_run_without_a_standard_output(tmp_path: Path) -> None:
    """Closed before it began: no traceback, and the verdict's status."""
    command = [*LAB, "run", "tests/scenarios/valid-pass/idle-only.yaml", "--out", str(tmp_path)]
    process = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join(command)} >&-"],
        cwd=ROOT,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
