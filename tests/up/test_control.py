"""The control of a living environment, over HTTP as `lab fault` speaks to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.clock import Clock
from lab.commands.loading import load
from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.link import Link
from lab.journal.events import Event, FaultEnded, FaultFired, FaultPlanned, LinkChanged
from lab.journal.writer import Journal
from lab.run.partner.world import PartnerWorld, build_partner_world
from lab.scenario.one_fault import read_participants
from lab.up.control import MAX_BODY_BYTES, UpControl
from tests.command_line import ROOT
from tests.run.partner.played import OPENED, written

KEY = "the-key-of-this-environment"
ONBOARDING = ROOT / "scenarios" / "partner-onboarding.yaml"


class Served:
    """A control, and the world that it breaks."""

    def __init__(self, ctx: RunContext, world: PartnerWorld, control: UpControl) -> None:
        self.ctx = ctx
        self.world = world
        self.control = control

    async def ask(self, body: Any = None, key: str | None = KEY, path: str = "/faults") -> tuple[int, Any]:
        """Status and JSON of an answer; `body` None is a GET."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.control.url + path, data=data, headers=headers) as answer,
        ):
            return answer.status, await answer.json()

    def events(self, kind: type[Event]) -> list[Any]:
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, kind)]

    async def reaches(self, name: str) -> bool:
        """Whether a participant answers behind its link."""
        try:
            async with aiohttp.ClientSession() as session, session.get(self.world.base[name] + "/nothing") as answer:
                return answer.status > 0
        except aiohttp.ClientError:
            return False

    async def until(self, kind: type[Event]) -> None:
        """Until the journal has an event of this kind."""
        came = asyncio.Event()
        stop = self.ctx.journal.listen(lambda entry: came.set() if isinstance(entry.event, kind) else None)
        try:
            if not self.events(kind):
                await asyncio.wait_for(came.wait(), 20)
        finally:
            stop()


@asynccontextmanager
async def served(folder: Path, asked: Path = ONBOARDING) -> AsyncIterator[Served]:
    clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
    ctx = RunContext(3, clock, Journal(clock.now))
    scenario = written(folder, OPENED, "{ keeps_state: true }")
    world = await build_partner_world(ctx, scenario)
    control = UpControl(ctx, world, read_participants(load(asked)), KEY, lambda: 59.6)
    await control.start()
    try:
        yield Served(ctx, world, control)
    finally:
        await control.close()
        await world.end()


