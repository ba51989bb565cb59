"""Carrying out the steps of a scenario, one after the other, each with its own deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import singledispatchmethod

from lab.context import RunContext
from lab.errors import MisuseError, NotApplicable, SutFault
from lab.faults.plan import FAULT_KINDS, Acts
from lab.gateway.jobs import CallRefused, Job
from lab.gateway.junk import junk
from lab.gateway.server import GatewayServer
from lab.journal.events import SessionChanged
from lab.run.agents import REFERENCE
from lab.run.conditions import Conditions, until
from lab.run.driver import RETRIED_CODES, Driver, NotAssigned
from lab.run.patience import PatientCaller
from lab.run.step_course import StepFailed, take_step
from lab.run.step_words import describe
from lab.run.strike import plan_fault, strike
from lab.run.whereabouts import gateway_of
from lab.run.world import World
from lab.scenario.model import (
    ApproveStep,
    AssignStep,
    CancelStep,
    ContentStep,
    FaultStep,
    IdleStep,
    InjectStep,
    ResultStep,
    Scenario,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step

BEGUN = ("running", "waiting_approval", "done", "failed", "cancelled")
"""States of a job.event that a job has once it has begun to run."""

ANSWERS = {"accepted": "accepted", "rejected": "rejected", "running": "accepted"}
"""The agent's answer to the assignment that a wait for a job needs."""


