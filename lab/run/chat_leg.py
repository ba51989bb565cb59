"""The chat leg of a run: gateway, agent2 and Local Agent are started, driven, judged and ended."""

from __future__ import annotations

import asyncio

from lab.context import RunContext
from lab.contract.chosen import contract_folder
from lab.errors import LabError, SutFault
from lab.faults.address import Address
from lab.journal.events import ExpectationJudged, SessionChanged
from lab.run.agents import SutChoice
from lab.run.driver import Driver
from lab.run.expectations import Held, judge_expectation
from lab.run.step_course import StepFailed
from lab.run.steps import StepRunner
from lab.run.world import World, build_world
from lab.scenario.model import Scenario


class ChatLeg:
    """A `Leg`. `faults` is the Toxiproxy server that carries the links; None takes the lab's own engine."""

    def __init__(self, ctx: RunContext, scenario: Scenario, choice: SutChoice, faults: Address | None) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._choice = choice
        self._faults = faults
        self.held: list[Held] = []

    async def run(self) -> None:
        """See `Leg.run`."""
        scenario = self._scenario
        world = await build_world(self._ctx, scenario, contract_folder(), self._choice, self._faults)
        try:
            await self._drive(world)
        finally:
            await world.end()

    async def _drive(self, world: World) -> None:
        driver = Driver(self._ctx, self._scenario, world.identity, world.gateways)
        steps = StepRunner(self._ctx, self._scenario, world, driver)
        try:
            await steps.await_arrivals()
            try:
                async with asyncio.timeout(self._scenario.deadline):
                    await steps.run()
            except TimeoutError:
                raise StepFailed(f"the run's deadline of {self._scenario.deadline:g} s is over") from None
        except StepFailed as failure:
            raise self._never_came_up(failure) from failure
        finally:
            try:
                self._judge_expectations(driver)
            finally:
                steps.close()
                await driver.close()

    def _never_came_up(self, failure: StepFailed) -> LabError:
        """A program that never reached the gateway is no broken promise: the run could not begin."""
        came_up = any(isinstance(entry.event, SessionChanged) for entry in self._ctx.journal.entries)
        return failure if came_up else SutFault(f"no local agent became ready: {failure}")

    def _judge_expectations(self, driver: Driver) -> None:
        views = driver.views(self._ctx.journal.entries)
        for expectation in self._scenario.expect:
            held = judge_expectation(expectation, views)
            self.held.append(held)
            event = ExpectationJudged(expectation.path, held.held, held.seen, held.due, expectation.line)
            self._ctx.journal.record("driver", event)
