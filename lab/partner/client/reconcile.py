"""Whether the sums in a run's figures come out: durations within a tolerance, costs to the digit. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from lab.partner.client.shapes import Run, Timings, Usage

SMALLEST_TOLERANCE_MS = Decimal("0.01")
RELATIVE_TOLERANCE = Decimal("0.000001")
"""A sum of durations may be off by the larger of the two (TM-045)."""

SETUP = ("admissionMs", "agentMs", "promptMs", "toolSetupMs", "workerMs", "classificationMs")
"""What setupMs is the sum of (TM-025)."""

TOTAL = ("queuedMs", "setupMs", "lockMs", "modelMs", "toolMs", "historyMs", "otherMs")
"""What totalMs is the sum of; the parts of setupMs do not count again (TM-027, TM-028)."""

LLM_KIND = "llm_tokens"


def faults_of(run: Run) -> tuple[str, ...] | None:
    """What does not come out, in words of the contract; None for a run that cannot be compared yet (TM-007, US-029)."""
    if not run.terminal:
        return None
    timings = () if run.timings is None else timing_faults(run.timings)
    if timings is None:
        return None
    return (*timings, *(() if run.usage is None else usage_faults(run.usage)))


def timing_faults(timings: Timings) -> tuple[str, ...] | None:
    """The sums that are off; None for a snapshot that is not complete, which tells nothing else (TM-047)."""
    stages = {name: value for name, value in timings.stages.items() if value is not None}
    if not timings.complete or len(stages) < len(timings.stages):
        return None
    faults = [
        name
        for name, parts in (("setupMs", SETUP), ("totalMs", TOTAL))
        if _off(stages[name], [stages[one] for one in parts])
    ]
    for iteration in timings.iterations:
        # TM-034; wallMs is part of no sum (TM-035).
        if iteration.first_token_ms is not None and iteration.first_token_ms > iteration.wall_ms:
            faults.append("firstTokenMs")
    return tuple(faults)


def _off(told: Decimal, parts: Iterable[Decimal]) -> bool:
    return abs(told - sum(parts, Decimal(0))) > max(SMALLEST_TOLERANCE_MS, told * RELATIVE_TOLERANCE)


def usage_faults(usage: Usage) -> tuple[str, ...]:
    """The sums that are off: kinds make up the whole cost, models that of tokens alone (US-014)."""
    faults = []
    if sum((cost for _, cost in usage.kinds), Decimal(0)) != usage.cost:
        faults.append("kinds")
    if usage.models is not None:
        tokens = sum((cost for kind, cost in usage.kinds if kind == LLM_KIND), Decimal(0))
        if sum((one.cost for one in usage.models), Decimal(0)) != tokens:
            faults.append("models")
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            if sum(getattr(one, name) for one in usage.models) != getattr(usage, name):
                faults.append(name)
    return tuple(faults)


def total_cost(runs: Iterable[Run]) -> tuple[Decimal, int]:
    """The cost of the runs that were accounted for, and how many were not: those are unknown, not free (US-022)."""
    usages = [run.usage for run in runs]
    known = [usage.cost for usage in usages if usage is not None]
    return sum(known, Decimal(0)), len(usages) - len(known)
