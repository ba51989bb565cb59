"""The long poll and the end of a stream."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, LoopLag
from lab.laws import Status
from tests.laws.journals import JOB, Tale, numbered_lines

POLL = "long-poll"
DONE = "stream-done"


class Reading(Tale):
    """A chat that runs; each poll is asked and answered on one connection."""

    def __init__(self, lines: int = 0) -> None:
        super().__init__()
        self.connect()
        self.assign()
        self.post()
        self.stream("opened")
        self.lines(lines)
        self.seq = 1
        self.ref = JOB

    def poll(self, after: float, first: int = 0, count: int = 0, done: bool = False) -> int:
        """A page that comes `after` seconds with `count` lines from `first` on."""
        self.seq += 1
        name = f"r{self.seq}"
        self.ask(self.seq, name, self.ref)
        self.wait(after).answer(self.seq, name)
        ref, self.ref = self.ref, f"x{self.seq}"
        return self.page(ref, numbered_lines(first, count), self.ref, done=done, name=name)


def test_at_once_and_held() -> None:
    t = Reading(2)
    t.poll(0.1, 0, 2)
    t.poll(8.0)
    assert t.status(POLL) is Status.HELD
    assert t.judged(POLL).judgement.judged == 2


@pytest.mark.req("CHAT-036")
def test_empty_pages_that_come_too_early() -> None:
    t = Reading()
    for _ in range(5):
        t.poll(0.05)
    found = t.violation(POLL)
    assert found.seen == "an empty page after 0.05 s (and 4 more)"


@pytest.mark.req("CHAT-036")
@pytest.mark.parametrize("done", [False, True])
def test_a_page_that_comes_too_late(done: bool) -> None:
    t = Reading()
    t.poll(9.8, done=done)
    assert t.violation(POLL).due == "within 9.5 s"


@pytest.mark.req("CHAT-039")
def test_an_empty_page_though_something_was_there() -> None:
    t = Reading(1)
    t.poll(8.0)
    assert t.violation(POLL).seen == "an empty page though event 0 was there"


@pytest.mark.req("CHAT-039")
def test_a_line_that_waits_for_the_end_of_the_hold() -> None:
    t = Reading()
    t.ask(2, "r", JOB)
    t.wait(2).line(0)
    t.wait(6).answer(2, "r")
    t.page(JOB, numbered_lines(0, 1), "x", name="r")
    found = t.violation(POLL)
    assert (found.seen, found.due) == ("event 0 6.0 s after it was there", "at once, within 1 s")


def test_a_line_that_wakes_the_hold() -> None:
    t = Reading()
    t.ask(2, "r", JOB)
    t.wait(5).line(0)
    t.wait(0.2).answer(2, "r")
    t.page(JOB, numbered_lines(0, 1), "x", name="r")
    assert t.status(POLL) is Status.HELD


def test_bounds_widen_by_lag_and_a_cut_makes_it_unknown() -> None:
    t = Reading(1)
    t.wait(2).add(LoopLag(2.0))
    t.poll(1.5, 0, 1)
    assert t.status(POLL) is Status.HELD
    t = Reading()
    t.ask(2, "r", JOB)
    t.add(LinkChanged("agent2", "cut"), "link")
    t.answer(2, "r")
    t.page(JOB, [], "x", name="r")
    assert t.status(POLL) is Status.UNKNOWN


def test_an_unknown_cursor_only_has_the_longest_hold() -> None:
    t = Reading(1)
    t.ref = "nobody"
    t.poll(8.0)
    assert t.status(POLL) is Status.HELD


# done


@pytest.mark.req("CHAT-041")
def test_done_before_agent2_ended() -> None:
    t = Reading(1)
    t.poll(0.1, 0, 1, done=True)
    t.ended()
    assert t.violation(DONE).seen == "done:true though agent2 was still at it"


@pytest.mark.req("CHAT-041", "CHAT-042")
def test_done_after_the_end() -> None:
    t = Reading(1)
    t.ended()
    t.stream("ended", 1)
    t.poll(0.1, 0, 1)
    t.poll(0.1, done=True)
    assert t.status(DONE) is Status.HELD


@pytest.mark.req("CHAT-069")
def test_done_that_never_comes() -> None:
    t = Reading(1)
    t.poll(0.1, 0, 1)
    t.ended()
    t.wait(5.5).poll(8.0)
    assert t.violation(DONE).due == "done:true, since the stream is closed"


def test_an_empty_page_soon_after_the_end() -> None:
    t = Reading(1)
    t.poll(0.1, 0, 1)
    t.ended()
    t.wait(2).poll(8.0)
    assert t.status(DONE) is Status.NOTHING


@pytest.mark.parametrize("why", ["cancelled", "result", "broken", "refused", "cut"])
def test_an_agent_may_let_go_by_itself(why: str) -> None:
    t = Reading(1)
    if why == "cancelled":
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    elif why == "result":
        t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed"})
    elif why == "broken":
        t.stream("broken", 1)
    elif why == "refused":
        t.post(409)
    else:
        t.add(LinkChanged("agent2", "cut"), "link")
    t.poll(0.1, 0, 1, done=True)
    assert t.status(DONE) is Status.UNKNOWN


@pytest.mark.parametrize(("refused", "status"), [(True, Status.HELD), (False, Status.HELD)])
def test_a_chat_that_never_ran(refused: bool, status: Status) -> None:
    t = Tale()
    t.connect()
    t.assign()
    if refused:
        t.post(503)
    t.ask(2, "r", JOB)
    t.answer(1, "r")
    t.page(JOB, [], "x", done=True, name="r")
    assert t.status(DONE) is status


def test_an_early_stop() -> None:
    t = Reading(1)
    t.end("interrupted")
    assert t.status(POLL) is Status.NOTHING
    assert t.status(DONE) is Status.NOTHING
