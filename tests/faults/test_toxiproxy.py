"""The driver of a Toxiproxy server: what it does is so on the server, and what the server refuses has a name."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lab.faults.address import Address
from lab.faults.specs import ToxicSpec
from lab.faults.toxiproxy import ToxicRefused, ToxiproxyServer
from lab.faults.toxiproxy_calls import ToxiproxyFault
from tests.command_line import PATIENCE, ROOT, Child, lab
from tests.faults.toxiproxy_servers import READY, SERVERS, call


@pytest.fixture(scope="module", params=sorted(SERVERS))
def address(request: pytest.FixtureRequest) -> Iterator[Address]:
    """A server of either make."""
    with SERVERS[request.param]() as made:
        yield made


@pytest.fixture
def server(address: Address) -> Iterator[ToxiproxyServer]:
    """The driver, and a proxy of somebody else's, which is still as it was behind the test."""
    call(address, "/proxies", {"name": "others", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1"})
    before = call(address, "/proxies")["others"]
    driver = ToxiproxyServer(address)
    yield driver
    with suppress(ToxiproxyFault):
        driver.delete("mine")
    assert call(address, "/proxies") == {"others": before}
    driver.delete("others")


@pytest.fixture
def upstream() -> Iterator[socket.socket]:
    """Where proxies lead to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening


def test_it_knows_the_server(server: ToxiproxyServer) -> None:
    assert server.version()[0].isdigit()


def test_a_proxy_leads_to_its_upstream_until_it_is_cut(server: ToxiproxyServer, upstream: socket.socket) -> None:
    listen = server.create("mine", upstream.getsockname())
    with socket.create_connection(listen, PATIENCE) as client, upstream.accept()[0] as far:
        client.sendall(b"x")
        assert far.recv(1) == b"x"
        server.disable("mine")
        assert client.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listen, PATIENCE)
    server.enable("mine")
    with socket.create_connection(listen, PATIENCE), upstream.accept()[0]:
        pass
    server.delete("mine")
    server.delete("mine")


def test_toxics_stand_as_they_were_asked_for(server: ToxiproxyServer, address: Address) -> None:
    server.create("mine", ("127.0.0.1", 1))
    spec = ToxicSpec("latency", "f.latency.1", "upstream", 0.3, {"latency": 200, "jitter": 50})
    server.add_toxic("mine", spec)
    assert call(address, "/proxies/mine/toxics/f.latency.1") == {
        "name": "f.latency.1",
        "type": "latency",
        "stream": "upstream",
        "toxicity": 0.3,
        "attributes": {"latency": 200, "jitter": 50},
    }
    server.update_toxic("mine", ToxicSpec("latency", "f.latency.1", "upstream", 0.3, {"latency": 10}))
    assert call(address, "/proxies/mine/toxics/f.latency.1")["attributes"] == {"latency": 10, "jitter": 50}
    server.remove_toxic("mine", "f.latency.1")
    assert call(address, "/proxies/mine/toxics") == []


@pytest.mark.parametrize("kind", ["none", "unheard_of"])
def test_a_toxic_that_it_does_not_know(server: ToxiproxyServer, kind: str) -> None:
    server.create("mine", ("127.0.0.1", 1), enabled=False)
    with pytest.raises(ToxicRefused, match=f"does not take the toxic {kind}: invalid toxic type"):
        server.add_toxic("mine", ToxicSpec(kind, "t"))


def test_an_attribute_that_it_drops(server: ToxiproxyServer) -> None:
    """A server that does not know an attribute says nothing of it, and is found out."""
    server.create("mine", ("127.0.0.1", 1), enabled=False)
    with pytest.raises(ToxicRefused, match="does not have unheard_of then"):
        server.add_toxic("mine", ToxicSpec("latency", "t", attributes={"latency": 1, "unheard_of": 5}))


def test_a_name_that_is_taken(server: ToxiproxyServer) -> None:
    with pytest.raises(ToxiproxyFault, match="refuses: This proxy already exists"):
        server.create("others", ("127.0.0.1", 1))


@pytest.mark.parametrize("act", ["enable", "disable"])
def test_a_proxy_that_somebody_removed(server: ToxiproxyServer, act: str) -> None:
    with pytest.raises(ToxiproxyFault, match="gone from the Toxiproxy server"):
        getattr(server, act)("mine")


def test_a_port_that_was_taken_meanwhile(server: ToxiproxyServer, address: Address) -> None:
    """The client says nothing of an `enable` that failed; here it has the server's own words."""
    listen = server.create("mine", ("127.0.0.1", 1))
    server.disable("mine")
    server.delete("mine")
    call(
        address, "/proxies", {"name": "mine", "listen": f"{listen[0]}:{listen[1]}", "upstream": "a:1", "enabled": False}
    )
    with socket.create_server(listen), pytest.raises(ToxiproxyFault, match="HTTP 500"):
        server.enable("mine")


def test_the_main_scenario_passes_on_it(server: ToxiproxyServer, tmp_path: Path) -> None:
    """And leaves nothing behind, as the fixture sees."""
    scenario = ROOT / "scenarios" / "chat-resume.yaml"
    done = lab("run", scenario, "--faults", server.name, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"--faults {server.name}" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(server: ToxiproxyServer, tmp_path: Path, number: signal.Signals) -> None:
    with Child(["run", "scenarios/chat-resume.yaml", "--faults", server.name, "--out", tmp_path]) as run:
        run.until("gateway link cut")
        run.send(number)
        assert run.end() == 130


def test_a_server_that_ends_in_mid_run(tmp_path: Path) -> None:
    """Status 3, and a sentence."""
    with Child(["serve", "faults", "--port", "0"]) as ending:
        name = ending.until(READY).removeprefix(READY).split(" ")[0]
        with Child(["run", "scenarios/chat-resume.yaml", "--faults", name, "--out", tmp_path]) as run:
            run.until("stream q1 to 40 events")
            ending.process.kill()
            assert run.end() == 3
            assert f"no Toxiproxy server answers at {name}" in run.text
            assert "Traceback" not in run.text
