"""The private files of a living environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import EnvironmentFault, UsageError
from lab.up.files import (
    CONTROL,
    KEYS,
    ControlFile,
    check_free,
    read_control,
    remove_control,
    write_control,
    write_shell,
)

NOW_MS = 1_767_225_600_000
HERE = ControlFile("http://127.0.0.1:9", "a-key", os.getpid(), "scenarios/x.yaml")


def gone_pid() -> int:
    """The id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = write_control(tmp_path / "a" / "b", HERE)
    assert read_control(tmp_path / "a" / "b") == HERE
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("value", ["plain", "with 'quotes' and $(id)", "`id`; id", 'a"b\\c'])
def test_a_shell_reads_back_what_was_meant(value: str, tmp_path: Path) -> None:
    """Nothing of a value is carried out; the file's other lines are words for the tour."""
    path = write_shell(tmp_path, {"API": value, "CHAT_KEY": "k", "EMPLOYEE": "anna", "TEAM": "shop"})
    assert path.stat().st_mode & 0o777 == 0o600
    script = f'. {path}; printf "%s" "$API"; json a=b c:=true'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f'{value}{{"a": "b", "c": true}}\n'
    assert done.stderr == ""


def test_nobody_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not there: no `lab up` runs from this folder"):
        read_control(tmp_path)
    check_free(tmp_path, NOW_MS)


def test_one_that_ended_without_a_word(tmp_path: Path) -> None:
    """Its file is in nobody's way."""
    write_control(tmp_path, ControlFile(HERE.url, HERE.key, gone_pid(), HERE.scenario))
    with pytest.raises(UsageError, match="has ended without a word"):
        read_control(tmp_path)
    check_free(tmp_path, NOW_MS)


def test_a_number_that_went_to_somebody_elses_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    write_control(tmp_path, HERE)
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(UsageError, match="has ended without a word"):
        read_control(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"url": "x"}',
        "[" * 60_000,
        '{"url": "x", "key": "k", "pid": "one", "scenario": "s"}',
        '{"url": "x", "key": "k", "pid": 0, "scenario": "s"}',
        '{"url": "x", "key": "k", "pid": -1, "scenario": "s"}',
        '{"url": "x", "key": "k", "pid": 99999999999999999999999, "scenario": "s"}',
        '{"url": "x", "key": "k", "pid": 1, "scenario": "s", "more": 1}',
    ],
)
def test_what_no_lab_up_wrote(text: str, tmp_path: Path) -> None:
    path = tmp_path / CONTROL
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="no file of a `lab up`"):
        read_control(tmp_path)


def test_a_file_that_others_can_read(tmp_path: Path) -> None:
    """It may have been read, and is not used."""
    write_control(tmp_path, HERE).chmod(0o644)
    with pytest.raises(EnvironmentFault, match="0644"):
        read_control(tmp_path)


def test_one_environment_a_folder(tmp_path: Path) -> None:
    write_control(tmp_path, HERE)
    with pytest.raises(UsageError, match=rf"the `lab up` of scenarios/x.yaml \(pid {os.getpid()}\) is there"):
        check_free(tmp_path, NOW_MS)


def test_removing_leaves_nothing_of_it(tmp_path: Path) -> None:
    """And what is not its own stays; it may be called again."""
    for name in (CONTROL, "other.json"):
        (tmp_path / name).write_text(json.dumps({}))
    remove_control(tmp_path)
    remove_control(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other.json"]
    remove_control(tmp_path / "nowhere")


def fixture_file(folder: Path, expires: str) -> None:
    """As a fixture of another partner API writes it."""
    names = ("organizationId", "namespace", "provisioningKey", "chatKey", "destination", "staticCredential")
    members = {name: f"the-{name}" for name in names} | {"environment": "test", "apiOrigin": "http://127.0.0.1:9"}
    path = folder / KEYS
    path.write_text(json.dumps({**members, "fixtureExpiresAt": expires}))
    path.chmod(0o600)


def test_the_keys_of_another_fixture_are_not_overwritten(tmp_path: Path) -> None:
    """As long as it runs; what an environment left that was killed is in nobody's way."""
    fixture_file(tmp_path, "2026-01-01T00:30:00.000Z")
    with pytest.raises(UsageError, match="a fixture of another partner API wrote this"):
        check_free(tmp_path, NOW_MS)
    check_free(tmp_path, NOW_MS + 3_600_000)
    write_control(tmp_path, ControlFile(HERE.url, HERE.key, gone_pid(), HERE.scenario))
    check_free(tmp_path, NOW_MS)
    (tmp_path / CONTROL).unlink()
    (tmp_path / KEYS).write_text("something else")
    with pytest.raises(UsageError, match="a fixture of another partner API wrote this"):
        check_free(tmp_path, NOW_MS)
