"""The window: how many data frames are without an ack, and that an ack makes room."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged, ParticipantDeclared
from lab.laws import Status
from tests.laws.journals import AGENT, SESSION, Tale

LAW = "window"


def begun(how: str = "reference", **facts: Any) -> Tale:
    t = Tale(how)
    if facts:
        t.add(ParticipantDeclared("la", "local_agent", how, {"agentId": AGENT, **facts}), "runner")
    t.connect()
    return t


def beats(t: Tale, first: int, count: int) -> list[int]:
    return [t.la("heartbeat", seq) for seq in range(first, first + count)]


@pytest.mark.req("SQ-017", "LA-005")
def test_nine_without_an_ack() -> None:
    t = begun()
    sent = beats(t, 1, 9)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("9 data frames without an ack at once", (sent[0], sent[8]))


@pytest.mark.req("SQ-017")
def test_eight_without_an_ack_and_a_copy() -> None:
    t = begun()
    beats(t, 1, 8)
    t.wait(5).la("heartbeat", 1)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CH-015")
def test_a_ninth_chunk() -> None:
    t = begun()
    for index in range(9):
        t.answer(index + 1, "r", index=index, total=9)
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.parametrize("settle", ["frame", "number"])
@pytest.mark.req("SQ-014")
def test_both_forms_of_an_ack_make_room(settle: str) -> None:
    t = begun()
    first = beats(t, 1, 8)[0]
    if settle == "frame":
        t.ack_by_cp(first)
    else:
        t.cp("job.cancel", 1, ack=1)
    beats(t, 9, 1)
    assert t.status(LAW) is Status.HELD
    beats(t, 10, 1)
    assert t.status(LAW) is Status.BROKEN


def test_an_ack_of_a_later_frame_settles_that_one_alone() -> None:
    t = begun()
    t.ack_by_cp(beats(t, 1, 8)[7])
    beats(t, 9, 2)
    assert t.status(LAW) is Status.BROKEN


def test_a_dropped_ack_makes_no_room() -> None:
    t = begun()
    t.ack_by_cp(beats(t, 1, 8)[0], fate="dropped", fault="f")
    beats(t, 9, 1)
    assert t.status(LAW) is Status.BROKEN


def test_what_was_open_at_a_cut_is_open_after_a_resume() -> None:
    t = begun()
    beats(t, 1, 8)
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
    beats(t, 2, 8)
    assert t.status(LAW) is Status.HELD
    beats(t, 10, 1)
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.req("LA-005")
def test_the_window_is_that_of_the_settings() -> None:
    assert _status(begun(window=9), 9) is Status.HELD
    assert _status(begun(window=2), 3) is Status.BROKEN


def test_the_settings_of_an_attached_agent_are_not_known() -> None:
    assert _status(begun("attach"), 8) is Status.HELD
    assert _status(begun("attach"), 9) is Status.UNKNOWN


def _status(t: Tale, count: int) -> Status:
    beats(t, 1, count)
    return t.status(LAW)


@pytest.mark.req("SQ-014")
def test_a_window_that_stays_full_though_all_was_acked() -> None:
    t = begun()
    acks = [t.ack_by_cp(sent) for sent in beats(t, 1, 8)]
    t.la("heartbeat", 8)
    t.wait(37).end()
    found = t.violation(LAW)
    assert found.seen == "no data frame for 37.0 s though 0 are without an ack"
    assert found.entries == (acks[0],)


@pytest.mark.parametrize("way", ["goes on", "short", "never full", "refused", "cut", "held"])
def test_a_silence_that_breaks_nothing(way: str) -> None:
    t = begun()
    sent = beats(t, 1, 7 if way == "never full" else 8)
    for one in sent:
        t.ack_by_cp(one, fate="delayed" if way == "held" else "passed")
    if way == "cut":
        t.add(LinkChanged("gateway", "cut"), "links")
    if way == "refused":
        t.cp("error", payload={"code": "unauthorized"})
    t.wait(30)
    if way == "goes on":
        beats(t, 9, 1)
    if way != "short":
        t.wait(30)
    t.end()
    assert t.status(LAW) is Status.HELD


def test_without_a_data_frame_there_is_nothing() -> None:
    assert begun().status(LAW) is Status.NOTHING
