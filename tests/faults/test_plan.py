"""Fault plans, and their words."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from lab.faults.plan import FAULT_KINDS, Acts, Fault, FaultKind, FrameAnchor
from lab.faults.specs import ToxicSpec
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import read_attributes
from lab.faults.weather import Phase
from lab.laws.fallback import WAIT


def test_kinds_are_known_by_their_own_names() -> None:
    assert all(name == kind.name for name, kind in FAULT_KINDS.items())
    assert {name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.LINK} == {
        "cut",
        "reset",
        "delay",
        "heal",
        "move",
        "toxic",
        "weather",
    }
    assert {name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.FRAME} == {
        "drop",
        "duplicate",
        "hold",
        "tamper",
    }
    assert {name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.SOCKET} == {"inject"}
    assert {name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.SERVICE} == {"crash"}
    assert {name for name, kind in FAULT_KINDS.items() if kind.acts is Acts.PROCESS} == {"kill", "pause"}
    assert {name for name, kind in FAULT_KINDS.items() if kind.lasting} == {
        "cut",
        "delay",
        "toxic",
        "weather",
        "hold",
        "crash",
        "kill",
        "pause",
    }


def test_only_what_the_gateway_is_made_to_send_voids_a_law() -> None:
    """The laws know what became of each frame, so any other excuse would only hide what else broke."""
    assert {name: kind.excuses for name, kind in FAULT_KINDS.items() if kind.excuses} == {
        "tamper": (("gateway-frames-signed", "gateway"),),
        "inject": (("gateway-frames-valid", "gateway"), ("gateway-within-peer-revision", "gateway")),
    }


@pytest.mark.parametrize("kind", FAULT_KINDS.values(), ids=list(FAULT_KINDS))
def test_a_kind_says_what_may_be_drawn_of_it(kind: FaultKind) -> None:
    """A fault that lasts is drawn with an end, or it would never be over."""
    assert bool(kind.durations) == (kind.lasting and kind.drawn)
    assert all(seconds > 0 for seconds in (*kind.durations, *kind.delays))
    assert bool(kind.delays) == (kind.name == "delay")
    assert kind.times
    assert all(times >= 1 for times in kind.times)
    assert kind.times == (1,) or kind.acts is Acts.FRAME


def test_what_is_not_drawn_says_nothing_of_its_own_or_needs_more_than_a_moment() -> None:
    assert {name for name, kind in FAULT_KINDS.items() if not kind.drawn} == {"heal", "move", "weather", "inject"}


def test_every_toxic_with_something_to_say_is_drawn() -> None:
    """In each stream, but for those that act before there is one."""
    drawn = Counter((toxic.type, toxic.stream) for toxic in FAULT_KINDS["toxic"].toxics)
    doors = {"slow_connect", "accept_then_drop"}
    assert {kind for kind, _ in drawn} == set(KINDS) - {"noop"}
    assert {kind for kind, stream in drawn if stream == "upstream"} == set(KINDS) - {"noop"} - doors
    for toxic in FAULT_KINDS["toxic"].toxics:
        read_attributes(toxic.type, KINDS[toxic.type].attributes, toxic.attributes)
    assert not any(kind.toxics for kind in FAULT_KINDS.values() if kind.name != "toxic")


def test_a_drawn_toxic_is_over_before_an_agent_speaks_v1() -> None:
    assert max(FAULT_KINDS["toxic"].durations) < WAIT


TOXIC = ToxicSpec("latency", attributes={"latency": 5})


def test_toxics_stand_once_or_again_and_again() -> None:
    once = Fault("t", "toxic", link="gateway", seconds=2, toxics=(TOXIC,))
    assert (once.course, once.holds) == ((Phase((TOXIC,)),), 2)
    again = replace(once, every=10)
    assert (again.course, again.holds) == ((Phase((TOXIC,), 2), Phase((), 8)), None)
    assert Fault("c", "cut", link="gateway").course == ()
    phases = (Phase((TOXIC,), 1), Phase((), 3))
    assert Fault("w", "weather", link="gateway", weather="rain", phases=phases).course == phases


def test_a_broken_signature_needs_one_and_is_seen_by_the_caller() -> None:
    assert {name for name, kind in FAULT_KINDS.items() if kind.signed_only} == {"tamper"}
    assert "tamper" in {name for name, kind in FAULT_KINDS.items() if not kind.masked}


def test_only_a_program_that_starts_anew_forgets() -> None:
    assert {name for name, kind in FAULT_KINDS.items() if kind.forgets} == {"kill"}


def test_the_table_of_kinds_is_closed() -> None:
    with pytest.raises(TypeError):
        cast(Any, FAULT_KINDS)["flood"] = FAULT_KINDS["drop"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        cast(Any, FAULT_KINDS["drop"]).lasting = True


@pytest.mark.parametrize(
    ("anchor", "words"),
    [
        (FrameAnchor("hello", "la"), "hello #1 from la"),
        (FrameAnchor("ack", "cp", nth=3, of="job.assign"), "ack of job.assign #3 from cp"),
        (
            FrameAnchor("content.response", "la", content="job.stream", chunk=0),
            "content.response job.stream chunk 0 #1 from la",
        ),
    ],
)
def test_an_anchor_says_itself_in_words(anchor: FrameAnchor, words: str) -> None:
    assert anchor.words() == words


@pytest.mark.parametrize(
    ("one", "target"),
    [
        (Fault("f1", "cut", link="gateway"), "link gateway"),
        (Fault("f1", "cut", link="gateway", anchor=FrameAnchor("ready", "cp")), "link gateway"),
        (Fault("f1", "drop", anchor=FrameAnchor("ready", "cp", nth=2)), "ready #2 from cp"),
        (Fault("f1", "drop"), "?"),
        (Fault("f1", "drop", anchor=FrameAnchor("ack", "cp"), times=4), "ack #1 from cp, 4 times"),
        (Fault("f1", "drop", anchor=FrameAnchor("ack", "cp"), times=None), "ack #1 from cp, each"),
        (Fault("f1", "inject", socket="la"), "la"),
        (Fault("f1", "crash", service="agent2"), "service agent2"),
    ],
)
def test_a_fault_names_its_target(one: Fault, target: str) -> None:
    assert one.target == target
