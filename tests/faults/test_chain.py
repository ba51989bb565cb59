"""Stages behind each other, changed while bytes are inside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.draws import Draws
from lab.faults.chain import Chain
from lab.faults.flow import CHUNK_BYTES, End, Item
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import Attributes, read_attributes
from lab.faults.toxics.stage import Given, Meter, Stage

PATTERN = bytes(range(251)) * 4000
KEEPING: dict[str, list[dict[str, Any]]] = {
    "latency": [{"latency": 100}, {"latency": 200, "jitter": 200}, {}],
    "bandwidth": [{"rate": 0}, {"rate": 50}, {"rate": 500, "shared": True}],
    "slow_close": [{"delay": 300}, {}],
    "slicer": [{"average_size": 3000, "size_variation": 500, "delay": 50_000}, {"average_size": 9000}],
    "packet_loss": [{"loss_rate": 0.2}, {"loss_rate": 1.0}, {"loss_rate": 0.5, "correlation": 0.5}],
    "black_hole": [{}],
    "noop": [{}],
}
"""Kinds that lose nothing, with attributes to change between."""


def attributes(kind: str, **given: Any) -> Attributes:
    base: Attributes = KINDS[kind].attributes
    return read_attributes(kind, base, given)


def stage(kind: str, **given: Any) -> Stage[Any]:
    make = KINDS[kind].stage
    assert make is not None
    return make(attributes(kind, **given), Given(Draws(1, "test", kind), Meter()))


class Driven:
    """A chain, its clock, and what came out when."""

    def __init__(self) -> None:
        self.chain = Chain()
        self.now = 0.0
        self.log: list[tuple[float, Item]] = []

    @property
    def read(self) -> bytes:
        return b"".join(item for _, item in self.log if isinstance(item, bytes))

    @property
    def ends(self) -> list[End]:
        return [item for _, item in self.log if isinstance(item, End)]

    def take(self, items: list[Item]) -> None:
        assert self.chain.due is None or self.chain.due > self.now
        self.log += [(self.now, item) for item in items]

    def run_to(self, time: float) -> None:
        while self.chain.due is not None and self.chain.due <= time:
            self.now = self.chain.due
            self.take(self.chain.wake(self.now))
        self.now = time


def test_delays_of_stages_add_up_and_order_is_kept() -> None:
    driven = Driven()
    for name, milliseconds in (("first", 100), ("second", 200)):
        driven.take(driven.chain.add(name, stage("latency", latency=milliseconds), 0.0, active=True))
    driven.take(driven.chain.feed(b"a", 0.0))
    driven.run_to(0.05)
    driven.take(driven.chain.feed(b"b", 0.05))
    driven.run_to(9)
    assert [item for _, item in driven.log] == [b"a", b"b"]
    assert [when for when, _ in driven.log] == pytest.approx([0.3, 0.35])


def test_a_long_read_is_cut_into_chunks() -> None:
    chain = Chain()
    chain.add("noop", stage("noop"), 0.0, active=True)
    data = PATTERN[: 2 * CHUNK_BYTES + 1]
    chunks = chain.feed(data, 0.0)
    assert [len(chunk) for chunk in chunks if isinstance(chunk, bytes)] == [CHUNK_BYTES, CHUNK_BYTES, 1]
    assert b"".join(chunk for chunk in chunks if isinstance(chunk, bytes)) == data


def test_a_stage_that_does_not_strike_passes_everything_and_is_not_named() -> None:
    chain = Chain()
    chain.add("spared", stage("black_hole"), 0.0, active=False)
    chain.add("struck", stage("noop"), 0.0, active=True)
    assert chain.feed(b"a", 0.0) == [b"a"]
    assert chain.touching == ("struck",)
    assert not chain.is_empty


def test_what_a_removed_stage_held_passes_through_those_behind_it_and_behind_what_they_hold() -> None:
    driven = Driven()
    driven.chain.add("hole", stage("black_hole"), 0.0, active=True)
    driven.take(driven.chain.feed(b"held", 0.0))
    driven.chain.add("late", stage("latency", latency=1000), 0.0, active=True)
    driven.run_to(5.0)
    driven.take(driven.chain.remove("hole", 5.0))
    assert driven.chain.held == 4
    driven.run_to(9)
    assert driven.log == [(6.0, b"held")]


def test_a_roll_that_spares_the_connection_frees_what_is_held_and_one_that_strikes_begins_anew() -> None:
    driven = Driven()
    driven.chain.add("hole", stage("black_hole"), 0.0, active=True)
    driven.take(driven.chain.feed(b"a", 0.0))
    driven.take(driven.chain.update("hole", attributes("black_hole"), 0.0, active=False))
    driven.take(driven.chain.feed(b"b", 0.0))
    driven.take(driven.chain.update("hole", attributes("black_hole"), 0.0, active=True))
    driven.take(driven.chain.feed(b"c", 0.0))
    assert driven.read == b"ab"
    driven.take(driven.chain.remove("hole", 0.0))
    assert driven.read == b"abc"


@pytest.mark.parametrize(("active", "due"), [(True, [End.CLOSE]), (False, [])])
def test_removing_a_timeout_closes_only_what_it_struck(active: bool, due: list[End]) -> None:
    chain = Chain()
    chain.add("timeout", stage("timeout"), 0.0, active=active)
    assert chain.remove("timeout", 0.0) == due


def test_a_timeout_that_does_not_strike_has_no_timer_whatever_it_is_set_to() -> None:
    chain = Chain()
    chain.add("timeout", stage("timeout", timeout=10), 0.0, active=False)
    assert chain.update("timeout", attributes("timeout", timeout=20), 1.0, active=False) == []
    assert chain.due is None
    chain.update("timeout", attributes("timeout", timeout=20), 2.0, active=True)
    assert chain.due == pytest.approx(2.02)


@settings(max_examples=200, deadline=None, database=None)
@given(data=st.data())
def test_changes_in_mid_flow_lose_double_or_reorder_nothing(data: st.DataObject) -> None:
    driven = Driven()
    present: dict[str, str] = {}
    fed = 0
    for step in range(data.draw(st.integers(0, 25))):
        match data.draw(st.sampled_from(["feed", "feed", "wait", "add", "update", "remove"])):
            case "feed":
                size = data.draw(st.integers(1, 40_000))
                driven.take(driven.chain.feed(PATTERN[fed : fed + size], driven.now))
                fed += size
            case "wait":
                driven.run_to(driven.now + data.draw(st.floats(0, 0.5)))
            case "add":
                kind = data.draw(st.sampled_from(sorted(KEEPING)))
                present[str(step)] = kind
                given_now = data.draw(st.sampled_from(KEEPING[kind]))
                made = stage(kind, **given_now)
                driven.take(driven.chain.add(str(step), made, driven.now, active=data.draw(st.booleans())))
            case "update" if present:
                name = data.draw(st.sampled_from(sorted(present)))
                changed = attributes(present[name], **data.draw(st.sampled_from(KEEPING[present[name]])))
                active = data.draw(st.booleans())
                driven.take(driven.chain.update(name, changed, driven.now, active=active))
            case "remove" if present:
                name = data.draw(st.sampled_from(sorted(present)))
                del present[name]
                driven.take(driven.chain.remove(name, driven.now))
        # Bounded: what is inside is what went in and has not come out.
        assert driven.chain.held == fed - len(driven.read)
        assert driven.read == PATTERN[: len(driven.read)]
    driven.take(driven.chain.feed(End.EOF, driven.now))
    for name in data.draw(st.permutations(sorted(present))):
        driven.take(driven.chain.remove(name, driven.now))
    assert driven.read == PATTERN[:fed]
    assert driven.ends == [End.EOF]
    assert driven.log[-1][1] is End.EOF
    assert driven.chain.is_empty
