"""The doubles of docker-compose.yml, started by its own commands on free ports, find each other and do a job."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import PATIENCE, environment, shown_environment
from tests.compose import ROOT, dockerfile, proxies, script, services

PORTS = (8474, 8080, 8081, 8082, 18080, 18081, 18082)
STEP = 0.05


def free_ports(wanted: Sequence[int]) -> dict[int, int]:
    """Ports that nobody listens on now, all different."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in wanted]
        return {port: one.getsockname()[1] for port, one in zip(wanted, held, strict=True)}


class Host:
    """A machine in place of the containers' network namespace: other ports, and folders of the test."""

    def __init__(self, folder: Path) -> None:
        self._ports = free_ports(PORTS)
        self._handover = folder / "handover"
        self._handover.mkdir(mode=0o700)
        self._folder = folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "doubles.json").write_text(self._here(json.dumps(proxies())))

    def port(self, inner: int) -> int:
        return self._ports[inner]

    def start(self, name: str) -> None:
        """A service's command as it stands in the file, once what it depends on is healthy."""
        service = services()[name]
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy"
            self.until(partial(self.is_healthy, other), f"{other} to be healthy")
        command = ["sh", "-euc", script(service)] if script(service) else ["lab", *service["command"]]
        with self._log(name).open("wb") as log:
            self._started[name] = subprocess.Popen(
                [self._here(str(word)) for word in command],
                cwd=ROOT,
                env=self._environment(service),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_healthy(self, name: str) -> bool:
        """What the service's health check says, or the image's where it has none."""
        own = services()[name].get("healthcheck", {}).get("test")
        if own is None:
            (check,) = [one.rest for one in dockerfile() if one.word == "HEALTHCHECK"]
            own = ["CMD", *json.loads(check.partition("CMD ")[2])]
        command = ["sh", "-c", own[1]] if own[0] == "CMD-SHELL" else own[1:]
        done = subprocess.run(
            [self._here(word) for word in command],
            cwd=ROOT,
            env=self._environment(services()[name]),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode == 0

    def handed_over(self) -> Mapping[str, str]:
        """What the doubles wrote for those who need it."""
        return shown_environment("".join(file.read_text() for file in sorted(self._handover.iterdir())))

    def files(self) -> Iterator[Path]:
        return self._handover.iterdir()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"waited in vain for {what}"
            for name, child in self._started.items():
                assert child.poll() is None, f"{name} ended: {self._log(name).read_text()}"
            time.sleep(STEP)

    def stop(self) -> list[int]:
        """Exit statuses, after the signal that a container gets."""
        for child in reversed(self._started.values()):
            child.send_signal(signal.SIGTERM)
        return [child.wait(PATIENCE) for child in self._started.values()]

    def kill(self) -> None:
        for child in self._started.values():
            child.kill()
            child.wait(PATIENCE)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _environment(self, service: Mapping[str, Any]) -> dict[str, str]:
        given = {name: self._here(value) for name, value in service.get("environment", {}).items()}
        return environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **given)

    def _here(self, text: str) -> str:
        text = re.sub(r"\b(?:1?808[0-2]|8474)\b", lambda found: str(self._ports[int(found[0])]), text)
        places = {
            "/run/lab": self._handover,
            "/lab/scenarios": ROOT / "scenarios",
            "/tmp/local-agent": self._folder / "state",
            "docker/doubles.json": self._folder / "doubles.json",
            "0.0.0.0": "127.0.0.1",
        }
        for there, here in places.items():
            text = text.replace(there, str(here))
        return text


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    try:
        yield made
    finally:
        made.kill()


def call(port: int, token: str, method: str, path: str, body: object = None) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token}"})
        return json.load(connection.getresponse())
    finally:
        connection.close()


def test_they_find_each_other_and_do_a_job(host: Host) -> None:
    """Through the published proxies, as who uses them from outside."""
    for name in ("faults", "gateway", "agent2", "local-agent"):
        assert not host.is_healthy(name)
        host.start(name)
    host.until(lambda: host.is_healthy("local-agent"), "the agent to be healthy")
    assert all(file.stat().st_mode & 0o077 == 0 for file in host.files())
    token, control = host.handed_over()["LAB_CONTROL_TOKEN"], host.port(18081)
    job = call(control, token, "POST", "/control/jobs", {"kind": "chat", "inputs": ["Why?"]})["jobId"]
    host.until(lambda: call(control, token, "GET", f"/control/jobs/{job}")["result"] is not None, "the job's result")
    assert host.stop() == [0, 0, 0, 0]


def test_a_toxic_meets_the_agent(host: Host) -> None:
    """It is led through the proxies, so that it loses its session when they are switched off."""
    for name in ("faults", "gateway", "agent2", "local-agent"):
        host.start(name)
    host.until(lambda: host.is_healthy("local-agent"), "the agent to be healthy")
    call(host.port(8474), "", "POST", "/proxies/gateway", {"enabled": False})
    host.until(lambda: not host.is_healthy("local-agent"), "the agent to lose its session")
    call(host.port(8474), "", "POST", "/proxies/gateway", {"enabled": True})
    host.until(lambda: host.is_healthy("local-agent"), "the agent to be healthy again")
