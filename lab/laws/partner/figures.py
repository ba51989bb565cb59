"""The laws of a run's figures: its durations add up, its costs add up, and neither is told before it is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import Run, Snapshot
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import COST, PARTNER_API, RELATIVE_TOLERANCE, SMALLEST_TOLERANCE_MS

SETUP = ("admissionMs", "agentMs", "promptMs", "toolSetupMs", "workerMs", "classificationMs")
"""What setupMs is the subtotal of (TM-025)."""

ADDENDS = ("queuedMs", "setupMs", "lockMs", "modelMs", "toolMs", "historyMs", "otherMs")
"""What adds up to totalMs (TM-027, TM-028)."""

COUNTERS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")

TOKENS = "llm_tokens"
"""The kind of cost that models share (US-014, US-036)."""

MARGIN_MS = 50.0
"""Milliseconds by which two monotonic clocks may tell a duration otherwise."""

UNCERTAIN = frozenset({"interrupted", "cancelled"})
"""Statuses behind which nobody knows what was spent (US-020)."""

Object = Mapping[str, Any]


def _snapshots(view: PartnerView) -> Iterator[tuple[Run, Snapshot]]:
    return ((run, one) for run in view.runs.values() for one in run.snapshots)


def _timings(view: PartnerView) -> Iterator[tuple[Run, Snapshot, Object]]:
    for run, one in _snapshots(view):
        timings = one.facts.get("timings")
        if isinstance(timings, Mapping):
            yield run, one, timings


def _number(value: object) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _close(seen: Decimal, due: Decimal) -> bool:
    return abs(seen - due) <= max(SMALLEST_TOLERANCE_MS, abs(due) * RELATIVE_TOLERANCE)


def _timings_reconcile(view: PartnerView, bench: Bench) -> None:
    for _, one, timings in _timings(view):
        if timings.get("complete") is True:
            odd = _odd_timings(timings)
            if odd is None:
                bench.held()
            else:
                bench.odd(odd[0], odd[1], one.n)


def _odd_timings(timings: Object) -> tuple[str, str] | None:
    numbers: dict[str, Decimal] = {}
    for name in (*SETUP, *ADDENDS, "totalMs"):
        value = _number(timings.get(name))
        if value is None or value < 0:
            return f"{name} {timings.get(name)!r}", "a number of at least 0"
        numbers[name] = value
    setup = sum((numbers[name] for name in SETUP), Decimal(0))
    if not _close(numbers["setupMs"], setup):
        return f"setupMs {numbers['setupMs']}", f"{setup}, the sum of its parts"
    total = sum((numbers[name] for name in ADDENDS), Decimal(0))
    if not _close(numbers["totalMs"], total):
        return f"totalMs {numbers['totalMs']}", f"{total}, the sum of its stages"
    return _odd_iterations(timings.get("iterations"), numbers)


def _odd_iterations(iterations: object, numbers: Mapping[str, Decimal]) -> tuple[str, str] | None:
    if not isinstance(iterations, list | tuple):
        return "no list of iterations", "the model's iterations in order"
    sums = {"modelMs": Decimal(0), "toolMs": Decimal(0)}
    for number, one in enumerate(iterations):
        if not isinstance(one, Mapping):
            return f"iteration {number} that is no object", "the model's iterations in order"
        first, wall = _number(one.get("firstTokenMs")), _number(one.get("wallMs"))
        if first is not None and wall is not None and not 0 <= first <= wall:
            # TM-034
            return f"firstTokenMs {first} of iteration {number}", f"within its wallMs {wall}"
        for name in sums:
            sums[name] += _number(one.get(name)) or 0
    for name, most in sums.items():
        if most > numbers[name] and not _close(numbers[name], most):
            # TM-049
            return f"{name} {numbers[name]}", f"at least {most}, what its iterations took"
    return None


def _timings_complete(view: PartnerView, bench: Bench) -> None:
    for run, one in _snapshots(view):
        if "timings" not in one.facts or not one.status or one.source == "message":
            continue
        timings = one.facts["timings"]
        if timings is not None and not isinstance(timings, Mapping):
            bench.odd("timings that are no object", "a snapshot", one.n)
            continue
        if timings is None:
            # TM-005: only a run from before the measurements has none
            if run.accepted:
                bench.odd("timings null", "a snapshot", one.n)
            else:
                bench.unsure()
            continue
        complete = timings.get("complete") is True
        due = one.terminal and one.status != "interrupted"
        word = "true" if due else "false"
        bench.case(complete == due, f"complete {'true' if complete else 'false'} of a {one.status} run", word, one.n)


def _timings_plausible(view: PartnerView, bench: Bench) -> None:
    if view.clock_moved():
        # TM-008: queuedMs is wall time
        return
    for run, one, timings in _timings(view):
        total = _number(timings.get("totalMs"))
        if timings.get("complete") is not True or total is None or not run.accepted:
            continue
        first = min(call.start for call in run.accepted)
        began = [call.start for call in view.of("message") if _same_message(run, call.event.idempotency_key)]
        most = (one.t - min([first, *began])) * 1000 + MARGIN_MS
        seen = f"totalMs {total:.0f} in a run that was over {most - MARGIN_MS:.0f} ms after its message was sent"
        bench.case(float(total) <= most, seen, "no more than passed", run.accepted[0].n, one.n)


def _same_message(run: Run, key: str | None) -> bool:
    return key is not None and any(call.event.idempotency_key == key for call in run.accepted)


# Usage


def _usages(view: PartnerView) -> Iterator[tuple[Snapshot, Object]]:
    for _, one in _snapshots(view):
        usage = one.facts.get("usage")
        if isinstance(usage, Mapping):
            yield one, usage


def _cost(value: object) -> Decimal | None:
    return Decimal(value) if isinstance(value, str) and COST.fullmatch(value) else None


def _usage_reconcile(view: PartnerView, bench: Bench) -> None:
    for one, usage in _usages(view):
        odd = _odd_usage(usage)
        if odd is None:
            bench.held()
        else:
            bench.odd(odd[0], odd[1], one.n)


def _odd_usage(usage: Object) -> tuple[str, str] | None:
    total = _cost(usage.get("costUsd"))
    if total is None:
        return f"costUsd {usage.get('costUsd')!r}", "a decimal with twelve digits behind its point"
    if usage.get("priceSide") != "cost":
        return f"priceSide {usage.get('priceSide')!r}", "cost"
    for name in COUNTERS:
        value = usage.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return f"{name} {value!r}", "a count of at least 0"
    kinds = usage.get("kinds")
    if not isinstance(kinds, list | tuple):
        return "no list of kinds", "the cost by kinds"
    by_kind = _sum(kinds)
    if by_kind != total:
        return f"kinds of {by_kind} in all", f"{total}, exactly"
    models = usage.get("models")
    return _odd_models(usage, models, kinds) if isinstance(models, list | tuple) else None


def _sum(parts: Sequence[Object]) -> Decimal | None:
    costs = [_cost(part.get("costUsd")) if isinstance(part, Mapping) else None for part in parts]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal("0.000000000000")) if len(known) == len(costs) else None


def _odd_models(usage: Object, models: Sequence[Object], kinds: Sequence[Object]) -> tuple[str, str] | None:
    if len(models) < 2:
        # US-011, US-034
        return f"models with {len(models)} entries", "models only where there are several"
    for name in COUNTERS:
        counted = sum(_number(model.get(name)) or 0 for model in models if isinstance(model, Mapping))
        if counted != usage[name]:
            return f"{name} {usage[name]}", f"{counted}, the sum of its models"
    by_model = _sum(models)
    tokens = _sum([kind for kind in kinds if isinstance(kind, Mapping) and kind.get("kind") == TOKENS])
    if by_model is None or (tokens is not None and tokens != 0 and by_model != tokens):
        return f"models of {by_model} in all", f"{tokens}, what tokens cost"
    return None


def _usage_when_certain(view: PartnerView, bench: Bench) -> None:
    for _, one in _snapshots(view):
        if "usage" not in one.facts or not one.status:
            continue
        none = one.facts["usage"] is None
        if not one.terminal:
            bench.case(none, f"usage of a run that is {one.status}", "null until it is terminal", one.n)
        elif one.status in UNCERTAIN or one.facts.get("reason") == "CHAT_EXECUTION_FAILED":
            bench.case(none, f"usage of a run that is {one.status}", "null: what was spent is not certain", one.n)


LAWS = (
    promise(
        "timings-reconcile",
        "The stages of complete timings add up to their totals, and each iteration lies within them",
        PARTNER_API,
        ("TM-025", "TM-027", "TM-034", "TM-046", "TM-049"),
        _timings_reconcile,
    ),
    promise(
        "timings-complete",
        "Timings are complete once a run is over and only then, save for an interrupted run, where they never are",
        PARTNER_API,
        ("TM-001", "TM-002", "TM-003", "TM-004", "TM-005", "TM-048", "TM-053"),
        _timings_complete,
    ),
    promise(
        "timings-plausible",
        "A run took no longer than passed from sending its message to learning of its end",
        PARTNER_API,
        ("TM-001", "TM-011"),
        _timings_plausible,
    ),
    promise(
        "usage-reconcile",
        "Costs are decimals of twelve digits, and what the kinds and the models cost adds up exactly",
        PARTNER_API,
        ("US-003", "US-006", "US-012", "US-014", "US-032", "US-034", "US-035"),
        _usage_reconcile,
    ),
    promise(
        "usage-when-certain",
        "Usage is null until a run is over, and for good where nobody can be sure what it spent",
        PARTNER_API,
        ("US-015", "US-020"),
        _usage_when_certain,
    ),
)
