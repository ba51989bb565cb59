"""Drawing plans: the same for the same seed, of every kind that can strike, and only at moments that there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.draws import Draws
from lab.explore import drawing
from lab.explore.drawing import MOST_FAULTS, Targets, draw_plan
from lab.explore.moments import HANDSHAKE
from lab.explore.plan import Plan
from lab.faults.plan import FAULT_KINDS, Acts, Fault, FaultKind
from tests.explore.made import ACK, ASSIGN, EVENT, MOMENTS, READY, REGISTER, TARGETS, drawn, plans_of

ENOUGH = 400
"""Plans in which everything that can be drawn surely is."""


def faults(targets: Targets = TARGETS, plans: int = ENOUGH) -> list[Fault]:
    return [planned.fault for number in range(plans) for planned in drawn(number, targets)]


@given(st.integers(0, 2**32), st.text(max_size=20))
def test_one_seed_gives_one_plan(seed: int, purpose: str) -> None:
    assert draw_plan(TARGETS, Draws(seed, "a", purpose)) == draw_plan(TARGETS, Draws(seed, "a", purpose))


def test_plans_of_different_numbers_differ() -> None:
    assert len({repr(drawn(number)) for number in range(50)}) > 40


@given(plans_of(TARGETS))
def test_a_plan_has_one_to_four_faults_in_the_order_of_their_steps(plan: Plan) -> None:
    befores = [planned.before for planned in plan]
    assert 1 <= len(plan) <= MOST_FAULTS
    assert befores == sorted(befores)
    assert all(0 <= before < TARGETS.steps for before in befores)
    assert len({planned.fault.id for planned in plan}) == len(plan)


def test_every_number_of_faults_and_every_step_is_drawn() -> None:
    plans = [drawn(number) for number in range(ENOUGH)]
    assert {len(plan) for plan in plans} == {1, 2, 3, 4}
    assert {planned.before for plan in plans for planned in plan} == set(range(TARGETS.steps))


def test_every_kind_that_is_meant_to_be_drawn_is() -> None:
    assert {fault.kind for fault in faults()} == {name for name, kind in FAULT_KINDS.items() if kind.drawn}


@pytest.mark.parametrize("acts", [Acts.LINK, Acts.FRAME, Acts.SERVICE, Acts.PROCESS])
def test_a_new_kind_takes_part_by_what_its_table_says(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = FaultKind("flood", acts, "made up", lasting=True, durations=(2.5, 3.5))
    monkeypatch.setattr(drawing, "FAULT_KINDS", {**FAULT_KINDS, "flood": kind})
    floods = [fault for fault in faults() if fault.kind == "flood"]
    assert {fault.seconds for fault in floods} == {2.5, 3.5}
    struck = {
        Acts.LINK: {fault.link for fault in floods} == {"gateway", "agent2"},
        Acts.FRAME: all(fault.anchor is not None and fault.link is None for fault in floods),
        Acts.SERVICE: {fault.service for fault in floods} == {"agent2"},
        Acts.PROCESS: {fault.process for fault in floods} == {"local_agent"},
    }
    assert struck[acts]


def test_a_kind_that_is_not_to_be_drawn_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = FaultKind("flood", Acts.LINK, "made up", lasting=False, drawn=False)
    monkeypatch.setattr(drawing, "FAULT_KINDS", {**FAULT_KINDS, "flood": kind})
    assert "flood" not in {fault.kind for fault in faults()}


@pytest.mark.parametrize(
    ("targets", "acts"),
    [
        (replace(TARGETS, links=(), services=(), processes=()), {Acts.FRAME}),
        (replace(TARGETS, moments=(), services=(), processes=()), {Acts.LINK}),
        (replace(TARGETS, links=(), moments=(), processes=()), {Acts.SERVICE}),
        (replace(TARGETS, links=(), services=(), processes=(), moments=(REGISTER, READY, EVENT)), {Acts.FRAME}),
    ],
)
def test_only_what_is_there_is_struck(targets: Targets, acts: set[Acts]) -> None:
    assert {FAULT_KINDS[fault.kind].acts for fault in faults(targets)} == acts


def test_parameters_are_those_of_the_kind() -> None:
    """All of them are drawn, and nothing else."""
    seen = faults(plans=4 * ENOUGH)
    for name, kind in FAULT_KINDS.items():
        if not kind.drawn:
            continue
        of_kind = [fault for fault in seen if fault.kind == name]
        assert {fault.seconds for fault in of_kind} == set(kind.durations or (None,)), name
        assert {fault.delay for fault in of_kind} == set(kind.delays or (0.0,)), name
        assert {fault.times for fault in of_kind} == set(kind.times), name


def test_anchors_are_moments_that_there_are() -> None:
    """Each with a number up to how often its frame came."""
    counts = {(one.type, one.sender, one.of, one.content): one.count for one in MOMENTS}
    reached = set()
    for fault in faults(plans=4 * ENOUGH):
        if (anchor := fault.anchor) is not None:
            moment = (anchor.type, anchor.sender, anchor.of, anchor.content)
            assert 1 <= anchor.nth <= counts[moment]
            assert anchor.chunk is None
            reached.add((moment, anchor.nth))
    assert reached == {(moment, nth) for moment, count in counts.items() for nth in range(1, count + 1)}


def test_only_signed_frames_are_tampered_with() -> None:
    anchors = {fault.anchor.type for fault in faults() if fault.kind == "tamper" and fault.anchor is not None}
    assert anchors == {ASSIGN.type}


def test_without_a_signed_frame_nothing_is_tampered_with() -> None:
    targets = replace(TARGETS, moments=(EVENT, ACK))
    kinds = {fault.kind for fault in faults(targets)}
    assert "tamper" not in kinds
    assert "drop" in kinds


def test_no_frame_of_the_handshake_is_struck_itself() -> None:
    """A link may break behind one."""
    anchored = [fault for fault in faults() if fault.anchor is not None]
    on_frames = {fault.anchor.type for fault in anchored if FAULT_KINDS[fault.kind].acts is Acts.FRAME and fault.anchor}
    on_links = {fault.anchor.type for fault in anchored if FAULT_KINDS[fault.kind].acts is Acts.LINK and fault.anchor}
    assert on_frames.isdisjoint(HANDSHAKE)
    assert {REGISTER.type, READY.type} <= on_links


def test_a_fault_that_waits_for_a_frame_is_armed_before_the_first_step() -> None:
    """So that its frames are counted from the beginning."""
    waiting = [planned for number in range(ENOUGH) for planned in drawn(number) if planned.fault.anchor is not None]
    assert waiting
    assert {planned.before for planned in waiting} == {0}
