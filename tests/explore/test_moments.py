"""The moments of a journal, one made by hand and one of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.commands.loading import load
from lab.explore.moments import HANDSHAKE, Moment, moment_of, moments_of
from lab.explore.plan import Planned
from lab.explore.trial import run_quietly
from lab.faults.anchors import AnchorWatch
from lab.faults.plan import Fault, FrameAnchor
from lab.gateway.frame_faults import FrameFaults
from lab.journal.events import Event, Frame, SocketOpened
from lab.journal.writer import Entry
from tests.explore.made import TARGETS, frame_fault, link_fault
from tests.run.made import frame

ROOT = Path(__file__).parents[2]
OPENED = SocketOpened("c1", "/ws", "one")
SIGNED = {"signature": {"present": True}}


def entries(*events: Event, by: str = "gateway") -> list[Entry]:
    return [Entry(n, n / 2, by, event) for n, event in enumerate(events)]


def moments(*events: Event) -> list[Moment]:
    return list(moments_of(entries(OPENED, *events)))


def test_frames_are_counted_by_kind_in_the_order_of_the_first() -> None:
    event = frame(type="job.event", msg_id="m1")
    assign = frame(type="job.assign", msg_id="m2", direction="cp-to-la", facts=SIGNED)
    assert moments(frame(type="register"), assign, event, event) == [
        Moment("register", "one", None, None, False, 1),
        Moment("job.assign", "gateway", None, None, True, 1),
        Moment("job.event", "one", None, None, False, 2),
    ]


def test_an_ack_is_told_by_what_it_acks_and_content_by_its_kind() -> None:
    event = frame(type="job.event", msg_id="m1")
    ack = frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m1"})
    request = frame(type="content.request", direction="cp-to-la", request_id="r1", payload={"kind": "job.stream"})
    response = frame(type="content.response", request_id="r1", chunk={"index": 3})
    assert moments(event, ack, request, response)[1:] == [
        Moment("ack", "gateway", "job.event", None, False, 1),
        Moment("content.request", "gateway", None, "job.stream", False, 1),
        Moment("content.response", "one", None, "job.stream", False, 1),
    ]


def test_copies_and_what_is_no_frame_do_not_count() -> None:
    """A copy is the lab's own doing; a message without a type cannot be waited for."""
    event = frame(type="job.event", msg_id="m1")
    copy = frame(type="job.event", msg_id="m1", fate="copied", fault="f")
    assert moments(event, copy, frame(type=None)) == [Moment("job.event", "one", None, None, False, 1)]


def test_what_an_agent_signs_is_no_signature_to_be_broken() -> None:
    """Signatures are the gateway's."""
    assert not moments(frame(type="job.event", facts=SIGNED))[0].signed


def test_agents_and_gateways_are_told_apart() -> None:
    event = frame(type="job.event", msg_id="m1")
    opened = SocketOpened("c2", "/ws", "two")
    journal = [*entries(OPENED, event), *entries(opened, frame(type="job.event", conn="c2", msg_id="m1"), by="other")]
    assert [(one.sender, one.count) for one in moments_of(journal)] == [("one", 1), ("two", 1)]


@pytest.mark.parametrize("name", HANDSHAKE)
def test_frames_of_the_handshake_have_no_number(name: str) -> None:
    assert not Moment(name, "one", None, None, False, 1).numbered
    assert Moment("job.event", "one", None, None, False, 1).numbered


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (Moment("ack", "gateway", "job.event", None, False, 1), "ack of job.event from gateway"),
        (Moment("content.request", "gateway", None, "job.stream", True, 1), "content.request job.stream from gateway"),
        (Moment("heartbeat", "one", None, None, False, 1), "heartbeat from one"),
    ],
)
def test_a_moment_in_words(moment: Moment, words: str) -> None:
    assert moment.words() == words


def test_every_moment_of_a_run_is_one_that_an_anchor_finds() -> None:
    """The last frame of each kind is found by its number, and no further one."""
    run = run_quietly(load(ROOT / "scenarios" / "fix-job.yaml"), 1)
    found = moments_of(run.entries)
    assert {"register", "ready", "job.assign", "job.event", "job.result", "ack"} <= {one.type for one in found}
    assert any(one.signed for one in found if one.type == "job.assign")
    watch, seen = AnchorWatch(), FrameFaults()
    for number, one in enumerate(found):
        for name, nth in ((f"last {number}", one.count), (f"beyond {number}", one.count + 1)):
            watch.arm(
                Fault(name, "cut", link="gateway", anchor=FrameAnchor(one.type, one.sender, nth, one.of, one.content))
            )
    fired: list[str] = []
    for entry in run.entries:
        if isinstance(entry.event, Frame):
            sender = "local_agent" if entry.event.direction == "la-to-cp" else "gateway"
            fired += [fault.id for fault in watch.see(seen.seen(entry.event, sender))]
    assert sorted(fired) == sorted(f"last {number}" for number in range(len(found)))


@pytest.mark.parametrize(
    ("planned", "moment"),
    [
        (link_fault("a", before=3), "before step 3"),
        (Planned(0, Fault("a", "drop", anchor=FrameAnchor("ack", "b", 4, of="job.event"))), "ack of job.event from b"),
        (
            Planned(0, Fault("a", "drop", anchor=FrameAnchor("content.request", "b", content="job.stream"))),
            "content.request job.stream from b",
        ),
        (frame_fault("a", nth=3), "job.event from local_agent"),
    ],
)
def test_the_moment_of_a_fault_in_words(planned: Planned, moment: str) -> None:
    assert moment_of(planned) == moment


def test_moments_of_faults_are_told_in_the_words_of_moments() -> None:
    """So that what struck can be held against what can be struck."""
    for moment in TARGETS.moments:
        anchor = FrameAnchor(moment.type, moment.sender, 1, moment.of, moment.content)
        assert moment_of(Planned(0, Fault("a", "drop", anchor=anchor))) == moment.words()
