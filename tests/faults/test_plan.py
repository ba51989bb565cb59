"""Fault plans: their words, and the frames their anchors wait for."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.plan import FAULT_KINDS, Acts, AnchorWatch, Fault, FaultKind, FrameAnchor, SeenFrame
from lab.faults.specs import ToxicSpec
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import read_attributes
from lab.faults.weather import Phase
from lab.laws.fallback import WAIT


def fault(name: str, anchor: FrameAnchor | None) -> Fault:
    return Fault(name, "drop", anchor=anchor)


def ids(faults: tuple[Fault, ...]) -> list[str]:
    return [one.id for one in faults]


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
        "inject": (("gateway-frames-valid", "gateway"),),
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


NARROW = FrameAnchor("content.response", "la", of="x", content="job.stream", chunk=1)


@pytest.mark.parametrize(
    ("anchor", "frame", "fits"),
    [
        (FrameAnchor("ack", "la"), SeenFrame("ack", "la"), True),
        (FrameAnchor("ack", "la"), SeenFrame("ack", "la", of="job.assign", content="c", chunk=4), True),
        (FrameAnchor("ack", "la"), SeenFrame("ack", "cp"), False),
        (FrameAnchor("ack", "la"), SeenFrame("error", "la"), False),
        (NARROW, SeenFrame("content.response", "la", of="x", content="job.stream", chunk=1), True),
        (NARROW, SeenFrame("content.response", "la", of="y", content="job.stream", chunk=1), False),
        (NARROW, SeenFrame("content.response", "la", of="x", content="chat.session", chunk=1), False),
        (NARROW, SeenFrame("content.response", "la", of="x", content="job.stream", chunk=0), False),
        (NARROW, SeenFrame("content.response", "la"), False),
        (FrameAnchor("content.response", "la", chunk=0), SeenFrame("content.response", "la"), False),
        (FrameAnchor("content.response", "la", chunk=0), SeenFrame("content.response", "la", chunk=0), True),
    ],
)
def test_what_fits_an_anchor(anchor: FrameAnchor, frame: SeenFrame, fits: bool) -> None:
    watch = AnchorWatch()
    watch.arm(fault("f1", anchor))
    assert ids(watch.see(frame)) == (["f1"] if fits else [])
    assert ids(watch.unfired()) == ([] if fits else ["f1"])


@given(nth=st.integers(1, 6), frames=st.lists(st.sampled_from(["ack", "error"]), max_size=20))
def test_a_fault_fires_once_at_the_nth_frame_that_fits(nth: int, frames: list[str]) -> None:
    watch = AnchorWatch()
    watch.arm(fault("f1", FrameAnchor("ack", "la", nth=nth)))
    fired = [i for i, frame in enumerate(frames) if watch.see(SeenFrame(frame, "la"))]
    fitting = [i for i, frame in enumerate(frames) if frame == "ack"]
    assert fired == fitting[nth - 1 : nth]
    assert ids(watch.unfired()) == ([] if fired else ["f1"])


@given(nth=st.integers(1, 4), times=st.integers(1, 4), frames=st.lists(st.sampled_from(["ack", "error"]), max_size=20))
def test_a_fault_with_a_count_fires_that_often_from_the_nth_on(nth: int, times: int, frames: list[str]) -> None:
    watch = AnchorWatch()
    watch.arm(Fault("f1", "drop", anchor=FrameAnchor("ack", "la", nth=nth), times=times))
    fired = [i for i, frame in enumerate(frames) if watch.see(SeenFrame(frame, "la"))]
    fitting = [i for i, frame in enumerate(frames) if frame == "ack"]
    assert fired == fitting[nth - 1 : nth - 1 + times]
    assert ids(watch.unfired()) == ([] if fired else ["f1"])


def test_a_fault_of_every_frame_fires_at_each_until_it_is_disarmed() -> None:
    every = Fault("f1", "drop", anchor=FrameAnchor("ack", "la"), times=None)
    assert (every.least, Fault("f2", "drop", times=4).least) == (1, 4)
    watch = AnchorWatch()
    watch.arm(every)
    assert [ids(watch.see(SeenFrame("ack", "la"))) for _ in range(3)] == [["f1"]] * 3
    assert watch.unfired() == ()
    watch.disarm("f1")
    assert watch.see(SeenFrame("ack", "la")) == ()


def test_counting_begins_when_a_fault_is_armed() -> None:
    watch = AnchorWatch()
    watch.arm(fault("early", FrameAnchor("ack", "la", nth=2)))
    assert watch.see(SeenFrame("ack", "la")) == ()
    watch.arm(fault("late", FrameAnchor("ack", "la", nth=2)))
    assert ids(watch.see(SeenFrame("ack", "la"))) == ["early"]
    assert ids(watch.see(SeenFrame("ack", "la"))) == ["late"]


def test_a_frame_takes_one_frame_fault_and_the_next_waits_for_the_next_frame() -> None:
    watch = AnchorWatch()
    for name in ("b", "a", "c"):
        watch.arm(fault(name, FrameAnchor("ack", "la")))
    for name in ("b", "a", "c"):
        assert ids(watch.see(SeenFrame("ack", "la"))) == [name]
    assert watch.unfired() == ()


def test_link_faults_behind_one_frame_all_fire_in_the_order_they_were_armed() -> None:
    watch = AnchorWatch()
    watch.arm(Fault("cut", "cut", link="gateway", anchor=FrameAnchor("ack", "la")))
    watch.arm(fault("drop", FrameAnchor("ack", "la")))
    watch.arm(Fault("delay", "delay", link="agent2", anchor=FrameAnchor("ack", "la")))
    assert ids(watch.see(SeenFrame("ack", "la"))) == ["cut", "drop", "delay"]


def test_a_disarmed_fault_does_not_fire_and_others_do() -> None:
    watch = AnchorWatch()
    watch.arm(fault("f1", FrameAnchor("ack", "la")))
    watch.arm(fault("f2", FrameAnchor("ack", "la")))
    watch.disarm("f1")
    watch.disarm("unknown")
    assert ids(watch.unfired()) == ["f2"]
    assert ids(watch.see(SeenFrame("ack", "la"))) == ["f2"]


def test_a_fault_without_anchor_cannot_be_armed() -> None:
    watch = AnchorWatch()
    with pytest.raises(ValueError, match="f9 has no anchor"):
        watch.arm(fault("f9", None))
    assert watch.unfired() == ()
