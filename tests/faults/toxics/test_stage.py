"""What every kind of toxic keeps to, whatever is done to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.faults.flow import CHUNK_BYTES, LEAST_CHARGE, End
from lab.faults.toxics import KINDS
from tests.faults.toxics.stages import Driven

PATTERN = bytes(range(251)) * 2000
"""What flows: any two places of it differ but for those 251 bytes apart."""

LOSING = {"timeout", "limit_data", "cut_after", "reset_peer", "idle_close"}
"""Kinds that lose bytes, or end the connection, by their nature."""


def _milliseconds() -> st.SearchStrategy[int]:
    return st.integers(-5, 400)


ATTRIBUTES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "latency": st.fixed_dictionaries({"latency": _milliseconds(), "jitter": _milliseconds()}),
    "bandwidth": st.fixed_dictionaries({"rate": st.integers(0, 500), "shared": st.booleans()}),
    "slow_close": st.fixed_dictionaries({"delay": _milliseconds()}),
    "timeout": st.fixed_dictionaries({"timeout": _milliseconds()}),
    "reset_peer": st.fixed_dictionaries({"timeout": _milliseconds()}),
    "slicer": st.integers(200, 5000).flatmap(
        lambda size: st.fixed_dictionaries(
            {"average_size": st.just(size), "size_variation": st.integers(0, size), "delay": st.integers(-1, 100_000)}
        )
    ),
    "limit_data": st.fixed_dictionaries({"bytes": st.integers(-1, 100_000)}),
    "cut_after": st.fixed_dictionaries({"bytes": st.integers(-1, 100_000)}),
    "idle_close": st.fixed_dictionaries({"timeout": _milliseconds()}),
    "packet_loss": st.fixed_dictionaries({"loss_rate": st.floats(0, 1), "correlation": st.floats(0, 1)}),
    "noop": st.just({}),
    "black_hole": st.just({}),
}


def test_every_kind_that_acts_on_what_flows_is_put_to_the_test() -> None:
    assert set(ATTRIBUTES) == {name for name, kind in KINDS.items() if kind.stage is not None}


@dataclass
class _Life:
    """What happens to a stage: sizes of chunks, seconds that pass, new attributes."""

    kind: str
    attributes: dict[str, Any]
    acts: list[int | float | dict[str, Any]]
    end: End | None
    seed: int = field(default=0)


@st.composite
def _lives(draw: st.DrawFn, kinds: list[str]) -> _Life:
    kind = draw(st.sampled_from(kinds))
    act = st.one_of(st.integers(1, CHUNK_BYTES), st.floats(0.0, 1.0), ATTRIBUTES[kind])
    acts = draw(st.lists(act, max_size=12))
    return _Life(kind, draw(ATTRIBUTES[kind]), acts, draw(st.sampled_from([None, *End])), draw(st.integers(0, 99)))


def _live(life: _Life) -> tuple[Driven, bytes]:
    driven = Driven(life.kind, seed=life.seed, **life.attributes)
    fed = b""
    for act in life.acts:
        match act:
            case int():
                chunk = PATTERN[len(fed) : len(fed) + act]
                fed += chunk
                driven.feed(chunk)
            case float():
                driven.run_to(driven.now + act)
            case _:
                driven.update(**act)
        if life.kind not in LOSING:
            # Bounded: it holds what it was given and has not passed on, and no more.
            assert driven.stage.held == len(fed) - len(driven.bytes)
        assert driven.stage.held <= len(fed)
        assert driven.stage.held <= driven.stage.charge
    if life.end is not None:
        driven.feed(life.end)
    return driven, fed


@settings(max_examples=250, deadline=None, database=None)
@given(life=_lives(sorted(set(ATTRIBUTES) - LOSING)))
def test_no_byte_is_lost_doubled_or_out_of_order(life: _Life) -> None:
    driven, fed = _live(life)
    assert fed.startswith(driven.bytes)
    driven.release()
    assert driven.bytes == fed
    assert driven.stage.held == driven.stage.charge == 0
    assert driven.stage.due is None
    assert [end for _, end in driven.ends] == ([life.end] if life.end else [])
    if life.end is not None:
        assert driven.log[-1][1] is life.end


@settings(max_examples=150, deadline=None, database=None)
@given(life=_lives(sorted(LOSING)))
def test_what_loses_bytes_still_passes_a_beginning_of_the_stream(life: _Life) -> None:
    driven, fed = _live(life)
    driven.release()
    assert fed.startswith(driven.bytes)
    assert driven.stage.held == driven.stage.charge == 0


@settings(max_examples=60, deadline=None, database=None)
@given(life=_lives(sorted(ATTRIBUTES)))
def test_one_seed_gives_one_outcome(life: _Life) -> None:
    first, _ = _live(life)
    again, _ = _live(life)
    assert first.log == again.log


@pytest.mark.parametrize("kind", sorted(set(ATTRIBUTES) - {"timeout"}))
def test_a_toxic_that_is_removed_lets_what_it_holds_go_on(kind: str) -> None:
    attributes: dict[str, dict[str, Any]] = {
        "latency": {"latency": 10_000},
        "bandwidth": {"rate": 0},
        "slow_close": {"delay": 10_000},
        "reset_peer": {"timeout": 10_000},
        "slicer": {"average_size": 10, "delay": 10_000_000},
        "limit_data": {"bytes": 1000},
        "cut_after": {"bytes": 1000},
        "packet_loss": {"loss_rate": 1.0},
    }
    driven = Driven(kind, **attributes.get(kind, {}))
    driven.feed(b"x" * 100, b"y" * 100, End.EOF)
    driven.run_to(1.0)
    driven.remove()
    assert driven.bytes == b"x" * 100 + b"y" * 100
    assert [end for _, end in driven.ends] == [End.EOF]


def test_what_is_left_of_a_chunk_is_charged_as_a_chunk_of_that_size() -> None:
    driven = Driven("bandwidth", rate=1)
    driven.feed(b"x", b"y" * 130)
    assert (driven.stage.held, driven.stage.charge) == (131, LEAST_CHARGE + 130)
    driven.run_to(0.01)
    assert (driven.stage.held, driven.stage.charge) == (130, 130)
    driven.run_to(0.11)
    assert (driven.stage.held, driven.stage.charge) == (30, LEAST_CHARGE)
    driven.run_to(1)
    assert (driven.stage.held, driven.stage.charge) == (0, 0)
