"""One turn: what happens between an accepted run and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lab.partner.model.budget import budget_refusal
from lab.partner.model.ledger import Ledger, recorded
from lab.partner.model.mcp_wire import McpFault
from lab.partner.model.parts import Parts
from lab.partner.model.prompt import Prompt, prompt_of
from lab.partner.model.refusals import Refusal
from lab.partner.model.runs import CALL_ID_BYTES, Run, tell_turn
from lab.partner.model.script import Attempt, ModelIteration, OnFailure, Pause, Script, Text, ToolCall
from lab.partner.model.store_calls import CONTEXT_DENIED, CallOutcome, StoreCalls, StoreHttp, told_grant
from lab.partner.model.timings import IterationMeter, Stage, StageClock, queued_micros
from lab.partner.model.turn_record import (
    CANCELLED,
    COMPLETED,
    LIMITED,
    TOOL_ERROR,
    Ending,
    RunGone,
    TurnRecord,
    failed,
)
from lab.partner.model.usage import BillingEvent, PriceTable, token_event, usage_of
from lab.partner.model.words import CHAT_EXECUTION_FAILED, Code


class _Denied(Exception):
    """The run may do nothing further (MB-037, MSG-044)."""

    def __init__(self, code: Code) -> None:
        super().__init__(str(code))
        self.code = code


class _ProviderFailed(Exception):
    """The scripted provider failed; its own text goes nowhere (PA-018)."""


class Effect(StrEnum):
    """What a turn does to others; the value names its count."""

    MODEL = "modelRequests"
    DISCOVERY = "storeDiscoveries"
    TOOL = "storeCalls"


@dataclass(frozen=True, slots=True)
class TurnSetting:
    """What all turns of a model share. `ready` is closed while the queue is held; `log` takes each turn's timings;
    `counts` counts the effects that began."""

    store: StoreHttp
    prices: PriceTable
    ready: asyncio.Event
    log: Callable[[str, Mapping[str, object]], None]
    counts: dict[Effect, int]


class Turn:
    """One run's execution by `script`. `run` it as a task; `cancel` ends it at once as cancelled (MSG-037)."""

    def __init__(self, parts: Parts, run: Run, script: Script, setting: TurnSetting) -> None:
        self._parts = parts
        self._run = run
        self._script = script
        self._setting = setting
        self._record = TurnRecord(parts, run)
        self._ledger = Ledger()
        self._clock = StageClock(parts.ctx.now)
        self._queued = 0
        self._meters: list[IterationMeter] = []
        self._claimed = False
        self._store: StoreCalls | None = None
        self._prompt: Prompt | None = None
        agents = [agent for agent in parts.settings.agents if agent.agent_id == run.authority.agent_id]
        # PA-023: the list of the frozen profile
        self._worker_tools = agents[0].worker_tools if agents else ()

    async def run(self) -> None:
        """Execute the run to its end. Cancelled, it leaves everything as it stands: that is a crash (MSG-010)."""
        try:
            await self._pause("queue")
            await self._setting.ready.wait()
            claimed_ms = self._record.claim()
            self._claimed = True
            self._queued = queued_micros(self._run.created_ms, claimed_ms)
            self._clock = StageClock(self._parts.ctx.now)
            await self._conclude(await self._execute())
        except RunGone:
            pass  # removed, or cancelled, while it ran
        if self._store is not None:
            await self._store.close()

    def cancel(self) -> None:
        """End the run as cancelled now; then cancel the task, which has nothing left to write."""
        if not self._claimed:
            self._queued = queued_micros(self._run.created_ms, self._parts.now_ms())
            self._clock = StageClock(self._parts.ctx.now)
        with self._clock.stage(Stage.HISTORY):
            self._record.keep_answer()
        self._clock.close()
        self._end(CANCELLED, flushed=True)

    async def _execute(self) -> Ending:
        try:
            return await self._live()
        except _Denied as denied:
            # SSE-036: ends as an error with this code. What the provider did until then is known (US-021).
            return failed(denied.code, certain=True)
        except (_ProviderFailed, McpFault):
            # MSG-042, MCP-023
            return failed(CHAT_EXECUTION_FAILED, certain=False)
        except RunGone:
            raise
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run of the lab as one
            self._parts.ctx.fail(defect)
            return failed(CHAT_EXECUTION_FAILED, certain=False)

    async def _live(self) -> Ending:
        await self._prepare()
        await self._pause("other")
        for index in range(self._script.max_iterations):
            iteration = self._script.iteration(index)
            meter = IterationMeter(self._clock)
            self._meters.append(meter)
            try:
                await self._ask(iteration, meter, index)
                meter.answered()
                if not iteration.calls:
                    return COMPLETED
                if not await self._use_tools(iteration, meter):
                    return TOOL_ERROR
            finally:
                meter.close()
        return LIMITED

    async def _prepare(self) -> None:
        clock = self._clock
        with clock.stage(Stage.ADMISSION):
            await self._pause("admission")
            # PA-021: authority is looked at again once the queue let the run through
            self._check_authority()
            conversation = self._parts.authority.find_conversation(self._run.conversation_id)
            if conversation is None:
                raise RunGone
            store = self._store = StoreCalls(self._parts, self._run, conversation, self._setting.store)
            if conversation.server_id is not None and isinstance(store.grant(), Refusal):
                raise _Denied(Code.MCP_CONTEXT_DENIED)
        with clock.stage(Stage.LOCK):
            await self._pause("lock")
        with clock.stage(Stage.AGENT):
            await self._pause("agent")
        with clock.stage(Stage.PROMPT):
            await self._pause("prompt")
            self._prompt = prompt_of(self._parts, self._run)
        with clock.stage(Stage.TOOL_SETUP):
            await self._pause("tool_setup")
            self._check_authority()
            if conversation.server_id is not None:
                self._count(Effect.DISCOVERY)
            await store.discover()
            tell_turn(self._parts, self._run, "discovery", facts={"tools": list(store.tools)})
        with clock.stage(Stage.WORKER):
            await self._pause("worker")
        with clock.stage(Stage.CLASSIFICATION):
            await self._pause("classification")
            if self._script.classification is not None:
                self._check_effect()
                await self._attempt(self._script.classification, answered=True)

    async def _ask(self, iteration: ModelIteration, meter: IterationMeter, index: int) -> None:
        self._check_effect()
        # PA-022: nothing but the store's tools and the hands of the frozen profile is offered
        tools = [*(self._store.tools if self._store else ()), *self._worker_tools]
        facts = {"iteration": index + 1, "model": iteration.model, "tools": tools}
        told = self._prompt.facts() if self._prompt else {}
        tell_turn(self._parts, self._run, "model", facts={**facts, **told})
        with self._clock.stage(Stage.MODEL):
            await self._pause("model")
            for attempt in iteration.attempts:
                # TM-036: retries and fallbacks are model time
                await self._attempt(attempt, answered=False)
                self._check_effect()
        self._count(Effect.MODEL)
        await self._stream(iteration, meter)
        if iteration.fails is not None:
            raise _ProviderFailed
        meter.iteration.usage = iteration.usage
        self._bill(iteration.model, iteration, streamed=not iteration.blocking)

    async def _stream(self, iteration: ModelIteration, meter: IterationMeter) -> None:
        with self._clock.stage(Stage.MODEL):
            await self._pause("first_token")
        if iteration.blocking:
            # TM-031: a response that comes as a whole has no first token
            silent = sum(delta.seconds for delta in iteration.deltas if isinstance(delta, Pause))
            with self._clock.stage(Stage.MODEL):
                await _sleep(silent)
            await self._deliver("".join(d.text for d in iteration.deltas if isinstance(d, Text)), iteration.deliver)
            return
        for delta in iteration.deltas:
            if isinstance(delta, Pause):
                with self._clock.stage(Stage.MODEL):
                    await _sleep(delta.seconds)
                continue
            if delta.text:
                meter.delta()
            if isinstance(delta, Text):
                await self._deliver(delta.text, iteration.deliver)

    async def _deliver(self, text: str, seconds: float) -> None:
        # TM-033: delivery is no model time; a delta without a character is no event
        if text:
            self._record.text(text)
            await _sleep(seconds)

    async def _attempt(self, attempt: Attempt, *, answered: bool) -> None:
        self._count(Effect.MODEL)
        await _sleep(attempt.seconds)
        # An attempt that failed is on the bill only if the provider counted it (US-008).
        if answered or attempt.usage is not None:
            self._bill(attempt.model, attempt, streamed=False)

    def _bill(self, model: str, response: Attempt | ModelIteration, *, streamed: bool) -> None:
        self._ledger.queue(token_event(model, response.usage, self._setting.prices, streamed=streamed))

    # Tools

    async def _use_tools(self, iteration: ModelIteration, meter: IterationMeter) -> bool:
        """Make the calls; False when the model stops on one that failed (MCP-023)."""
        for group in iteration.calls:
            with self._clock.stage(Stage.TOOL):
                for call in group:
                    with self._clock.stage(Stage.WORKER):
                        # TM-010: the wait for a worker pauses the tool's time
                        await _sleep(call.worker)
                # PA-024, MB-037: authority at each effect, also after the wait for a worker
                self._check_authority()
                outcomes = await self._call_group(group, meter)
            pairs = zip(group, outcomes, strict=True)
            if any(not outcome.ok and call.on_failure is OnFailure.STOP for call, outcome in pairs):
                return False
        return True

    async def _call_group(self, group: tuple[ToolCall, ...], meter: IterationMeter) -> list[CallOutcome]:
        """Call in parallel; results are told in the order of the calls, so that readers can pair them (SSE-041)."""
        tasks: list[tuple[ToolCall, str, asyncio.Task[tuple[CallOutcome, int]]]] = []
        outcomes: list[CallOutcome] = []
        try:
            for call in group:
                # SSE-009, SSE-042: one id for stream, history, errors and the store's header
                call_id = f"call_{self._parts.ids.bytes(CALL_ID_BYTES).hex()}"
                self._record.tool_call(call.name, call_id)
                tasks.append((call, call_id, asyncio.create_task(self._call(call, call_id))))
            for call, call_id, task in tasks:
                outcome, micros = await task
                outcomes.append(outcome)
                meter.iteration.tools.append(micros)
                self._record.tool_result(call.name, call_id, outcome.ok)
                facts = {"tool": call.name, "ok": outcome.ok, "why": outcome.why}
                tell_turn(self._parts, self._run, "tool-ended", call_id=call_id, facts=facts)
        finally:
            for _, _, task in tasks:
                task.cancel()
        return outcomes

    async def _call(self, call: ToolCall, call_id: str) -> tuple[CallOutcome, int]:
        start = self._clock.micros()
        outcome = await self._outcome(call, call_id)
        return outcome, self._clock.micros() - start

    async def _outcome(self, call: ToolCall, call_id: str) -> CallOutcome:
        if call.name in self._worker_tools:
            return CallOutcome(True)
        if self._store is None or call.name not in self._store.tools:
            # MSG-046: a tool that the server does not list fails without a call
            return CallOutcome(False, "unlisted")
        # CX-026, CX-029: the newest grant, and no call without one
        grant = self._store.grant()
        if isinstance(grant, Refusal):
            return CallOutcome(False, CONTEXT_DENIED)
        facts = {"tool": call.name, "grant": told_grant(grant)}
        self._count(Effect.TOOL)
        tell_turn(self._parts, self._run, "tool", call_id=call_id, facts=facts)
        return await self._store.call(call.name, call.input, call_id, self._check_authority)

    # The end

    async def _conclude(self, ending: Ending) -> None:
        with self._clock.stage(Stage.HISTORY):
            await self._pause("history")
            self._record.keep_answer()
        # TM-011, TM-012: here the total ends
        self._clock.close()
        flush = self._script.flush
        for charge in self._script.billing:
            self._ledger.queue(BillingEvent(charge.kind, charge.pico))
        if ending.certain:
            # US-024: a normal end waits for the ledger
            await _sleep(flush.after)
        await self._pause("final")
        self._end(ending, flushed=not flush.fails)

    def _end(self, ending: Ending, *, flushed: bool) -> None:
        for meter in self._meters:
            meter.settle()
        timings = self._clock.snapshot(self._queued, [meter.iteration for meter in self._meters])
        with self._parts.state.transaction():
            if flushed:
                self._ledger.write(self._parts, self._run)
            events = recorded(self._parts.state, self._run.run_id)
            usage = usage_of(events, certain=ending.certain, flushed=flushed)
            ended = self._record.end(ending, timings, usage)
        if ended is not None:
            self._setting.log(self._run.turn_id, timings)

    # Checks

    def _check_authority(self) -> None:
        refusal = self._parts.authority.still_allowed(self._run.authority)
        if refusal is not None:
            raise RunGone if refusal.code is Code.CHAT_UNAVAILABLE else _Denied(refusal.code)

    def _check_effect(self) -> None:
        """Before each model request: authority, then the budget (MB-037, MSG-044)."""
        self._check_authority()
        if budget_refusal(self._parts.state) is not None:
            raise _Denied(Code.QUOTA_EXCEEDED)

    def _count(self, effect: Effect) -> None:
        self._setting.counts[effect] += 1

    async def _pause(self, name: str) -> None:
        await _sleep(self._script.delay(name))


async def _sleep(seconds: float) -> None:
    """Wait, or at least let others have their turn."""
    await asyncio.sleep(seconds)
