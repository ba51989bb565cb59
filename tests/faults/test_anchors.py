"""The frames that anchors wait for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.anchors import AnchorWatch, SeenFrame
from lab.faults.plan import Fault, FrameAnchor


def fault(name: str, anchor: FrameAnchor | None) -> Fault:
    return Fault(name, "drop", anchor=anchor)


def ids(faults: tuple[Fault, ...]) -> list[str]:
    return [one.id for one in faults]


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
