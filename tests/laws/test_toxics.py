"""How the toxics of a journal widen what a law may ask for."""

from __future__ import annotations

from math import inf

import pytest

from lab.journal.events import LinkChanged, LinkOpened, ParticipantDeclared
from lab.laws.view import JournalView
from tests.laws.journals import Tale


def added(name: str, holds: float | None, link: str = "gateway") -> LinkChanged:
    return LinkChanged(link, "toxic-added", 0.0, name, "made", holds)


def removed(name: str, link: str = "gateway") -> LinkChanged:
    return LinkChanged(link, "toxic-removed", 0.0, name)


def latency() -> JournalView:
    """Bytes come up to a second later each way, from 10 s to 20 s."""
    t = Tale()
    t.wait(10).add(added("up", 1.0))
    t.add(added("down", 0.5))
    t.wait(10).add(removed("up"))
    t.add(removed("down"))
    t.wait(100)
    return JournalView(t.entries)


@pytest.mark.parametrize(
    ("start", "end", "slack"), [(0, 9, 0), (0, 10, 1.5), (15, 16, 1.5), (20.9, 30, 1.0), (21.3, 30, 0)]
)
def test_what_has_a_bound_is_a_delay(start: float, end: float, slack: float) -> None:
    view = latency()
    assert view.slack(start, end) == slack
    assert view.delayed(start, end) is (slack > 0)
    assert not view.disturbed(start, end)
    assert not view.stalled(start, end)


def test_a_delay_of_the_link_comes_on_top() -> None:
    t = Tale()
    t.add(LinkChanged("gateway", "delayed", 2))
    t.add(LinkChanged("gateway", "toxic-added", 2, "up", "latency", 1.0))
    assert JournalView(t.entries).slack(0, 1) == 5
    t.wait(10).add(LinkChanged("gateway", "toxic-removed", 2, "up"))
    assert JournalView(t.entries).slack(20, 30) == 4


def stall() -> JournalView:
    """Nothing passes from 10 s to 14 s, and from 20 s to 21 s."""
    t = Tale()
    for calm, stalled in ((10, 4), (6, 1)):
        t.wait(calm).add(added("up", None))
        t.add(added("down", None))
        t.wait(stalled).add(removed("up"))
        t.add(removed("down"))
    t.wait(100)
    return JournalView(t.entries)


@pytest.mark.parametrize(
    ("start", "end", "slack"),
    [
        (0, 9, 0),
        # What was sent within waits for its end, and two toxics at once are one stall.
        (0, 10, 4.25),
        (12, 13, 4.25),
        # What came out of it may have been sent at any time of it.
        (14, 15, 4.25),
        # The first makes it wait into the second.
        (11, 17, 5.5),
        (15, 16, 0),
        (15, 20, 1.25),
    ],
)
def test_what_has_no_bound_is_waited_for(start: float, end: float, slack: float) -> None:
    view = stall()
    assert view.slack(start, end) == slack
    assert view.disturbed(start, end) is (slack > 0)
    assert view.delayed(start, end) is (slack > 0)
    assert view.stalled(start, end) is (slack > 0)


def test_an_update_counts_from_then_on() -> None:
    t = Tale()
    t.add(added("up", 1.0))
    t.wait(10).add(LinkChanged("gateway", "toxic-updated", 0.0, "up", "latency", 3.0))
    view = JournalView(t.entries)
    assert (view.slack(0, 5), view.slack(12, 13)) == (1.0, 3.0)


def test_one_that_stays_makes_everything_possible() -> None:
    t = Tale()
    t.wait(1).add(added("up", None))
    assert JournalView(t.entries).slack(5, 6) == inf


def test_one_that_holds_nothing_back_changes_nothing() -> None:
    t = Tale()
    t.add(added("noop", 0.0))
    view = JournalView(t.entries)
    assert (view.slack(0, 1), view.delayed(0, 1), view.disturbed(0, 1)) == (0, False, False)


def test_a_stall_on_the_way_to_agent2_is_none_to_a_gateway() -> None:
    t = Tale()
    t.add(ParticipantDeclared("gw", "gateway", "double"), "run")
    t.add(ParticipantDeclared("a2", "agent2", "double"), "run")
    t.add(LinkOpened("second", "a2"))
    t.add(added("up", None, "second"))
    view = JournalView(t.entries)
    assert view.disturbed(0, 1, "agent2")
    assert not view.disturbed(0, 1, "gateway")
    assert not view.delayed(0, 1, "gateway")
