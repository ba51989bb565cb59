"""The moments around a finding."""

from __future__ import annotations

import pytest

from lab.journal.events import (
    Agent2Job,
    Agent2Request,
    Event,
    FaultPlanned,
    JobAssigned,
    LinkChanged,
    SocketClosed,
    SocketOpened,
    StepEnded,
    digest,
)
from lab.journal.partner_events import PartnerCall
from lab.report.moments import CHANGES_SHOWN, OWN_SHOWN, Moment, Moments
from lab.run.verdict import Finding, Outcome
from tests.run.made import entries, frame


def finding(*at: int, head: str = "some-law") -> Finding:
    return Finding(Outcome.FAIL, head, "Some promise", entries=at)


def seen(journal: list[Event], *at: int) -> list[int | str]:
    """Entries shown, and the gaps in words."""
    moments = Moments(entries(*journal)).around(finding(*at))
    return [one.text if one.n is None else one.n for one in moments]


def frames(count: int, conn: str = "c1", **members: object) -> list[Event]:
    return [frame(conn=conn, type="job.event", seq=n + 1, **members) for n in range(count)]


@pytest.mark.parametrize(
    ("at", "due"),
    [
        ((5,), [2, 3, 4, 5, 6, 7]),
        ((0,), [0, 1, 2]),
        ((9,), [6, 7, 8, 9]),
        ((4, 5), [1, 2, 3, 4, 5, 6]),
        ((1, 9), [0, 1, 2, 3, "3 more frames", 7, 8, 9]),
        ((1, 7), [0, 1, 2, 3, "1 more frame", 5, 6, 7, 8]),
    ],
)
def test_three_before_and_two_after_the_first_entry(at: tuple[int, ...], due: list[int | str]) -> None:
    """And the frames that led to the last one; what lies between is counted."""
    assert seen(frames(10), *at) == due


def test_the_entries_of_the_finding_are_marked() -> None:
    """And only these."""
    moments = Moments(entries(*frames(10))).around(finding(2, 5))
    assert [one.n for one in moments if one.own] == [2, 5]


def test_other_agents_frames_are_left_out_and_a_new_socket_is_not() -> None:
    """What an agent did on its last connection led to what it does on this one."""
    journal: list[Event] = [
        SocketOpened("c1", "/", "mine"),
        frame(conn="c1", type="job.event"),
        SocketOpened("c2", "/", "other"),
        frame(conn="c2", type="job.event"),
        SocketClosed("c1", 1006, "none"),
        SocketOpened("c3", "/", "mine"),
        frame(conn="c3", type="register"),
    ]
    assert seen(journal, 6) == [1, 4, 5, 6]


def test_what_is_at_agent2_is_shown_among_the_frames_of_its_job() -> None:
    """Or of the frame before it, when it has no job."""
    journal: list[Event] = [
        SocketOpened("c1", "/", "a"),
        SocketOpened("c2", "/", "b"),
        frame(conn="c1", type="job.assign", payload={"jobId": "j"}),
        frame(conn="c2", type="heartbeat"),
        Agent2Request("POST", "/local/v1/jobs", 202, "j"),
        frame(conn="c1", type="job.event"),
        frame(conn="c2", type="heartbeat"),
    ]
    assert seen(journal, 4) == [0, 2, 4, 5]
    journal[4] = StepEnded(0, "failed")
    assert seen(journal, 4) == [1, 3, 4, 6]


def test_what_happens_to_the_link_between_two_entries() -> None:
    """The last changes."""
    journal: list[Event] = [*frames(4), *[LinkChanged("gateway", "cut")] * 6, *frames(5)]
    shown = seen(journal, 0, 14)
    assert [n for n in shown if isinstance(n, int) and 4 <= n < 10] == [6, 7, 8, 9][-CHANGES_SHOWN:]


def test_many_entries_are_shown_by_their_ends() -> None:
    """The first and the last ones."""
    moments = Moments(entries(*frames(40))).around(finding(*range(0, 40, 2)))
    assert [one.n for one in moments if one.own] == [0, 2, 4, 34, 36, 38]
    assert sum(one.own for one in moments) == OWN_SHOWN


def test_a_message_that_came_again_names_the_first() -> None:
    """In its own direction only."""
    journal = entries(frame(msg_id="m"), frame(msg_id="m", direction="cp-to-la"), frame(msg_id="m"), frame(msg_id=None))
    moments = Moments(journal)
    assert ["again, first at 0" in moments.words(entry).note for entry in journal] == [False, False, True, False]


def test_the_job_is_named_where_there_are_several() -> None:
    """By its name in the scenario, in frames and at agent2."""
    one, two = (JobAssigned(job, label, "fix", "a") for job, label in (("j", "f1"), ("k", "f2")))
    ran: list[Event] = [
        frame(payload={"jobId": "j"}),
        Agent2Request("POST", "/local/v1/jobs", 202, "j"),
        frame(payload={"jobId": digest("uuid", "x")}),
        Agent2Job("j", "done"),
        frame(payload={"jobId": "unknown"}),
    ]
    journal = entries(one, two, *ran)
    notes = [Moments(journal).words(entry).note for entry in journal[2:]]
    assert notes == ["f1 · 10 bytes", "f1 · HTTP 202", "10 bytes", "f1", "10 bytes"]
    alone = entries(one, *ran)
    assert Moments(alone).words(alone[1]).note == "10 bytes"


def test_a_finding_without_a_place_has_none() -> None:
    """No entry, one that is not there, or a fault that never fired."""
    moments = Moments(entries(*frames(3), FaultPlanned("f", "drop", "ack", 9)))
    assert moments.around(finding()) == ()
    assert moments.around(finding(77)) == ()
    assert moments.around(finding(3, head="fault")) == ()
    assert Moments(entries(StepEnded(0, "failed"))).around(finding(0)) == (Moment(0, 0.0, "step failed", "", own=True),)


def test_a_line_has_columns() -> None:
    """Time, mark, what, details."""
    assert Moment(4, 1.5, "→ ack", "seq 1", own=True).line() == "    1.500 s ▸ → ack                    seq 1"
    assert Moment(4, 1.5, "→ ack").line() == "    1.500 s   → ack"
    assert Moment(None, 1.5, "3 more frames").line() == "        …     3 more frames"


def test_moments_of_this_leg_are_those_of_all_its_doubles() -> None:
    """Around a finding stand calls and requests; what lies between is counted without the word frame."""
    journal = [PartnerCall("c", f"GET /{n}", 200) for n in range(10)]
    moments = Moments(entries(*journal))
    shown = moments.around(finding(1, 9))
    assert [one.text if one.n is None else one.n for one in shown] == [0, 1, 2, 3, "3 more", 7, 8, 9]
    assert "frames" not in moments.legend
