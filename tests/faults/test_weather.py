"""The weathers that the lab has: what they do to what flows, and who can bring them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.faults.specs import ToxicSpec
from lab.faults.weather import Phase, recurring
from lab.scenario.model import FaultStep
from tests.command_line import ROOT, lab, make_project
from tests.faults.virtual import Rig, at, near, virtual
from tests.scenario.texts import load

WEATHERS = sorted(path.stem for path in (ROOT / "fixtures" / "weather").glob("*.yaml"))
OF_TOXIPROXY = {"latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data"}
"""What a Toxiproxy server of version 2.12.0 can do."""

CHAT = """\
agent2: {{ kinds: [chat], scripts: {{ chat: fixtures/agent2/long-answer.yaml }} }}
links: {{ gateway: {{}}, agent2: {{}} }}
steps:
  - fault: {{ link: gateway, weather: {weather} }}
  - wait: {{ for: local_agent.ready, within: 20s }}
  - assign: {{ job: q1, kind: chat, input: "Why does checkout fail for product 9001?" }}
  - stream: {{ job: q1, until: done, within: 60s }}
expect:
  - job.q1.outcome: no_change
"""


def phases(folder: Path, weather: str) -> tuple[Phase, ...]:
    """What a weather is made of."""
    make_project(folder)
    head = f"scenario: one\nabout: One weather\n{CHAT.format(weather=weather)}"
    (fault,) = [step.fault for step in load(folder, "one", head).steps if isinstance(step, FaultStep)]
    return fault.course


def test_which_weathers_a_toxiproxy_server_can_bring(tmp_path: Path) -> None:
    """As docs/faults.md says."""
    able = set()
    for weather in WEATHERS:
        kinds = {toxic.type for phase in phases(tmp_path / weather, weather) for toxic in phase.toxics}
        able |= {weather} if kinds <= OF_TOXIPROXY else set()
    assert able == {"flaky-wifi", "slow-mobile"}
    assert set(WEATHERS) - able == {"corporate-proxy", "packet-loss-5", "tls-intercept-stall"}


def test_a_stall_of_tls_intercept_holds_the_connect_and_slices_what_comes(tmp_path: Path) -> None:
    (phase,) = phases(tmp_path, "tls-intercept-stall")

    @virtual
    async def scenario(rig: Rig) -> None:
        proxy = await rig.proxy(*phase.toxics)
        client = await rig.client(proxy)
        client.send(b"hello")
        await at(2.4)
        assert rig.servers == []
        await at(3)
        (server,) = rig.servers
        # The latency ran while the connect was held.
        assert server.heard == [(near(2.5), b"hello")]
        server.send(b"x" * 5000)
        await at(4)
        sizes = [len(what) for _, what in client.heard if isinstance(what, bytes)]
        times = [when for when, _ in client.heard]
        assert sum(sizes) == 5000
        assert all(256 <= size <= 768 for size in sizes[:-1])
        assert times == [near(3 + 0.0005 * number) for number in range(len(sizes))]

    scenario()


@pytest.mark.parametrize("speaker", ["client", "server"])
def test_a_corporate_proxy_ends_only_what_is_idle_both_ways(tmp_path: Path, speaker: str) -> None:
    (phase,) = phases(tmp_path, "corporate-proxy")

    @virtual
    async def scenario(rig: Rig) -> None:
        client, server = await rig.pair(await rig.proxy(*phase.toxics))
        for beat in range(4):
            await at(40.0 * beat)
            (client if speaker == "client" else server).send(b"beat")
        await at(179)
        assert client.ends == server.ends == []
        await at(181)
        assert [what for _, what in client.ends] == [what for _, what in server.ends] == ["FIN"]

    scenario()


@pytest.mark.parametrize("weather", WEATHERS)
def test_a_chat_comes_through_every_weather(tmp_path: Path, weather: str) -> None:
    make_project(tmp_path, one=CHAT.format(weather=weather))
    done = lab("run", "scenarios/one.yaml", "--clock", "virtual", "--seed", "7", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_recurs_stands_at_the_beginning_of_each_round() -> None:
    toxics = (ToxicSpec("noop"),)
    assert recurring(toxics, 2, 5) == (Phase(toxics, 2), Phase((), 3))
