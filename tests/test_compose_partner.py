"""The partner leg of docker-compose.yml, started by its own commands on free ports, and its tour."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import PATIENCE, environment
from tests.compose import front
from tests.compose_host import Host, call, host_of

SERVICES = ("partner-faults", "store", "partner")
LATENCY_S = 0.7
MEMBERSHIP, GRANT, FOLLOW = "membership of anna", "grant for c1", "follow r1 to its end"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_of(tmp_path, front("partner-faults")) as made:
        yield made


def seconds_of(step: str, tour: subprocess.CompletedProcess[str]) -> float:
    """How long a step took, by the tour's own lines."""
    (seconds,) = re.findall(rf"✓ {step} +([0-9.]+) s", tour.stdout)
    return float(seconds)


def proxies_of(host: Host) -> list[dict[str, Any]]:
    return list(call(host.port(8474), "", "GET", "/proxies").values())


def by_hand(told: str, folder: Path) -> str:
    """What the commands say that the tour prints, when a person copies them all; `exec` is not needed here."""
    commands = told[told.index("# 0 ") :].replace("docker compose exec -T partner ", "")
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_they_find_each_other_and_a_whole_turn_works(host: Host, tmp_path: Path) -> None:
    """From membership to a streamed answer: by the driver, and by the commands that the tour gives to a person."""
    for name in SERVICES:
        assert not host.is_healthy(name)
        host.start(name)
    tour = host.run("tour")
    assert tour.returncode == 0, tour.stdout + tour.stderr
    assert "PASS" in tour.stdout
    assert seconds_of(FOLLOW, tour) < LATENCY_S
    assert "store catalog_get 200" in host.log("store").read_text()
    assert all(file.stat().st_mode & 0o077 == 0 for file in host.files())

    shown = by_hand(tour.stdout, tmp_path)
    assert "event: done" in shown
    assert '"latency":800' in shown
    assert [proxy["enabled"] and not proxy["toxics"] for proxy in proxies_of(host)] == [True, True, True]
    assert host.log("store").read_text().count("store catalog_get 200") == 2

    logs = tour.stdout + "".join(host.log(name).read_text() for name in SERVICES)
    secrets = [value for name, value in host.handed_over().items() if re.search("KEY|CREDENTIAL", name)]
    assert len(secrets) >= 6
    assert [secret for secret in secrets if secret in logs] == []
    assert host.stop() == [0, 0, 0]


def test_a_toxic_delays_what_it_stands_before(host: Host) -> None:
    """Driver and model are led through the proxies, and the tour can be taken again."""
    for name in SERVICES:
        host.start(name)
    slow = {"name": "slow", "type": "latency", "attributes": {"latency": int(LATENCY_S * 1000)}}
    faults = host.port(8474)
    for proxy in ("store", "issuer"):
        call(faults, "", "POST", f"/proxies/{proxy}/toxics", slow)
    behind = host.run("tour")
    call(faults, "", "POST", "/reset")
    call(faults, "", "POST", "/proxies/partner_api/toxics", slow)
    before = host.run("tour")
    assert seconds_of(FOLLOW, behind) >= LATENCY_S
    assert seconds_of(GRANT, before) < LATENCY_S <= seconds_of(GRANT, behind)
    assert seconds_of(MEMBERSHIP, behind) < LATENCY_S <= seconds_of(MEMBERSHIP, before)


def test_the_tour_fails_when_a_turn_does(host: Host) -> None:
    """It then says nothing of how to go on."""
    for name in SERVICES:
        host.start(name)
    call(host.port(8474), "", "POST", "/proxies/store", {"enabled": False})
    tour = host.run("tour")
    assert tour.returncode == 1
    assert "FAIL" in tour.stdout
    assert "It works" not in tour.stdout
