"""Following a run beside the steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.ground import NotThere
from lab.partner.client.outcomes import Done
from lab.run.partner.following import Following
from lab.run.partner.leg import make_driver
from lab.run.partner.world import build_partner_world
from lab.sim.run import run_virtual
from tests.run.partner.played import LONG_AGENT, QUESTION, written

Do = Callable[[RunContext, PartnerDriver], Awaitable[None]]


def with_a_run(folder: Path, do: Do) -> None:
    """`do` with a driver whose run r1 was just accepted."""
    scenario = written(folder, "  - membership: { user: anna }\n", LONG_AGENT)

    async def go() -> None:
        clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
        ctx = RunContext(3, clock, Journal(clock.now))
        world = await build_partner_world(ctx, scenario)
        driver = make_driver(ctx, world)
        await driver.start()
        try:
            await driver.membership("anna", team="shop")
            await driver.conversation("c1", "anna", agent=world.identity.agents["store"])
            await driver.grant("c1")
            await driver.bind("c1")
            assert isinstance(await driver.message("c1", "r1", QUESTION), Done)
            await do(ctx, driver)
        finally:
            await driver.close()
            await world.end()

    run_virtual(go, 3)


def test_it_waits_for_a_number_and_goes_on(tmp_path: Path) -> None:
    async def do(_ctx: RunContext, driver: PartnerDriver) -> None:
        following = Following(driver, "r1")
        await following.reach(3)
        assert 3 <= following.events.applied < 20
        await following.reach(40)
        assert 40 <= following.events.applied < 60
        await following.reach(None)
        end = await following.end()
        assert isinstance(end, Done)
        assert (end.value.status, end.value.events) == ("completed", following.events)
        # A number that never comes is not waited for.
        await following.reach(100_000)
        await following.close()

    with_a_run(tmp_path, do)


def test_a_run_that_never_began(tmp_path: Path) -> None:
    async def do(_ctx: RunContext, driver: PartnerDriver) -> None:
        with pytest.raises(NotThere):
            Following(driver, "r2")

    with_a_run(tmp_path, do)


def test_closing_ends_the_stream(tmp_path: Path) -> None:
    """Nothing more is taken, though the run goes on to its end."""

    async def do(_ctx: RunContext, driver: PartnerDriver) -> None:
        following = Following(driver, "r1")
        await following.reach(3)
        await following.close()
        seen = following.events.applied
        assert isinstance(await driver.poll("r1"), Done)
        assert following.events.applied == seen < 20

    with_a_run(tmp_path, do)


def test_a_defect_ends_the_wait(tmp_path: Path) -> None:
    """Whoever waits for events that a defect keeps away is told of the defect."""

    async def do(ctx: RunContext, driver: PartnerDriver) -> None:
        following = Following(driver, "r1")
        asyncio.get_running_loop().call_later(0.5, ctx.fail, ValueError("a defect"))
        with pytest.raises(ValueError, match="a defect"):
            await following.reach(None)
        await following.close()

    with_a_run(tmp_path, do)
