"""The partner leg of a run."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Callable

from lab.context import RunContext
from lab.errors import NotApplicable, UsageError
from lab.faults.address import Address
from lab.journal.events import ExpectationJudged
from lab.partner.api_schema import api_schema
from lab.partner.client.driver import PartnerDriver
from lab.run.expectations import Held
from lab.run.figures import figures_of
from lab.run.partner.applicability import beyond
from lab.run.partner.expectations import judge_partner_expectation
from lab.run.partner.foreign import FIXTURE, found_fixture, workspace_of
from lab.run.partner.live import live_key_of
from lab.run.partner.steps import PartnerSteps
from lab.run.partner.world import Foreign, PartnerWorld, build_partner_world
from lab.run.step_course import StepFailed
from lab.scenario.model import Scenario
from lab.tap.partner import PartnerTap

DRIVER = "driver"
REFERENCE = "reference"


class PartnerLeg:
    """A `Leg`. `faults` is the Toxiproxy server that carries the links; None takes the lab's own engine.

    `foreign` is a partner API that the lab does not start; None takes the lab's own model.
    """

    def __init__(
        self, ctx: RunContext, scenario: Scenario, faults: Address | None, foreign: Foreign | None = None
    ) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._faults = faults
        self._foreign = foreign
        self.held: list[Held] = []

    async def run(self) -> None:
        """See `Leg.run`."""
        if self._foreign is not None:
            self._check_applicable(self._foreign)
        world = await build_partner_world(self._ctx, self._scenario, self._faults, foreign=self._foreign)
        try:
            driver = make_driver(self._ctx, world)
            await driver.start()
            try:
                await self._drive(world, driver)
            finally:
                await driver.close()
        finally:
            await world.end()

    def _check_applicable(self, foreign: Foreign) -> None:
        """Raises `NotApplicable` for a scenario that needs what only the lab's own parts can be made to do."""
        running = found_fixture(foreign.workspace, self._ctx.wall_ms())
        why = beyond(self._scenario, own_store=running is None or running.issuer is None)
        if why is not None:
            raise NotApplicable(f"not applicable to another partner API: {why}")

    async def _drive(self, world: PartnerWorld, driver: PartnerDriver) -> None:
        steps = PartnerSteps(self._ctx, self._scenario, world, driver)
        try:
            try:
                async with asyncio.timeout(self._scenario.deadline):
                    await steps.run()
            except TimeoutError:
                raise StepFailed(f"the run's deadline of {self._scenario.deadline:g} s is over") from None
        finally:
            try:
                self._judge_expectations(steps)
            finally:
                await steps.close()

    def _judge_expectations(self, steps: PartnerSteps) -> None:
        figures = figures_of(self._ctx.journal.entries).as_json()
        for expectation in self._scenario.expect:
            held = judge_partner_expectation(expectation, steps.seen, figures)
            self.held.append(held)
            event = ExpectationJudged(expectation.path, held.held, held.seen, held.due, expectation.line)
            self._ctx.journal.record("driver", event)


def make_driver(ctx: RunContext, world: PartnerWorld) -> PartnerDriver:
    """The driver of a run, not started yet; its tap knows every key of the run."""
    if world.api is None:
        # Another partner API still knows the employees and the keys of earlier runs of the same seed.
        ctx = copy.copy(ctx)
        ctx.seed = int.from_bytes(ctx.secret_draws(DRIVER, "seed").bytes(8), "big")
    return PartnerDriver(ctx, DRIVER, world.target, world.issuer_target, PartnerTap(api_schema(), world.secrets))


def foreign_of(scenario: Scenario, use: str | None, clock: str, tell: Callable[[str], None]) -> Foreign | None:
    """The partner API that `use`, else the scenario, names; None for the lab's own.

    Raises `UsageError` for one that cannot be had.
    """
    spec = scenario.partner
    chosen = use or (spec.api.use if spec is not None else REFERENCE)
    if chosen == REFERENCE:
        return None
    if chosen != FIXTURE and not chosen.startswith(("http://", "https://")):
        raise UsageError(f"{scenario.file}: `{chosen}` is no partner API: due is {REFERENCE}, {FIXTURE} or a URL.")
    if clock == "virtual":
        raise UsageError(
            f"{scenario.file}: only the lab's own partner API runs on the virtual clock. Take --clock virtual away, "
            "or use --partner reference."
        )
    origin = None if chosen == FIXTURE else chosen.rstrip("/")
    return Foreign(workspace_of(os.environ), tell, origin, live_key_of(os.environ))