async def test_it_tells_what_there_is(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        status, told = await one.ask(path="/")
        assert status == 200
        assert told == {
            "links": {name: one.world.base[name] for name in ("partner_api", "store", "issuer")},
            "secondsLeft": 60,
        }


@pytest.mark.parametrize("key", [None, "", "another", f"{KEY} "[:-2]])
async def test_it_opens_by_its_key_alone(key: str | None, tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        due = (401, {"error": "the key is not this environment's"})
        assert await one.ask(path="/", key=key) == due
        assert await one.ask({"link": "store", "cut": True}, key=key) == due
        assert one.events(FaultPlanned) == []


async def test_a_link_is_cut_and_healed(tmp_path: Path) -> None:
    """Each order has an id of its own; what was ordered stands in the journal."""
    async with served(tmp_path) as one:
        assert await one.reaches("store")
        order = {"link": "store", "cut": True}
        assert await one.ask(order) == (200, {"fault": "cut", "target": "link store", "seconds": None})
        assert not await one.reaches("store")
        assert await one.reaches("partner_api")
        assert (await one.ask({"link": "store", "heal": True}))[0] == 200
        assert await one.reaches("store")
        assert [event.fault for event in one.events(FaultPlanned)] == ["up-1", "up-2"]


async def test_a_link_that_does_not_heal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever heals it is told that it stays cut."""

    def fails(_self: Link) -> None:
        raise EnvironmentFault("link store cannot listen again")

    async with served(tmp_path) as one:
        await one.ask({"link": "store", "cut": True})
        monkeypatch.setattr(Link, "heal", fails)
        assert await one.ask({"link": "store", "heal": True}) == (500, {"error": "link store cannot listen again"})


async def test_a_cut_ends_by_itself(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        status, told = await one.ask({"link": "store", "cut": True, "for": "50ms"})
        assert (status, told["seconds"]) == (200, 0.05)
        await one.until(FaultEnded)
        assert await one.reaches("store")


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"delay": "50ms"}, "delay"),
        ({"reset": True}, "reset"),
        ({"toxic": "latency", "attributes": {"latency": 5}}, "toxic"),
        ({"weather": "slow-mobile", "for": "1m"}, "weather"),
    ],
)
async def test_every_kind_of_fault_of_a_link(more: dict[str, Any], kind: str, tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        status, told = await one.ask({"link": "store", **more})
        assert (status, told.get("fault")) == (200, kind), told
        assert one.events(FaultPlanned)[0].what == kind
        if kind == "delay":
            assert [event.change for event in one.events(LinkChanged)] == ["delayed"]


@pytest.mark.parametrize("name", ["store", "partner_api"])
async def test_a_participant_dies_and_comes_back(name: str, tmp_path: Path) -> None:
    """The partner API with its keys, since it keeps its state."""
    async with served(tmp_path) as one:
        chat = one.world.model.keys.chat
        status, told = await one.ask({"partner": name, "crash": True, "for": "50ms"})
        assert (status, told["fault"], told["target"]) == (200, "crash", f"service {name}")
        assert len(one.events(FaultFired)) == 1
        await one.until(FaultEnded)
        assert await one.reaches(name)
        assert one.world.model.keys.chat == chat


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "the body is no JSON"),
        (b"[" * 9000, "the body is no JSON"),
        (b"[]", "the body is no JSON object"),
        (b'{"link":"store","attributes":' + b"[" * 700 + b"]" * 700 + b"}", "the body is nested too deep"),
        (b" " * (MAX_BODY_BYTES + 1), "the body is no JSON"),
        ({"link": "stroe", "cut": True}, "Did you mean `store`?"),
        ({"link": "store", "cat": True}, "cat"),
        ({"partner": "issuer", "crash": True}, "issuer"),
        ({"link": "store", "weather": "monsoon", "for": "1s"}, "monsoon"),
        ({"link": "store", "delay": "soon"}, "soon"),
        ({"link": "store", "cut": True, "for": "2h"}, "2h"),
        ({"frame": "ack", "from": "x", "do": "drop"}, ""),
        ({"agent2": "x", "crash": True}, ""),
        ({}, ""),
    ],
)
async def test_what_is_no_fault(body: Any, told: str, tmp_path: Path) -> None:
    """Refused in the words of the scenario language; nothing happens."""
    async with served(tmp_path) as one:
        status, answer = await one.ask(body)
        assert status == 400
        assert told in answer["error"]
        assert one.events(FaultPlanned) == []
        assert one.ctx.defects == []


@pytest.mark.parametrize("change", ["removed", "no-text", "no-yaml", "other-links", "script-gone"])
async def test_a_scenario_that_was_changed_since_breaks_no_order(change: str, tmp_path: Path) -> None:
    """Who takes part is known from the start."""
    scenario, script = tmp_path / "while-it-lives.yaml", tmp_path / "fixtures" / "script.yaml"
    script.parent.mkdir()
    script.write_bytes((ROOT / "fixtures" / "partner" / "product-9001.yaml").read_bytes())
    scenario.write_text(
        "scenario: while-it-lives\nabout: S\npartner_api: { agents: { store: { script: fixtures/script.yaml } } }\n"
        "steps: [ { membership: { user: anna } } ]\n"
    )
    async with served(tmp_path, scenario) as one:
        if change == "removed":
            scenario.unlink()
        elif change == "script-gone":
            script.rename(tmp_path / "renamed.yaml")
        else:
            links = b"{ scenario: s, about: S, store: {}, links: { shop: { to: store } } }"
            scenario.write_bytes({"no-text": b"\xff", "no-yaml": b"a: [1", "other-links": links}[change])
        assert (await one.ask({"link": "store", "cut": True}))[0] == 200
        assert not await one.reaches("store")
        assert (await one.ask({"link": "shop", "cut": True}))[0] == 400
        assert len(one.events(FaultPlanned)) == 1


async def test_it_has_an_address_while_it_is_served(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await one.control.close()
        await one.control.close()
        with pytest.raises(MisuseError):
            _ = one.control.url
