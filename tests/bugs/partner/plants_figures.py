"""Slips of a partner API in what it measures of a turn, and in what it says that one cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lab.partner.model import ledger, runs, turn, turn_record, usage
from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run
from lab.partner.model.timings import Iteration, Stage, StageClock
from lab.partner.model.usage import BillingEvent
from lab.partner.model.words import RunStatus
from tests.bugs.partner import patching
from tests.bugs.partner.patching import Data
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Timings


def snapshots(patch: Patch, change: Any) -> None:
    """Let `change` alter the final snapshot of a turn."""

    def altered(snapshot: Data) -> Data:
        return {**snapshot, **change(snapshot)}

    patching.changed(patch, StageClock, "snapshot", altered)


@plant("api-queue-outside-total", scenario="timed-stages", law="timings-reconcile")
def queue_outside_total(patch: Patch) -> None:
    """The total begins with the claim."""
    snapshots(patch, lambda told: {"totalMs": told["totalMs"] - told["queuedMs"]})


@plant("api-setup-counted-twice", scenario="timed-stages", law="timings-reconcile")
def setup_counted_twice(patch: Patch) -> None:
    """All that is there adds up to the total."""
    snapshots(patch, lambda told: {"totalMs": told["totalMs"] + told["setupMs"]})


@plant("api-worker-wait-in-tool-too", scenario="timed-stages", law="timings-reconcile")
def worker_wait_in_tool_too(patch: Patch) -> None:
    """A tool takes as long as its worker is waited for."""
    snapshots(patch, lambda told: {"toolMs": told["toolMs"] + told["workerMs"]})


@plant("api-pending-is-complete", scenario="polled-at-the-end", law="timings-complete")
def pending_is_complete(patch: Patch) -> None:
    """What was measured until now is complete."""
    patching.changed(patch, runs, "pending_snapshot", lambda told: {**told, "complete": True})


@plant("api-limited-timings-incomplete", scenario="endless-tools", law="timings-complete")
def limited_timings_incomplete(patch: Patch) -> None:
    """A limited turn is none that came to its end."""

    def make(original: Function) -> Function:
        def finish(parts: Parts, run_id: str, ending: Any, told: Any, cost: Any) -> Run | None:
            if ending.status is RunStatus.LIMITED:
                patch.slipped()
                told = None
            ended: Run | None = original(parts, run_id, ending, told, cost)
            return ended

        return finish

    patch.wrap(turn_record, "finish_run", make)


@plant("api-discovery-is-tool-time", scenario="timed-stages", law="tool-time-is-of-tools")
def discovery_is_tool_time(patch: Patch) -> None:
    """Whatever has to do with the store is tool time."""

    def make(original: Function) -> Function:
        @contextmanager
        def stage(self: StageClock, name: Stage) -> Iterator[None]:
            if name is Stage.TOOL_SETUP:
                patch.slipped()
                name = Stage.TOOL
            with original(self, name):
                yield

        return stage

    patch.wrap(StageClock, "stage", make)


def iterations(patch: Patch, change: Any) -> None:
    """Let `change` alter what is told of an iteration; None leaves it as it is."""
    patching.changed(patch, Iteration, "to_json", change)


@plant("api-seconds-for-milliseconds", scenario="timed-stages", law="timings-reconcile")
def microseconds_for_milliseconds(patch: Patch) -> None:
    """The first token is told in microseconds."""

    def micros(told: Data) -> Data | None:
        return None if told["firstTokenMs"] is None else {**told, "firstTokenMs": told["firstTokenMs"] * 1000}

    iterations(patch, micros)


@plant("api-tool-timing-named", scenario="partner-chat", law="answers-fit-contract")
def tool_timing_named(patch: Patch) -> None:
    """Each duration says of which tool it is."""
    iterations(patch, lambda told: {**told, "tools": [{**one, "name": "catalog_get"} for one in told["tools"]]})


@plant("api-iteration-usage-zero", scenario="provider-fails", law=None, why="what the provider told of its own usage")
def iteration_usage_zero(patch: Patch) -> None:
    """No usage is a usage of nothing."""
    iterations(
        patch, lambda told: None if "usage" in told else {**told, "usage": {"inputTokens": 0, "outputTokens": 0}}
    )


@plant("api-timings-of-event-differ", scenario="partner-chat", law="stream-equals-run")
def timings_of_event_differ(patch: Patch) -> None:
    """The event is made before the history is written."""

    def early(kind: str, data: Data) -> tuple[str, Data] | None:
        if kind != "run_status":
            return None
        times = {**data["timings"], "totalMs": data["timings"]["totalMs"] - data["timings"]["modelMs"], "modelMs": 0}
        return kind, {**data, "timings": {**times, "iterations": []}}

    patching.events(patch, early)


@plant("api-timings-dropped", scenario="partner-chat", law="timings-complete")
def timings_dropped(patch: Patch) -> None:
    """Nobody asked for timings."""

    def drop(run: Run, data: Data) -> bool:
        data["timings"] = None
        return True

    patching.result(patch, drop)
    patching.events(patch, lambda kind, data: (kind, {**data, "timings": None}) if kind == "run_status" else None)


# Usage


def costs(patch: Patch, change: Any) -> None:
    """Let `change` alter a usage object that is stored; None leaves it as it is."""
    patching.changed(patch, turn, "usage_of", lambda told: None if told is None else change(told))


@plant("api-cost-as-number", scenario="partner-chat", law="usage-reconcile")
def cost_as_number(patch: Patch) -> None:
    """Money is a number."""
    costs(patch, lambda told: {**told, "costUsd": float(told["costUsd"])})


@plant("api-cost-six-digits", scenario="partner-chat", law="usage-reconcile")
def cost_six_digits(patch: Patch) -> None:
    """Nobody pays less than a millionth."""
    costs(patch, lambda told: {**told, "costUsd": told["costUsd"][:-6]})


@plant("api-kinds-without-runtime", scenario="two-models", law="usage-reconcile")
def kinds_without_runtime(patch: Patch) -> None:
    """The kinds are those of tokens."""
    costs(patch, lambda told: {**told, "kinds": [one for one in told["kinds"] if one["kind"] == usage.TOKEN_KIND]})


@plant("api-models-for-one", scenario="partner-chat", law="usage-reconcile")
def models_for_one(patch: Patch) -> None:
    """The models are always listed."""
    names = ("model", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "costUsd")
    costs(patch, lambda told: {**told, "models": [{name: told[name] for name in names}]})


@plant("api-price-of-sale", scenario="partner-chat", law="usage-reconcile")
def price_of_sale(patch: Patch) -> None:
    """The price is what the partner is charged."""
    costs(patch, lambda told: {**told, "priceSide": "charge"})


@plant("api-usage-while-running", scenario="polled-at-the-end", law="usage-when-certain")
def usage_while_running(patch: Patch) -> None:
    """What was used until now is told."""

    def so_far(run: Run, data: Data) -> bool:
        if run.over:
            return False
        counters = dict.fromkeys(("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"), 0)
        cost = {"costUsd": "0.000000000000", "priceSide": "cost", "kinds": []}
        data["usage"] = {"model": None, **counters, **cost}
        return True

    patching.result(patch, so_far)


@plant("api-usage-of-cancelled", scenario="cancelled", law="usage-when-certain")
def usage_of_cancelled(patch: Patch) -> None:
    """What was recorded is the bill."""

    def make(original: Function) -> Function:
        def usage_of(events: list[BillingEvent], *, certain: bool, flushed: bool) -> Any:
            if certain:
                return original(events, certain=True, flushed=flushed)
            patch.slipped()
            return original(
                [usage.token_event("synthetic-1", usage.TokenCounts(9, 9), usage.PriceTable(), streamed=True)],
                certain=True,
                flushed=True,
            )

        return usage_of

    patch.wrap(turn, "usage_of", make)


@plant(
    "api-limited-without-usage",
    scenario="endless-tools",
    law=None,
    why="whether each call was recorded and has a price",
)
def limited_without_usage(patch: Patch) -> None:
    """A limited turn has no bill."""

    def make(original: Function) -> Function:
        def finish(parts: Parts, run_id: str, ending: Any, told: Any, cost: Any) -> Run | None:
            if ending.status is RunStatus.LIMITED:
                patch.slipped()
                cost = None
            ended: Run | None = original(parts, run_id, ending, told, cost)
            return ended

        return finish

    patch.wrap(turn_record, "finish_run", make)


@plant("api-usage-of-event-differs", scenario="partner-chat", law="usage-covers-iterations")
def usage_of_event_differs(patch: Patch) -> None:
    """The event is made before the last call is on the bill."""

    def early(kind: str, data: Data) -> tuple[str, Data] | None:
        if kind != "run_status":
            return None
        return kind, {**data, "usage": {**data["usage"], "outputTokens": data["usage"]["outputTokens"] - 250}}

    patching.events(patch, early)


@plant("api-usage-left-out", scenario="provider-fails", law="answers-fit-contract")
def usage_left_out(patch: Patch) -> None:
    """What is null is left out."""

    def drop(run: Run, data: Data) -> bool:
        return data["usage"] is None and data.pop("usage") is None

    patching.result(patch, drop)


def billed(patch: Patch, change: Any) -> None:
    """Let `change` alter an event before it gets into the ledger; None leaves it as it is, False leaves it out."""

    def make(original: Function) -> Function:
        def add(parts: Parts, run_id: str, turn_id: str, event: BillingEvent) -> None:
            other = change(event)
            if other is not None:
                patch.slipped()
            if other is not False:
                original(parts, run_id, turn_id, other or event)

        return add

    patch.wrap(ledger, "add_billing", make)


@plant("api-hour-writes-left-out", scenario="two-models", law="usage-covers-iterations")
def hour_writes_left_out(patch: Patch) -> None:
    """Writes are five-minute writes."""

    def short(event: BillingEvent) -> BillingEvent | None:
        counts = event.counts
        if counts is None or not counts.cache_write_1h:
            return None
        return replace(event, counts=replace(counts, cache_write_1h=None))

    billed(patch, short)


@plant("api-first-model-only", scenario="two-models", law="usage-covers-iterations")
def first_model_only(patch: Patch) -> None:
    """A turn has one model, the first."""
    first: list[str | None] = []

    def other(event: BillingEvent) -> BillingEvent | bool | None:
        if event.counts is None:
            return None
        first.append(event.model)
        return False if event.model != first[0] else None

    billed(patch, other)


@plant("api-unpriced-as-zero", scenario="unpriced", law=None, why="which events of the turn have no price")
def unpriced_as_zero(patch: Patch) -> None:
    """What has no price costs nothing."""
    billed(patch, lambda event: replace(event, pico=0) if event.pico is None else None)
