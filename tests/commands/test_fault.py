"""`lab fault`: what it makes of its words, what a running environment makes of that, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.cli import run_command_line
from lab.commands.fault import members_of
from lab.errors import UsageError
from lab.up.files import CONTROL, KEYS, ControlFile, write_control
from tests.command_line import PATIENCE, ROOT, Child, shown_environment

SCENARIO = ROOT / "scenarios" / "partner-onboarding.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a running environment."""
    place = tmp_path_factory.mktemp("up")
    with Child(["up", SCENARIO, "--port", "0", "--ttl", "10m", "--folder", place]) as child:
        child.until("lab fault store heal")
        yield place
        child.send(signal.SIGINT)
        assert child.end() == 0, child.text


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test broke is whole again after it."""
    yield
    if "folder" in request.fixturenames:
        place = request.getfixturevalue("folder")
        for link in ("partner_api", "store"):
            assert run_command_line(["fault", link, "heal", "--folder", str(place)]) == 0


def order(folder: Path, *words: str) -> int:
    return run_command_line(["fault", *words, "--folder", str(folder)])


def call(folder: Path, name: str = "STORE_URL") -> int | None:
    """The status of a call without a key; None when there is no answer."""
    url = shown_environment((folder / "lab-up.sh").read_text("utf-8"))[name]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def await_answer(folder: Path, name: str) -> None:
    """Ask until it is there again."""
    end = time.monotonic() + PATIENCE
    while call(folder, name) is None:
        assert time.monotonic() < end


def test_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each link with its address, and how long it stays; a target alone asks the same."""
    for words in ([], ["store"]):
        assert order(folder, *words) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[:-1]] == ["store", "issuer", "partner_api"]
        assert json.loads((folder / KEYS).read_text("utf-8"))["apiOrigin"] in lines[2]
        assert lines[-1].endswith(" s left")
        assert 0 < int(lines[-1].split()[0]) <= 600


def test_a_cut_and_its_heal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder) is not None
    assert order(folder, "store", "cut") == 0
    assert capsys.readouterr().out == "link store: cut\n"
    assert call(folder) is None
    assert call(folder, "API") is not None
    assert order(folder, "store", "heal") == 0
    assert call(folder) is not None


def test_a_cut_that_ends_by_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert order(folder, "partner_api", "cut", "--for", "300ms") == 0
    assert capsys.readouterr().out == "link partner_api: cut for 0.3 s\n"
    assert call(folder, "API") is None
    await_answer(folder, "API")


@pytest.mark.parametrize("words", [["delay", "200ms"], ["toxic", "latency", "latency=200"]], ids=["delay", "toxic"])
def test_what_makes_a_link_slow(words: list[str], folder: Path) -> None:
    assert order(folder, "store", *words, "--for", "1m") == 0
    began = time.monotonic()
    assert call(folder) is not None
    assert time.monotonic() - began >= 0.2


