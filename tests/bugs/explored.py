"""What exploring finds of the catalogue: `python -m tests.bugs.explored SLIP…` searches drawn plans for each slip.

`--write` puts what was found, made small, into `explored.yaml`; without a slip it searches for all that need faults.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import yaml

from lab.commands.loading import load
from lab.explore import explored as explored_module
from lab.explore.drawing import Targets
from lab.explore.plan import Plan, Planned
from lab.explore.shrinking import shrink
from lab.explore.trial import Trial, plan_of, run_quietly, targets_of, try_plan
from lab.faults.plan import FAULT_KINDS, Acts, Fault, FrameAnchor
from lab.run.verdict import Outcome
from lab.scenario.model import FaultStep, Scenario, WaitStep
from lab.scenario.step import Step
from tests.bugs.plants import Patch, all_plants, planted
from tests.bugs.provocations import PROVOCATIONS, Provocation
from tests.bugs.table import CATALOGUE

SCENARIOS: Final = Path(__file__).parents[2] / "scenarios"
PLANTED_IN: Final = Path(__file__).with_name("scenarios")
PINS: Final = Path(__file__).with_name("explored.yaml")

SEED: Final = 1
PLANS: Final = 1000
"""Plans of a scenario that are drawn for a slip at most."""

BLOCK: Final = 10
"""Plans that are tried of each scenario before further ones of any."""

MOST_SHRINKING: Final = 120

HORIZON: Final = 300.0
"""Simulated seconds that a trial with a slip may take on top of its scenario's deadline; only laws are asked then."""

TRIED: Final = ("fix-job", "chat-answer", "two-agents", "chat-idle-long-poll", "chat-resume")
"""The scenarios that slips are sought in, the cheapest first."""

SOUGHT_IN: Final[Mapping[str, str]] = {
    "agent-chunks-cross-a-reset": "cut-in-chunks",
    "agent-chunks-restart-after-resume": "cut-in-chunks",
    "agent-counts-refused-frame": "held-request",
    "agent-gap-accepted": "held-request",
    "agent-gap-waited-for": "held-request",
    "agent-heartbeat-outside-window": "acks-nearly-lost",
    "agent-result-lost-with-session": "result-lost",
    "agent-resume-forgets-received-pairs": "assigned-again",
    "agent-window-slot-leaks": "acks-nearly-lost",
    "gateway-skew-on-data-frames": "result-lost",
}
"""Slips for which those lack something that faults do not bring, such as bodies of many chunks or several gateway
frames at once. Each is sought in a scenario of `scenarios/` beside this file, without its own faults of links."""

STIRRED_BY: Final[Mapping[str, frozenset[str]]] = {
    "cut": frozenset({"cut", "reset"}),
    "duplicate": frozenset({"duplicate", "drop", "cut", "reset"}),
    "late resume": frozenset({"cut"}),
    "lost ack": frozenset({"drop", "hold", "cut"}),
    "lost frame": frozenset({"drop", "hold"}),
    "reset session": frozenset({"cut"}),
}
"""Situations of the catalogue that drawn faults make, and the kinds that do; plans without these are passed over."""

SESSION_LOST: Final = frozenset({"late resume", "reset session"})
"""Situations that only a cut makes which a gateway's session does not outlive."""

GATEWAY_KEEPS: Final = 90.0
"""Seconds that a gateway keeps a session (RS-009)."""


@dataclass(frozen=True)
class Pin:
    """A slip that exploring found: the plan's number, and what is left of it when it is small."""

    slip: str
    scenario: str
    seed: int
    number: int
    plan: Plan


def sought() -> list[str]:
    """The slips that need a situation which drawn faults make."""
    entries = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    return [one["id"] for one in entries if one["needs"] in STIRRED_BY and one["id"] in all_plants()]


@cache
def situations() -> Mapping[str, str]:
    """What each slip of the catalogue needs."""
    return {one["id"]: one["needs"] for one in yaml.safe_load(CATALOGUE.read_text("utf-8"))}


@cache
def explored_scenario(name: str) -> tuple[Scenario, Targets]:
    """A scenario of the lab, and what a run without any fault shows that can be struck in it."""
    scenario = as_sought(name)
    with planted(*_provocations(scenario)):
        clean = run_quietly(scenario, SEED)
    assert clean.verdict.outcome is Outcome.PASS, f"{name} does not pass by itself"
    return scenario, targets_of(scenario, clean.entries)


def as_sought(name: str) -> Scenario:
    """A scenario that slips are sought in, before any plan."""
    if name in TRIED:
        return load(SCENARIOS / f"{name}.yaml")
    return _unbroken(load(PLANTED_IN / f"{name}.yaml"))


def _unbroken(scenario: Scenario) -> Scenario:
    """A scenario without its own faults of links, and without the waits for what they bring about."""
    return replace(scenario, steps=tuple(step for step in scenario.steps if not _is_of_a_link_fault(step)))


def _is_of_a_link_fault(step: Step) -> bool:
    if isinstance(step, WaitStep):
        return step.condition in ("disconnected", "resumed")
    return isinstance(step, FaultStep) and FAULT_KINDS[step.fault.kind].acts is Acts.LINK


def _provocations(scenario: Scenario) -> list[Provocation]:
    return [PROVOCATIONS[tag] for tag in scenario.tags if tag in PROVOCATIONS]


