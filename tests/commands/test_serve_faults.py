"""`lab serve faults`: the fault API as a program of its own."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from lab import cli
from tests.command_line import PATIENCE, Child, lab

READY = "fault API, as Toxiproxy 2.12.0 has it, at "


def call(url: str, path: str, body: object = None) -> bytes:
    """The answer to a GET, or to a POST where there is a body."""
    data = None if body is None else json.dumps(body).encode()
    with build_opener(ProxyHandler({})).open(Request(url + path, data), timeout=PATIENCE) as response:
        answer: bytes = response.read()
        return answer


def config(folder: Path, text: str) -> Path:
    """A file of proxies."""
    path = folder / "proxies.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, end: signal.Signals) -> None:
    """With the proxies of its file and their toxics, and a connection open."""
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        address = f"127.0.0.1:{upstream.getsockname()[1]}"
        text = json.dumps([{"name": "a", "listen": "localhost:0", "upstream": address, "toxics": [{"type": "noop"}]}])
        with Child(["serve", "faults", "--port", "0", "--config", config(tmp_path, text), "--seed", "7"]) as server:
            url, seed = server.until(READY).removeprefix(READY).strip().split(" with seed ")
            assert seed == "7"
            proxy = json.loads(call(url, "/proxies"))["a"]
            assert server.lines[0] == f"proxy a: {proxy['listen']} -> {address}, toxics: noop_downstream\n"
            assert [toxic["name"] for toxic in proxy["toxics"]] == ["noop_downstream"]
            host, _, port = proxy["listen"].rpartition(":")
            with socket.create_connection((host, int(port)), PATIENCE) as client:
                far, _ = upstream.accept()
                with far:
                    client.sendall(b"x")
                    assert far.recv(1) == b"x"
                    server.send(end)
                    assert server.end() == 0
    assert "Traceback" not in server.text


def test_metrics_are_served_when_asked() -> None:
    """And a seed is drawn and told."""
    with Child(["serve", "faults", "--port", "0", "--metrics"]) as server:
        told = server.until(READY)
        found = re.fullmatch(rf"{READY}(http://127\.0\.0\.1:\d+) with seed \d+\n", told)
        assert found is not None
        made = json.loads(call(found[1], "/proxies", {"name": "a", "upstream": "127.0.0.1:1"}))
        assert made["listen"] in call(found[1], "/metrics").decode()


def test_beyond_loopback() -> None:
    """It says what that means, and proxies may listen there too."""
    with Child(["serve", "faults", "--port", "0", "--host", "0.0.0.0"]) as server:
        url = server.until(READY).removeprefix(READY).split(" ")[0].replace("0.0.0.0", "127.0.0.1")
        assert "whoever reaches 0.0.0.0 rules these proxies" in server.text
        made = json.loads(call(url, "/proxies", {"name": "a", "listen": "0.0.0.0:0", "upstream": "127.0.0.1:1"}))
        assert made["enabled"] is True


def test_a_taken_port() -> None:
    """Status 3, with the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lab("serve", "faults", "--port", str(port))
    assert (done.returncode, done.stdout) == (3, "")
    assert f"the fault API cannot listen on 127.0.0.1:{port}: " in done.stderr
    assert "address already in use. End the program that holds this port" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_proxy_whose_port_is_taken(tmp_path: Path) -> None:
    """Likewise."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        path = config(tmp_path, json.dumps([{"name": "a", "listen": listen, "upstream": "127.0.0.1:1"}]))
        done = lab("serve", "faults", "--port", "0", "--config", path)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"cannot listen on {listen}" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "EOF. Due is Toxiproxy's JSON: a list of proxies."),
        ("{}", "cannot unmarshal object into Go value of type []toxiproxy.Proxy"),
        ('[{"name":"a"}]', "missing required field: upstream at proxy 1"),
        ('[{"name":"a","upstream":"u:1","toxics":[{"type":"none"}]}]', "invalid toxic type"),
        ('[{"name":"a","upstream":"u:1","toxics":[{"type":"slicer"}]}]', "proxy a: slicer cannot have average_size 0"),
        ('[{"name":"a","upstream":"u:1"},{"name":"a","upstream":"u:1"}]', "proxy a: a proxy named 'a' exists already"),
        ("[" + " " * (1 << 20) + "]", "more than 1048576 bytes"),
    ],
    ids=["empty", "an object", "no upstream", "no such type", "a value", "a name twice", "too long"],
)
def test_a_file_that_cannot_be(tmp_path: Path, text: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Status 2 in a sentence that names it."""
    path = config(tmp_path, text)
    assert cli.run_command_line(["serve", "faults", "--port", "0", "--config", str(path)]) == 2
    said = capfd.readouterr().err
    assert said.startswith(f"lab: --config {path}: ")
    assert told in said
    assert said.count("\n") == 1


def test_a_file_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    """Status 2."""
    assert cli.run_command_line(["serve", "faults", "--config", "/none.json"]) == 2
    assert "--config /none.json: No such file or directory" in capfd.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Names the port that Toxiproxy's clients look for."""
    assert cli.run_command_line(["serve", "faults", "-h"]) == 0
    assert "8474" in capsys.readouterr().out
