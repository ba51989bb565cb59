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


# The close ends the hold


def waiting_at_the_end(after: float, done: bool = False) -> Tale:
    """A request that waits when agent2 ends, answered so many seconds after that."""
    t = Reading()
    t.ask(2, "r", JOB)
    t.wait(1).ended()
    t.wait(after).answer(2, "r")
    t.page(JOB, [], "x", done=done, name="r")
    return t


@pytest.mark.req("CHAT-036", "CHAT-041")
@pytest.mark.parametrize("done", [False, True])
def test_a_hold_that_the_close_does_not_end(done: bool) -> None:
    found = waiting_at_the_end(7.0, done).violation(DONE)
    assert (found.seen, found.due) == ("a request held for 7.0 s after agent2's end", "done:true within 5 s")


def test_a_hold_that_the_close_ends() -> None:
    assert waiting_at_the_end(3.5, done=True).status(DONE) is Status.HELD


@pytest.mark.parametrize("why", ["torn", "cut", "lag"])
def test_what_may_have_kept_the_stream_open(why: str) -> None:
    t = Reading()
    t.ask(2, "r", JOB)
    if why == "torn":
        t.stream("broken")
    elif why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    t.wait(1).ended()
    t.wait(7)
    if why == "lag":
        t.add(LoopLag(2.0))
    t.answer(2, "r")
    t.page(JOB, [], "x", name="r")
    assert t.status(DONE) is not Status.BROKEN


# The content stream goes on behind agent2's end


@pytest.mark.req("CHAT-030", "CHAT-041")
def test_done_though_the_content_stream_goes_on() -> None:
    t = Reading(2)
    t.ended()
    t.poll(0.1, 0, 1, done=True)
    assert t.violation(DONE).seen == "done:true though agent2 was still writing the content stream"


@pytest.mark.parametrize("why", ["ended", "all given", "drained", "cancelled"])
def test_done_when_nothing_more_is_due(why: str) -> None:
    t = Reading(2)
    t.ended()
    if why == "ended":
        t.stream("ended", 2)
    elif why == "cancelled":
        t.cp("job.cancel", 5, payload={"jobId": JOB})
    t.poll(1.1 if why == "drained" else 0.1, 0, 2 if why == "all given" else 1, done=True)
    assert t.status(DONE) is (Status.UNKNOWN if why == "cancelled" else Status.HELD)


# Many requests

MANY = "polls-bounded"


def polled(waiting: int, answered_after: float | None) -> Tale:
    """So many requests wait; one more is answered after so long, or never."""
    t = Reading()
    for number in range(waiting + 1):
        t.ask(number + 2, f"r{number}", JOB)
    if answered_after is not None:
        t.wait(answered_after).answer(2, f"r{waiting}")
    t.wait(5)
    for number in range(waiting):
        t.answer(number + 3, f"r{number}")
    t.end()
    return t


@pytest.mark.req("CHAT-070")
@pytest.mark.parametrize("after", [2.0, None])
def test_a_further_request_is_held(after: float | None) -> None:
    found = polled(16, after).violation(MANY)
    assert (found.seen, found.due) == (
        "a request held while 16 others wait",
        "rate_limited at once: 16 wait at most",
    )


@pytest.mark.parametrize(("waiting", "after", "word"), [(16, 0.2, Status.HELD), (15, None, Status.NOTHING)])
def test_a_further_request_is_refused_or_was_none(waiting: int, after: float | None, word: Status) -> None:
    assert polled(waiting, after).status(MANY) is word


def test_requests_that_were_answered_wait_no_more() -> None:
    t = Reading()
    for number in range(20):
        t.ask(number + 2, f"r{number}", JOB)
        t.wait(0.1).answer(number + 2, f"r{number}")
    t.wait(5).end()
    assert t.status(MANY) is Status.NOTHING


@pytest.mark.parametrize("why", ["cut", "ended"])
def test_whether_it_was_held_cannot_be_told(why: str) -> None:
    t = Reading()
    for number in range(17):
        t.ask(number + 2, f"r{number}", JOB)
    if why == "cut":
        t.wait(0.1).add(LinkChanged("gateway", "cut"), "link")
        t.wait(5)
    t.end()
    assert t.status(MANY) is Status.UNKNOWN
