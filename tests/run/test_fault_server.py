"""Which server carries a run's links, and what is refused before the run."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.run.fault_server import server_address
from tests.command_line import Child, lab, make_project
from tests.faults.toxiproxy_servers import call, lab_server, lab_server_in_child

Address = tuple[str, int]


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with lab_server() as made:
        yield made


def text(fault: str) -> str:
    return f"steps:\n  - fault: {{ link: gateway, {fault} }}\n  - wait: {{ for: local_agent.ready, within: 10s }}\n"


@pytest.mark.parametrize(
    ("written", "due"),
    [
        ("embedded", None),
        ("127.0.0.1:8474", ("127.0.0.1", 8474)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:2", ("::1", 2)),
    ],
)
def test_an_address(written: str, due: Address | None) -> None:
    assert server_address(written) == due


@pytest.mark.parametrize("written", ["", "here", ":84", "127.0.0.1:0", "127.0.0.1:99999", "10.0.0.1:84", "a.example:1"])
def test_what_is_none(written: str) -> None:
    with pytest.raises(UsageError, match="--faults"):
        server_address(written)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("reset: true, id: rough", "cannot do fault `rough` (reset): an RST"),
        ("cut: true, for: 1s, after: { frame: job.assign, from: gateway }", "fault `cut-1` (cut): `after` job.assign"),
    ],
)
def test_a_fault_that_no_server_can_do(tmp_path: Path, address: Address, fault: str, said: str) -> None:
    make_project(tmp_path, one=text(fault))
    done = lab("run", "scenarios/one.yaml", "--faults", f"{address[0]}:{address[1]}", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "scenarios/one.yaml:4" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_toxics_are_tried_before_the_run_and_nothing_of_it_stays(tmp_path: Path, address: Address) -> None:
    make_project(tmp_path, one=text("weather: packet-loss-5, for: 1s"))
    done = lab("run", "scenarios/one.yaml", "--faults", f"{address[0]}:{address[1]}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert call(address, "/proxies") == {}


def test_no_virtual_clock() -> None:
    done = lab("run", "scenarios/chat-resume.yaml", "--faults", "127.0.0.1:1", "--clock", "virtual")
    assert done.returncode == 2
    assert "needs the real clock" in done.stderr


def test_nobody_there() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{holder.getsockname()[1]}"
        done = lab("run", "scenarios/chat-resume.yaml", "--faults", name)
    assert done.returncode == 3
    assert f"no Toxiproxy server answers at {name}" in done.stderr


LONG = "steps:\n  - wait: { for: local_agent.ready, within: 10s }\n  - idle: 50s\n"


def struck(folder: Path, number: signal.Signals) -> tuple[int, dict[str, str], str, list[str]]:
    """A run whose server is struck in mid-run: exit status, its finding, its output, and its proxies by name."""
    make_project(folder, one=LONG)
    with lab_server_in_child() as (address, server):
        name = f"{address[0]}:{address[1]}"
        with Child(["run", "scenarios/one.yaml", "--faults", name], cwd=folder) as run:
            run.until("local agent ready")
            proxies = sorted(call(address, "/proxies"))
            server.send(number)
            try:
                status = run.end()
            finally:
                server.send(signal.SIGCONT)
    (finding,) = json.loads((folder / "runs" / "one" / "latest" / "result.json").read_text())["findings"]
    return status, finding, run.text, proxies


@pytest.mark.parametrize(
    ("number", "seen"),
    [(signal.SIGSTOP, "hangs: it did not answer within 5 s"), (signal.SIGKILL, "no Toxiproxy server")],
)
def test_a_server_that_hangs_or_dies_in_mid_run_ends_it(tmp_path: Path, number: signal.Signals, seen: str) -> None:
    """Long before the step's own limit; what could not be removed is named."""
    status, finding, told, proxies = struck(tmp_path, number)
    assert (status, finding["head"], len(proxies)) == (3, "lab", 2), told
    for words in (seen, *proxies):
        assert words in finding["sentence"]
        assert words in told
    assert "Traceback" not in told
