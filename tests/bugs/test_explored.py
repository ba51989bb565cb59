"""Slips that drawn fault plans find: those pinned break their law under a small plan, and a search finds them again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from lab.explore.plan import Planned
from lab.faults.plan import FAULT_KINDS, Fault, FrameAnchor
from tests.bugs import explored
from tests.bugs.explored import (
    PLANS,
    SEED,
    SOUGHT_IN,
    STIRRED_BY,
    Pin,
    breaks,
    find,
    pins,
    scenarios_for,
    situations,
    sought,
    tried,
)
from tests.bugs.plants import all_plants
from tests.explore.killed import LEFT_OPEN, collected

pytestmark = LEFT_OPEN

_collected = pytest.fixture(autouse=True)(collected)

QUICK: Final = (
    "agent-dedupe-by-bytes",
    "agent-duplicate-runs-again",
    "agent-job-stopped-by-cut",
    "agent-piggyback-ignored",
    "agent-queue-flushed-before-ready",
    "agent-resume-names-zero",
    "agent-resume-never-asked",
    "agent-resume-newest-first",
    "agent-resume-skips-hello",
    "agent-retransmits-with-backoff",
    "agent-retransmits-with-new-id",
    "gateway-repeats-same-signature",
)
"""Slips of every situation whose runs take a fraction of a second."""

MOST_FAULTS: Final = 3


def _check(slip: str) -> None:
    """The slip breaks its law under its plan, and without the slip nothing is broken."""
    pin = pins()[slip]
    law = all_plants()[slip].law
    with_slip = tried(slip, pin.scenario, pin.plan, pin.seed)
    assert law in with_slip.broken, f"{law} did not break but {with_slip.broken}: find another plan with {_again(slip)}"
    assert {planned.fault.id for planned in pin.plan} <= set(with_slip.fired)
    without = tried(None, pin.scenario, pin.plan, pin.seed)
    assert without.broken == (), "\n".join(without.said)
    assert law not in tried(slip, pin.scenario, (), pin.seed).broken, f"{slip} needs no fault there"


def _again(slip: str) -> str:
    return f"python -m tests.bugs.explored --write {slip}"


@pytest.mark.parametrize("slip", QUICK)
def test_a_slip_breaks_its_law_under_its_plan(slip: str) -> None:
    _check(slip)


@pytest.mark.slow
@pytest.mark.parametrize("slip", [slip for slip in pins() if slip not in QUICK])
def test_each_further_slip_breaks_its_law_under_its_plan(slip: str) -> None:
    _check(slip)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("slip", pins())
def test_a_search_finds_the_slip(slip: str) -> None:
    """Among the first plans that are drawn today, wherever it was found before."""
    found = find(slip, pins()[slip])
    assert found is not None, f"{slip} is not found any more among {PLANS} plans"
    assert len(found.plan) <= MOST_FAULTS
    assert breaks(slip, found.scenario, found.plan)


@pytest.mark.parametrize("slip", pins())
def test_a_pinned_plan_is_small_and_of_a_scenario_that_has_what_it_strikes(slip: str) -> None:
    pin = pins()[slip]
    assert 1 <= len(pin.plan) <= MOST_FAULTS
    assert (pin.seed, pin.number in range(PLANS), pin.scenario in scenarios_for(slip)) == (SEED, True, True)
    scenario = explored.as_sought(pin.scenario)
    participants = {*scenario.gateways, *scenario.local_agents}
    for planned in pin.plan:
        fault = planned.fault
        assert fault.kind in FAULT_KINDS
        assert 0 <= planned.before < len(scenario.steps)
        assert fault.link is None or fault.link in scenario.links
        assert fault.anchor is None or fault.anchor.sender in participants


def test_pinned_slips_are_planted_and_need_what_faults_make() -> None:
    assert set(QUICK) <= set(pins()) == set(sought()) >= set(SOUGHT_IN)
    assert list(pins()) == [slip for slip in sought() if slip in pins()]
    assert {situations()[slip] for slip in sought()} == set(STIRRED_BY)
    assert all(kind in FAULT_KINDS for kinds in STIRRED_BY.values() for kind in kinds)


def test_the_table_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = FrameAnchor("ack", "gateway", 3, of="job.event", chunk=1)
    plan = (
        Planned(0, Fault("a", "hold", anchor=anchor, seconds=6.0, times=2)),
        Planned(2, Fault("b", "delay", link="gateway", seconds=1.0, delay=0.4)),
        Planned(3, Fault("c", "drop", anchor=FrameAnchor("heartbeat", "one"), times=None)),
    )
    pin = Pin("agent-window-slot-leaks", "fix-job", SEED, 7, plan)
    monkeypatch.setattr(explored, "PINS", tmp_path / "explored.yaml")
    explored.write([pin])
    assert explored.pins.__wrapped__() == {pin.slip: pin}
