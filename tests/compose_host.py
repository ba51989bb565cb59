"""A machine in place of a network namespace of docker-compose.yml: its services' own commands, on free ports."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.command_line import PATIENCE, environment, shown_environment
from tests.compose import ROOT, Front, dockerfile, script, services

STEP = 0.05


def free_ports(wanted: Collection[int]) -> dict[int, int]:
    """Ports that nobody listens on now, all different."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in wanted]
        return {port: one.getsockname()[1] for port, one in zip(wanted, held, strict=True)}


class Host:
    """Where the services of a front run: other ports, and folders of the test."""

    def __init__(self, folder: Path, front: Front) -> None:
        inside = front.listens | front.upstreams | {front.api}
        self._ports = free_ports(inside)
        # What is published is this machine's already; a port that stands for a double too stays the double's.
        self._ports |= {outer: self._ports[inner] for inner, outer in front.published.items() if outer not in inside}
        self._handover = folder / "handover"
        self._handover.mkdir(mode=0o700)
        self._folder = folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._places = {
            "/run/lab": self._handover,
            "/lab/scenarios": ROOT / "scenarios",
            "/tmp/": f"{folder}/",
            front.config: folder / Path(front.config).name,
            "0.0.0.0": "127.0.0.1",
        }
        config = (ROOT / front.config).read_text("utf-8")
        (folder / Path(front.config).name).write_text(self._here(config))

    def port(self, inner: int) -> int:
        return self._ports[inner]

    def start(self, name: str) -> None:
        """A service's command as it stands in the file, once what it depends on is healthy."""
        self._await_needed(name)
        with self.log(name).open("wb") as log:
            self._started[name] = subprocess.Popen(
                self._command(name),
                cwd=ROOT,
                env=self._environment(services()[name]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """A service that ends by itself."""
        self._await_needed(name)
        return subprocess.run(
            self._command(name),
            cwd=ROOT,
            env=self._environment(services()[name]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
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
        return shown_environment("".join(file.read_text() for file in self.files()))

    def files(self) -> Sequence[Path]:
        """What lies in the handover volume."""
        return sorted(path for path in self._handover.rglob("*") if path.is_file())

    def log(self, name: str) -> Path:
        """What a container's log would have."""
        return self._folder / f"{name}.log"

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"waited in vain for {what}"
            for name, child in self._started.items():
                assert child.poll() is None, f"{name} ended: {self.log(name).read_text()}"
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

    def _await_needed(self, name: str) -> None:
        for other, how in services()[name].get("depends_on", {}).items():
            assert how["condition"] == "service_healthy"
            self.until(partial(self.is_healthy, other), f"{other} to be healthy")

    def _command(self, name: str) -> list[str]:
        service = services()[name]
        command = ["sh", "-euc", script(service)] if script(service) else ["lab", *service["command"]]
        return [self._here(str(word)) for word in command]

    def _environment(self, service: Mapping[str, Any]) -> dict[str, str]:
        given = {name: self._here(value) for name, value in service.get("environment", {}).items()}
        return environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **given)

    def _here(self, text: str) -> str:
        ports = "|".join(map(str, self._ports))
        text = re.sub(rf"\b(?:{ports})\b", lambda found: str(self._ports[int(found[0])]), text)
        places = "|".join(map(re.escape, self._places))
        return re.sub(places, lambda found: str(self._places[found[0]]), text)


@contextmanager
def host_of(folder: Path, front: Front) -> Iterator[Host]:
    """A host on which nothing goes on running."""
    made = Host(folder, front)
    try:
        yield made
    finally:
        made.kill()


def call(port: int, token: str, method: str, path: str, body: object = None) -> Any:
    """The JSON that an HTTP server of this machine answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token}"})
        return json.loads(connection.getresponse().read() or "null")
    finally:
        connection.close()