def tried(slip: str | None, scenario: str, plan: Plan, seed: int = SEED) -> Trial:
    """A trial of a plan with a slip, or with none."""
    # Before the slip is there: what can be struck is told by a run without it.
    base, _ = explored_scenario(scenario)
    slips = [_with_a_near_horizon, all_plants()[slip].put] if slip is not None else []
    with planted(*_provocations(base), *slips):
        return try_plan(base, plan, seed)


def _with_a_near_horizon(patch: Patch) -> None:
    """Some slips never come to an end: they connect anew and are refused, four times a second."""
    patch.set(explored_module, "HORIZON_SECONDS", HORIZON)


def breaks(slip: str, scenario: str, plan: Plan) -> bool:
    """Whether the slip, under the plan, breaks the law that is registered for it."""
    return all_plants()[slip].law in tried(slip, scenario, plan).broken


def scenarios_for(slip: str) -> tuple[str, ...]:
    """The scenarios that a slip is sought in."""
    return (SOUGHT_IN[slip],) if slip in SOUGHT_IN else TRIED


def find(slip: str, first: Pin | None = None, plans: int = PLANS) -> Pin | None:
    """A plan under which a slip breaks its law and nothing breaks without it, made small; None if none does.

    `first` says where it was found before: that plan is looked at first. Then come plans with few faults.
    """
    before = [] if first is None else [(first.scenario, first.number)]
    shown = cache(partial(breaks, slip, plan=()))
    for scenario, number in chain(before, _candidates(slip, plans)):
        if shown(scenario):
            # No fault is needed there.
            continue
        plan = plan_of(explored_scenario(scenario)[1], SEED, number)
        if breaks(slip, scenario, plan) and not tried(None, scenario, plan).broken:
            small = shrink(plan, partial(breaks, slip, scenario), MOST_SHRINKING)
            if not tried(None, scenario, small).broken:
                return Pin(slip, scenario, SEED, number, small)
    return None


def _candidates(slip: str, plans: int) -> Iterator[tuple[str, int]]:
    """Scenarios and the numbers of their plans that make a situation: some of each scenario, then further ones."""
    ordered = {scenario: _smallest_first(scenario, situations()[slip], plans) for scenario in scenarios_for(slip)}
    for start in range(0, plans, BLOCK):
        for scenario, numbers in ordered.items():
            yield from ((scenario, number) for number in numbers[start : start + BLOCK])


def _smallest_first(scenario: str, situation: str, plans: int) -> list[int]:
    drawn = {number: plan_of(explored_scenario(scenario)[1], SEED, number) for number in range(plans)}
    stirring = {number: plan for number, plan in drawn.items() if _stirs(plan, situation)}
    return sorted(stirring, key=lambda number: len(stirring[number]))


def _stirs(plan: Plan, situation: str) -> bool:
    faults = [planned.fault for planned in plan if planned.fault.kind in STIRRED_BY[situation]]
    return any(situation not in SESSION_LOST or (fault.seconds or 0.0) > GATEWAY_KEEPS for fault in faults)


# The table


@cache
def pins() -> Mapping[str, Pin]:
    """What is pinned, by slip."""
    entries = yaml.safe_load(PINS.read_text("utf-8"))
    return {one["slip"]: _pin(one) for one in entries}


def _pin(entry: Mapping[str, Any]) -> Pin:
    plan = tuple(_planned(**fault) for fault in entry["faults"])
    return Pin(entry["slip"], entry["scenario"], entry["seed"], entry["plan"], plan)


def _planned(before: int = 0, anchor: Mapping[str, Any] | None = None, **members: Any) -> Planned:
    return Planned(before, Fault(anchor=FrameAnchor(**anchor) if anchor else None, **members))


_HEAD: Final = """\
# Written by `python -m tests.bugs.explored --write`: slips, and the small plan under which each breaks its law.
"""


def write(found: Iterable[Pin]) -> None:
    """Write the table anew."""
    entries = [
        {
            "slip": pin.slip,
            "scenario": pin.scenario,
            "seed": pin.seed,
            "plan": pin.number,
            "faults": [_body(planned) for planned in pin.plan],
        }
        for pin in found
    ]
    PINS.write_text(_HEAD + yaml.safe_dump(entries, sort_keys=False, width=118), "utf-8")


def _body(planned: Planned) -> dict[str, Any]:
    """A fault without the members that say nothing."""
    fault = planned.fault
    body: dict[str, Any] = {"before": planned.before} if planned.before else {}
    body |= _told(fault)
    if fault.anchor is not None:
        body["anchor"] = _told(fault.anchor)
    return body


def _told(part: Fault | FrameAnchor) -> dict[str, Any]:
    return {one.name: value for one in fields(part) if (value := getattr(part, one.name)) != one.default}


def main(arguments: list[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bugs.explored", description=__doc__)
    parser.add_argument("slips", nargs="*", metavar="SLIP")
    parser.add_argument("--plans", type=int, default=PLANS, help=f"plans of a scenario at most, {PLANS} by default")
    parser.add_argument("--write", action="store_true", help=f"put what is found into {PINS.name}")
    chosen = parser.parse_args(arguments)
    known = dict(pins()) if PINS.exists() else {}
    missed = 0
    for slip in chosen.slips or sought():
        pin = find(slip, known.get(slip), chosen.plans)
        missed += pin is None
        if pin is None:
            print(f"{slip}: not found", flush=True)
            continue
        print(f"{slip}: {pin.scenario} plan {pin.number}, {len(pin.plan)} faults", flush=True)
        known[slip] = pin
        if chosen.write:
            write(known[one] for one in sought() if one in known)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