def test_the_answer_names_the_toxic(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["toxic", "bandwidth", "rate=1000", "stream=upstream", "toxicity=0.5", "--for", "1m"]
    assert order(folder, "store", *words) == 0
    assert capsys.readouterr().out == "link store: toxic bandwidth for 60 s\n"


def test_a_weather(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert order(folder, "partner_api", "weather", "slow-mobile", "--for", "1m") == 0
    assert capsys.readouterr().out == "link partner_api: weather for 60 s\n"
    began = time.monotonic()
    assert call(folder, "API") is not None
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(("name", "address"), [("store", "STORE_URL"), ("partner_api", "API")])
def test_a_crash(name: str, address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is gone, and comes back where it was, with the keys that it gave out."""
    assert order(folder, name, "crash", "--for", "300ms") == 0
    assert capsys.readouterr().out == f"service {name}: crash for 0.3 s\n"
    assert call(folder, address) is None
    await_answer(folder, address)
    keys = json.loads((folder / KEYS).read_text("utf-8"))
    actor = "externalUserId=nobody&externalTeamId=shop"
    path = f"/v1/orgs/{keys['organizationId']}/chat/conversations/x/context?{actor}"
    request = urllib.request.Request(keys["apiOrigin"] + path, headers={"Authorization": f"Bearer {keys['chatKey']}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE)
    with refused.value as answer:
        assert answer.code in (403, 404)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stroe", "cut"], "Did you mean `store`?"),
        (["stroe", "crash", "--for", "1s"], "stroe"),
        (["issuer", "crash", "--for", "1s"], "issuer"),
        (["store", "delay", "soon"], "soon"),
        (["store", "weather", "monsoon", "--for", "1s"], "monsoon"),
        (["store", "toxic", "sludge"], "sludge"),
        (["store", "toxic", "latency", "latency=x"], "latency"),
        (["store", "toxic", "latency", "latency=1", "stream=sideways"], "stream"),
        (["store", "toxic", "latency", "latency=1", "toxicity=2"], "toxicity"),
        (["store", "cut", "--for", "soon"], "soon"),
        (["store", "cut", "--for", "3h"], "3h"),
    ],
)
def test_what_the_environment_refuses(
    words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, in the words of the scenario language."""
    assert order(folder, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert captured.err.startswith("lab: the fault: ")
    assert call(folder) is not None


@pytest.mark.parametrize(
    ("words", "members"),
    [
        (["store", "cut"], {"link": "store", "cut": True}),
        (["store", "reset"], {"link": "store", "reset": True}),
        (["store", "heal"], {"link": "store", "heal": True}),
        (["store", "delay", "1s"], {"link": "store", "delay": "1s"}),
        (["store", "weather", "flaky-wifi"], {"link": "store", "weather": "flaky-wifi"}),
        (["store", "toxic", "down"], {"link": "store", "toxic": "down"}),
        (
            ["store", "toxic", "t", "a=1", "b=-2", "c=x", "d="],
            {"link": "store", "toxic": "t", "attributes": {"a": 1, "b": -2, "c": "x", "d": ""}},
        ),
        (
            ["store", "toxic", "t", "rate=0.5", "wild=true", "deep=-1.25", "stream=upstream", "toxicity=0.5"],
            {
                "link": "store",
                "toxic": "t",
                "attributes": {"rate": 0.5, "wild": True, "deep": -1.25},
                "stream": "upstream",
                "toxicity": 0.5,
            },
        ),
        (
            ["store", "toxic", "t", "a=1e5", "b=1.", "c=True"],
            {"link": "store", "toxic": "t", "attributes": {"a": "1e5", "b": "1.", "c": "True"}},
        ),
        (
            ["store", "toxic", "t", "a=²", "b=--5", "c=" + "9" * 5000],
            {"link": "store", "toxic": "t", "attributes": {"a": "²", "b": "--5", "c": "9" * 5000}},
        ),
    ],
)
def test_what_words_become(words: list[str], members: Mapping[str, Any]) -> None:
    """A `fault:` step; `--for` is its `for`."""
    target, kind, *values = words
    assert members_of(target, kind, values, None) == members
    assert members_of(target, kind, values, "5s") == {**members, "for": "5s"}


def test_a_crash_is_of_a_participant() -> None:
    assert members_of("store", "crash", [], "2s") == {"partner": "store", "crash": True, "for": "2s"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["store", "cat"], "`cat` is no fault; there are cut, reset, heal, delay, weather, toxic, crash"),
        (["store", "cut", "5s"], "`cut` takes no value, and `5s` was given. `--for 5s` says how long"),
        (["store", "crash", "5s"], "`crash` takes no value"),
        (["store", "crash"], "`--for` is due, such as `--for 2s`"),
        (["store", "delay"], "due is one value, such as 200ms"),
        (["store", "weather", "a", "b"], "due is one value"),
        (["store", "toxic"], "due is the toxic's type and its attributes"),
        (["store", "toxic", "latency", "300"], "seen `300`, due NAME=VALUE"),
    ],
)
def test_words_that_are_no_fault(words: list[str], told: str) -> None:
    target, kind, *values = words
    with pytest.raises(UsageError) as refused:
        members_of(target, kind, values, None)
    assert told in str(refused.value)


def test_no_environment_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert order(tmp_path, "store", "cut") == 2
    assert "no `lab up` runs from this folder. Start one, or name its --folder." in capfd.readouterr().err


def test_an_environment_that_was_killed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    write_control(tmp_path, ControlFile("http://127.0.0.1:9", "k", child.pid, "x.yaml"))
    assert order(tmp_path) == 2
    assert "has ended without a word" in capfd.readouterr().err


def test_a_file_that_others_can_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_control(tmp_path, ControlFile("http://127.0.0.1:9", "k", os.getpid(), "x.yaml")).chmod(0o640)
    assert order(tmp_path) == 3
    assert f"{tmp_path / CONTROL} has the mode 0640" in capfd.readouterr().err


def test_an_environment_that_does_not_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    write_control(tmp_path, ControlFile(f"http://127.0.0.1:{port}", "k", os.getpid(), "x.yaml"))
    assert order(tmp_path) == 3
    assert f"the `lab up` of x.yaml does not answer at http://127.0.0.1:{port}" in capfd.readouterr().err


def test_a_key_of_another_environment(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    control = json.loads((folder / CONTROL).read_text("utf-8"))
    write_control(tmp_path, ControlFile(**{**control, "key": "another"}))
    assert order(tmp_path, "store", "cut") == 2
    assert "the key is not this environment's" in capfd.readouterr().err
    assert call(folder) is not None