class StepRunner:
    """Runs steps against a world."""

    def __init__(self, ctx: RunContext, scenario: Scenario, world: World, driver: Driver) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._world = world
        self._driver = driver
        self._conditions = Conditions(ctx, {spec.name: spec.gateway for spec in scenario.local_agents.values()})
        self._patient = PatientCaller(driver, self._until, self._is_ready, self._is_over)
        self._may_be_gone: dict[str, None] = {}
        """Agents whose end a step has waited for."""

    async def run(self) -> None:
        """Run all steps. Raises what ended them early: `StepFailed`, `SutFault`, or a defect of the lab."""
        for index, step in enumerate(self._scenario.steps):
            await take_step(self._ctx, index, step, describe(step), self._one, self._waited_for)
        self._refuse_dead()

    def close(self) -> None:
        """Stop looking at the journal."""
        self._conditions.close()

    async def await_arrivals(self) -> None:
        """Wait for the programs that need time to start. Raises `SutFault` for one that dies or never connects."""
        for name, sut in self._world.suts.items():
            if not sut.patience:
                continue
            try:
                async with asyncio.timeout(sut.patience):
                    await self._until(lambda name=name: self._has_shown(name))  # type: ignore[misc]
            except TimeoutError:
                raise SutFault(
                    f"{name} never connected to the gateway: nothing came within {sut.patience:g} s of its start"
                ) from None

    def _has_shown(self, agent: str) -> bool:
        return self._conditions.has_connected(agent) or self._conditions.was_refused(agent)

    async def _one(self, step: Step) -> str:
        try:
            return await self._do(step)
        except NotAssigned:
            if not self._scenario.patient:
                raise
            return "there is none: the job was never assigned"

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and end early when the lab has a defect or a SUT died."""

        def settled() -> bool:
            return bool(self._ctx.defects) or bool(self._dead()) or condition()

        await until(self._ctx, settled)
        if self._ctx.defects:
            raise self._ctx.defects[0]
        if not condition():
            self._refuse_dead()

    def _dead(self) -> list[tuple[str, str]]:
        """Agents that died though no step waited for it, with how."""
        deaths = [(name, sut.death()) for name, sut in self._world.suts.items() if name not in self._may_be_gone]
        return [(name, death) for name, death in deaths if death is not None]

    def _refuse_dead(self) -> None:
        """Raises with the last words of a SUT that died: it broke a promise if it had been ready before."""
        for name, death in self._dead():
            if self._conditions.came_up(name):
                raise StepFailed(death)
            raise SutFault(death)

    def _waited_for(self, step: Step) -> str:
        match step:
            case WaitStep() if step.subject in self._world.suts:
                return self._session_words(step)
            case StreamStep():
                follower = self._driver.job(step.job).follower
                due = "the end" if step.events is None else f"{step.events} events"
                return f"{due} of the stream; {len(follower.events)} events in {follower.pages} pages came"
            case ResultStep() | WaitStep():
                return "it did not come"
            case _:
                return "no answer came"

    def _session_words(self, step: WaitStep) -> str:
        states = self._conditions.states(step.subject)
        refusals = self._conditions.refusals(step.subject)
        if states:
            return f"its session went {' → '.join(states[-4:])}"
        if refusals:
            return f"{refusals} connections came with a credential that the gateway does not know"
        if self._conditions.has_connected(step.subject):
            return "it connected but did not register"
        return "it never connected to the gateway"

    # One method a kind of step; each returns a few words for people

    @singledispatchmethod
    async def _do(self, step: Step) -> str:
        raise MisuseError(f"no runner for {type(step).__name__}")

    @_do.register
    async def _(self, step: WaitStep) -> str:
        if step.subject.startswith("job."):
            return await self._wait_job(step)
        if step.subject.startswith("fault."):
            name = step.subject.removeprefix("fault.")
            await self._until(lambda: self._conditions.has_fired(name))
            return ""
        return await self._wait_agent(step)

    async def _wait_job(self, step: WaitStep) -> str:
        label = step.subject.removeprefix("job.")
        assigned = self._driver.job(label)
        job = assigned.job
        tests: dict[str, Callable[[], bool]] = {
            "accepted": lambda: job.answer is not None or job.results > 0,
            "rejected": lambda: job.answer is not None,
            "running": lambda: job.state in BEGUN or self._is_over(job),
            "ended": lambda: self._is_over(job),
            "cancelled": lambda: self._is_over(job),
            "repeated": lambda: self._conditions.is_repeated(job.job_id),
        }
        await self._until(tests[step.condition])
        due = ANSWERS.get(step.condition)
        # A patient caller waits for a job to run until it cannot any more.
        may_differ = self._scenario.patient and step.condition == "running"
        if due is not None and job.answer not in (None, due) and not may_differ:
            raise StepFailed(f"{job.answer}{f' ({job.code})' if job.code else ''}, {step.condition} was due")
        outcome = job.result.get("outcome") if job.result is not None else job.answer
        if step.condition == "cancelled" and outcome != step.condition:
            raise StepFailed(f"the job ended {outcome}, {step.condition} was due")
        return job.code or ""

    def _is_over(self, job: Job) -> bool:
        """Whether a job has ended, or will never begin."""
        return job.results > 0 or self._is_rejected(job)

    def _is_rejected(self, job: Job) -> bool:
        # SQ-008: the ack of a repeat says duplicate, so a rejection whose ack was lost is never known to its gateway.
        unknown = self._scenario.patient and self._conditions.is_rejected(job.job_id)
        return unknown or job.answer == "rejected"

    async def _wait_agent(self, step: WaitStep) -> str:
        name = step.subject
        tests: dict[str, Callable[[], bool]] = {
            "ready": lambda: self._is_ready(name),
            "resumed": lambda: self._is_ready(name) and self._conditions.has_resumed(name),
            "disconnected": lambda: not self._is_ready(name),
            "refused": lambda: self._conditions.was_refused(name),
            "v1": lambda: self._conditions.speaks_v1(name),
        }
        if step.condition in ("disconnected", "refused"):
            return await self._wait_gone(step, tests[step.condition])
        if self._scenario.patient and step.condition == "resumed":
            await self._patient.await_return(lambda: self._conditions.has_returned(name))
            # RS-006: in which session it goes on is told by laws.
            step = replace(step, condition="ready")
        await self._until(tests[step.condition])
        if step.condition == "v1":
            return "on the same connection"
        self._check_requires(name)
        return self._session_note(name)

    def _is_ready(self, agent: str) -> bool:
        agent_id = self._world.identity.agents[agent].agent_id
        return self._gateway_of(agent).core.is_ready(agent_id)

    def _check_requires(self, agent: str) -> None:
        """Raises `NotApplicable` when an agent that is ready does not announce what the scenario needs."""
        wanted = [name for name in self._scenario.requires if name != REFERENCE]
        announced = self._conditions.capabilities(agent)
        missing = [name for name in wanted if name not in announced]
        if missing:
            raise NotApplicable(f"not applicable: {agent} does not announce {', '.join(missing)}")

    async def _wait_gone(self, step: WaitStep, condition: Callable[[], bool]) -> str:
        self._may_be_gone[step.subject] = None
        sut = self._world.suts[step.subject]
        await self._until(lambda: condition() or sut.death() is not None)
        return "it ended" if sut.death() is not None else ""

    def _session_note(self, agent: str) -> str:
        for entry in reversed(self._ctx.journal.entries):
            event = entry.event
            if isinstance(event, SessionChanged) and event.agent == agent and event.state in ("ready", "resumed"):
                if event.state == "resumed":
                    return f"resumed:true · {event.detail.get('sentAgain', 0)} gateway frames sent again"
                names = " ".join(event.detail.get("capabilities", ()))
                return f"v2 {event.detail.get('revision', '')} · {names}"
        return ""

    @_do.register
    async def _(self, step: AssignStep) -> str:
        try:
            if self._scenario.patient and step.fails is None:
                return await self._patient.assign(step)
            job = self._driver.assign(step)
        except CallRefused as refused:
            if refused.code == step.fails:
                return f"refused: {refused.code}, as it must be"
            raise StepFailed(f"the gateway refused the job: {refused}") from None
        if step.fails is not None:
            raise StepFailed(f"the gateway took the job, {step.fails} was due")
        return f"{job.kind}"

    @_do.register
    async def _(self, step: CancelStep) -> str:
        if self._scenario.patient:
            return await self._patient.cancel(step)
        self._driver.cancel(step.job, step.reason)
        return step.reason

    @_do.register
    async def _(self, step: StreamStep) -> str:
        if self._scenario.patient and step.events is None and self._is_rejected(self._driver.job(step.job).job):
            return "there is none: the job was rejected"
        assigned = self._driver.follow(step.job)
        follower = assigned.follower

        def reached() -> bool:
            enough = step.events is not None and len(follower.events) >= step.events
            return enough or follower.done or assigned.failure is not None

        await self._until(reached)
        if assigned.failure is not None:
            raise StepFailed(str(assigned.failure)) from None
        if step.events is not None and len(follower.events) < step.events:
            raise StepFailed(f"the stream ended after {len(follower.events)} events, {step.events} were due")
        if step.events is not None:
            return f"{len(follower.events)} events in {follower.pages} pages"
        odd = len(follower.odd)
        return f"{len(follower.events)} events in {follower.pages} pages{f' · {odd} out of place' if odd else ''}"

    @_do.register
    async def _(self, step: SessionStep) -> str:
        opening = self._driver.open_session(step.job)
        await self._until(lambda: opening.over)
        if opening.view is None:
            raise StepFailed(str(opening.failure)) from opening.failure
        return f"{len(opening.view.turns)} turns{', truncated' if opening.view.truncated else ''}"

    @_do.register
    async def _(self, step: ResultStep) -> str:
        job = self._driver.job(step.job).job
        await self._until(lambda: job.results > 0 or job.answer == "rejected")
        if job.result is None:
            raise StepFailed(f"the job was rejected{f' ({job.code})' if job.code else ''}; it has no result")
        code = job.result.get("errorCode")
        return f"{job.result.get('outcome')}{f' ({code})' if code else ''}"

    @_do.register
    async def _(self, step: ApproveStep) -> str:
        if self._scenario.patient:
            return await self._patient.approve(step)
        job = self._driver.job(step.job).job
        await self._until(lambda: job.approval_id is not None or job.results > 0)
        if job.approval_id is None:
            raise StepFailed(f"job {step.job} ended without asking for an approval")
        self._driver.approve(step.job, step.decision)
        return job.approval_id

    @_do.register
    async def _(self, step: IdleStep) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(step.seconds):
                await self._until(lambda: False)
        return ""

    @_do.register
    async def _(self, step: FaultStep) -> str:
        fault = step.fault
        self._conditions.mark()
        plan_fault(self._ctx, fault)
        if FAULT_KINDS[fault.kind].acts is Acts.PROCESS:
            await self._world.processes.strike(fault)
            return ""
        if fault.anchor is not None:
            self._gateway_of(fault.anchor.sender).faults.watch.arm(fault)
            return "armed"
        await strike(fault, self._world.services, self._world.faults)
        return ""

    def _gateway_of(self, sender: str) -> GatewayServer:
        """A gateway by its name, or the one that a local agent is at."""
        if sender in self._world.gateways:
            return self._world.gateways[sender]
        agent_id = self._world.identity.agents[sender].agent_id
        return gateway_of(self._scenario, self._world.gateways, self._scenario.local_agents[sender], agent_id)

    @_do.register
    async def _(self, step: InjectStep) -> str:
        self._conditions.mark()
        plan_fault(self._ctx, step.fault)
        gateway = self._gateway_of(step.to)
        message: str | bytes = step.text or ""
        if step.junk is not None:
            message = junk(step.junk, self._world.identity.tenant_id, gateway.core.max_frame_bytes)
        try:
            gateway.inject(self._world.identity.agents[step.to].agent_id, message, step.fault)
        except CallRefused as refused:
            raise StepFailed(f"nothing could be sent: {refused}") from None
        return f"{len(message)} {'bytes' if isinstance(message, bytes) else 'characters'}"

    @_do.register
    async def _(self, step: ContentStep) -> str:
        reading = self._driver.read_content(step.job, step.kind, step.pace)
        await self._until(lambda: reading.over)
        code = reading.code
        if code != step.fails and not (self._scenario.patient and code in (None, *RETRIED_CODES)):
            due = _content_words(step.fails)
            raise StepFailed(f"{_content_words(code)} after {reading.chunks} chunks, {due} was due")
        return f"{reading.chunks} chunks{f', then {code}, as it must be' if code else ''}"


def _content_words(code: str | None) -> str:
    return "a whole answer" if code is None else code
