"""The doubles of docker-compose.yml, started by its own commands on free ports, find each other and do a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose import front
from tests.compose_host import Host, call, host_of


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_of(tmp_path, front("faults")) as made:
        yield made


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
