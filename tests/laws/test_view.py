"""What the laws read off a journal: how far bounds widen, and who stands where."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, LinkConnection, LoopLag, ParticipantDeclared, SocketOpened, SutChanged
from lab.laws.seen import LOCAL_AGENT
from lab.laws.view import JournalView
from tests.laws.journals import AGENT, SESSION, SESSION_2, Tale, uuid


def view(t: Tale) -> JournalView:
    return JournalView(t.entries)


@pytest.mark.parametrize(
    ("start", "end", "slack"),
    [(0, 9, 0), (0, 10, 4), (15, 16, 4), (21, 30, 4), (22.1, 30, 4), (23, 30, 0)],
    ids=["before", "at its start", "within", "what it held comes late", "all at once", "over"],
)
def test_slack_is_both_ways_of_the_slowest_link(start: float, end: float, slack: float) -> None:
    t = Tale()
    t.wait(10).add(LinkChanged("gateway", "delayed", 2))
    t.add(LinkChanged("agent2", "delayed", 1))
    t.wait(10).add(LinkChanged("gateway", "healed"))
    t.add(LinkChanged("agent2", "delayed", 0))
    seen = view(t)
    assert seen.slack(start, end) == slack
    assert seen.delayed(start, end) is (slack > 0)


@pytest.mark.parametrize("change", ["cut", "reset"])
def test_a_delay_outlasts_what_breaks_the_link(change: str) -> None:
    t = Tale()
    t.add(LinkChanged("gateway", "delayed", 2))
    t.wait(10).add(LinkChanged("gateway", change))
    assert view(t).slack(20, 30) == 4
    t.wait(10).add(LinkChanged("gateway", "healed"))
    assert view(t).slack(25, 30) == 0


@pytest.mark.parametrize(
    ("start", "end", "slack"), [(0, 8, 0), (0, 9.5, 1), (10, 20, 1.5), (10.5, 20, 0.5), (12, 20, 0)]
)
def test_slack_is_the_lag_within(start: float, end: float, slack: float) -> None:
    t = Tale()
    t.wait(10).add(LoopLag(1))
    t.wait(1).add(LoopLag(0.5))
    assert view(t).slack(start, end) == slack


@pytest.mark.parametrize(("start", "end", "changed"), [(0, 9, False), (9, 10, True), (11, 12, True), (21, 22, False)])
def test_a_process_that_is_away_has_changed(start: float, end: float, changed: bool) -> None:
    t = Tale()
    t.wait(10).add(SutChanged("la", "crashed"), "sut")
    t.wait(10).add(SutChanged("la", "started"), "sut")
    assert view(t).agent_process_changed("la", start, end) is changed


@pytest.mark.parametrize(("start", "end", "slack"), [(0, 9, 0), (8, 11, 25), (20, 22, 15), (35, 36, 0), (36, 40, 0)])
def test_who_stands_still_goes_on_when_the_pause_is_over(start: float, end: float, slack: float) -> None:
    """However soon the bound comes: nothing is due of it before."""
    t = Tale()
    t.wait(10).add(SutChanged("la", "paused"), "sut")
    t.wait(25).add(SutChanged("la", "went-on"), "sut")
    t.wait(60).end()
    seen = view(t)
    assert seen.slack(start, end) == slack
    assert seen.paused(start, end) is (end >= 10 and start <= 35)


@pytest.mark.parametrize(
    "event",
    [LinkChanged("gateway", "cut"), LinkChanged("gateway", "reset"), LinkConnection("gateway", "x", "refused")],
)
def test_what_disturbs(event: LinkChanged | LinkConnection) -> None:
    t = Tale()
    t.wait(5).add(event)
    seen = view(t)
    assert seen.disturbed(0, 5)
    assert seen.disturbed(5, 6)
    assert not seen.disturbed(0, 4.9)
    stays_cut = isinstance(event, LinkChanged) and event.change == "cut"
    assert seen.disturbed(5.1, 6) is stays_cut


def test_a_link_that_was_cut_disturbs_until_it_is_healed() -> None:
    t = Tale()
    t.wait(5).add(LinkChanged("gateway", "cut"))
    t.wait(1).add(LinkChanged("agent2", "healed"))
    t.wait(1).add(LinkChanged("gateway", "healed"))
    seen = view(t)
    assert seen.disturbed(6.5, 6.6)
    assert seen.disturbed(7, 8)
    assert not seen.disturbed(7.1, 9)


@pytest.mark.parametrize(
    "event",
    [LinkChanged("gateway", "healed"), LinkChanged("gateway", "delayed", 0), LinkConnection("gateway", "x", "opened")],
)
def test_what_disturbs_nothing(event: LinkChanged | LinkConnection) -> None:
    t = Tale()
    t.wait(5).add(event)
    assert not view(t).disturbed(0, 9)


def test_the_horizon_of_a_connection() -> None:
    t = Tale()
    t.connect()
    t.wait(10)
    t.add(SutChanged("la", "started"))
    t.add(SutChanged("other", "killed"))
    t.wait(10)
    t.add(SutChanged("la", "killed"))
    t.wait(10).close()
    t.wait(10).end()
    t.wait(10).add(LoopLag(0.1))
    seen = view(t)
    connection = seen.connections["c1"]
    assert seen.horizon(connection, 0) == 20
    assert seen.horizon(connection, 25) == 30
    assert seen.end == 40


def test_who_an_agent_is() -> None:
    t = Tale()
    assert view(t).participant("unknown") == "la"
    t.add(ParticipantDeclared("lb", "local_agent", "reference", {"agentId": uuid("b")}))
    seen = view(t)
    assert seen.participant(AGENT) == "la"
    assert seen.participant(uuid("b")) == "lb"
    assert seen.participant(uuid("c")) == uuid("c")
    assert seen.participant(None) == LOCAL_AGENT


def test_the_credential_tells_whose_socket_it_is() -> None:
    t = Tale()
    t.add(SocketOpened("c1", "/", "lb"))
    t.register()
    seen = view(t)
    assert seen.agent_of(seen.connections["c1"]) == "lb"


def test_sessions_go_over_connections() -> None:
    t = Tale()
    t.connect()
    t.la("heartbeat", 1)
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
    t.la("heartbeat", 2)
    t.close()
    t.connect("c3", SESSION_2, resume=(SESSION, 0))
    t.la("heartbeat", 1)
    seen = view(t)
    assert [[one.conn for one in session.connections] for session in seen.sessions] == [["c1", "c2"], ["c3"]]
    assert [[one.frame.seq for one in session.data(LOCAL_AGENT)] for session in seen.sessions] == [[1, 2], [1]]


def test_an_empty_journal() -> None:
    assert JournalView([]).end == 0


@pytest.mark.parametrize(
    ("fate", "made", "delivered", "passed_on"),
    [
        ("passed", True, True, True),
        ("dropped", True, False, False),
        ("delayed", True, False, True),
        ("released", False, True, True),
        ("copied", False, True, True),
    ],
)
def test_who_made_a_frame_and_where_it_came(fate: str, made: bool, delivered: bool, passed_on: bool) -> None:
    t = Tale()
    t.connect()
    t.la("heartbeat", 1, fate=fate, fault="f")
    connection = view(t).connections["c1"]
    seen = connection.frames[-1]
    assert (seen.made, seen.delivered, seen.passed_on) == (made, delivered, passed_on)
    assert list(connection.arrived("local_agent")) == ([seen] if delivered else [])


def test_an_injected_frame_is_its_senders() -> None:
    """The gateway misbehaves by order: no other entry stands for it."""
    t = Tale()
    t.connect()
    t.cp("job.cancel", 1, fault="inject.1")
    assert view(t).connections["c1"].frames[-1].made
