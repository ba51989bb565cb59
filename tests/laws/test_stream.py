"""Nothing of a job's stream is lost, doubled or out of order, clause by clause."""

from __future__ import annotations

import pytest

from lab.journal.events import BodyAnswered, LinkChanged, LinkOpened, ParticipantDeclared
from lab.laws import Status
from tests.laws.journals import JOB, Tale, numbered_lines

LAW = "stream-complete"


def tale(lines: int = 6, given: bool = True) -> Tale:
    begun = Tale()
    begun.connect()
    begun.stream("opened")
    begun.lines(lines)
    if given:
        begun.stream("ended", lines)
    return begun


def test_pages_in_order_to_the_end() -> None:
    t = tale()
    t.page(JOB, numbered_lines(0, 4), "x1")
    t.page("x1", [], "x2")
    t.page("x2", numbered_lines(4, 2), "x3")
    t.page("x3", [], "x4", done=True)
    assert t.status(LAW) is Status.HELD
    assert t.judged(LAW).judgement.judged == 9


def test_a_page_that_is_read_again_after_done() -> None:
    t = tale(3)
    t.page(JOB, numbered_lines(0, 3), "x1", done=True)
    t.page(JOB, numbered_lines(0, 3), "x1", done=True)
    assert t.status(LAW) is Status.HELD


def test_an_event_without_a_position() -> None:
    t = tale()
    t.page(JOB, [(None, "line 0")], "x1")
    assert t.violation(LAW).seen == "event None too early: page 0 entry 0"


def test_the_same_ref_again_has_the_same_position() -> None:
    t = tale()
    t.page(JOB, numbered_lines(0, 2), "x1")
    t.page("x1", numbered_lines(2, 1), "x2")
    t.page("x1", numbered_lines(2, 4), "x3")
    t.page("x2", numbered_lines(3, 3), "x4", done=True)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CHAT-040", "CHAT-036")
def test_an_event_twice() -> None:
    t = tale()
    first = t.page(JOB, numbered_lines(0, 3), "x1")
    second = t.page("x1", numbered_lines(2, 1), "x2")
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == (
        "event 2 again: page 1 entry 0",
        "event 3 at page 1 entry 0",
        (first, second),
    )


@pytest.mark.req("CHAT-040")
def test_an_event_left_out() -> None:
    t = tale()
    n = t.page(JOB, [(0, "line 0"), (2, "line 2")], "x1")
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == (
        "event 2 too early: page 0 entry 1",
        "event 1 at page 0 entry 1",
        (n,),
    )


@pytest.mark.req("CHAT-035")
def test_a_stream_that_does_not_start_at_0() -> None:
    t = tale()
    n = t.page(JOB, numbered_lines(1, 2), "x1")
    assert t.violation(LAW).due == "event 0 at page 0 entry 0"
    assert t.violation(LAW).entries == (n,)


@pytest.mark.req("CHAT-027")
def test_another_text() -> None:
    t = tale()
    n = t.page(JOB, [(0, "line 0"), (1, "line 3")], "x1")
    found = t.violation(LAW)
    assert found.seen == "event 1 at page 0 entry 1 with line 3"
    assert found.due == "line 1 (fixtures/a.yaml:2) as agent2 wrote it"
    assert found.entries[-1] == n


@pytest.mark.req("CHAT-027")
def test_a_text_of_nobody() -> None:
    t = tale()
    t.page(JOB, [(0, "something")], "x1")
    assert t.violation(LAW).seen == "event 0 at page 0 entry 0 with other text"


@pytest.mark.parametrize("late", [True, False])
def test_an_event_that_agent2_had_not_written(late: bool) -> None:
    t = tale(1)
    n = t.page(JOB, numbered_lines(0, 2), "x1")
    if late:
        t.line(1)
    assert t.violation(LAW).entries == (n,)
    assert t.violation(LAW).seen == "event 1 at page 0 entry 1"


@pytest.mark.req("CHAT-025")
def test_a_secret_leaves_masked() -> None:
    t = tale(0)
    line = t.line(0, "Bearer abc", secret=True)
    n = t.page(JOB, [(0, "[masked]")], "x1")
    assert t.status(LAW) is Status.HELD
    t = tale(0)
    line = t.line(0, "Bearer abc", secret=True)
    n = t.page(JOB, [(0, "Bearer abc")], "x1")
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("event 0 at page 0 entry 0 unmasked", (line, n))


@pytest.mark.req("CHAT-048")
def test_an_empty_line_has_no_position_and_a_long_one_a_marker() -> None:
    t = tale(1)
    t.line(1, "")
    t.line(2, "x" * 16385)
    t.line(3, "end")
    t.page(JOB, [(0, "line 0"), (1, '{"type":"truncated"}'), (2, "end")], "x1", done=True)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CHAT-041")
def test_an_event_after_done() -> None:
    t = tale(3, given=False)
    done = t.page(JOB, numbered_lines(0, 2), "x1", done=True)
    n = t.page("x1", numbered_lines(2, 1), "x2")
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("no further event", (done, n))


@pytest.mark.req("CHAT-069")
def test_done_before_the_last_line() -> None:
    t = tale()
    n = t.page(JOB, numbered_lines(0, 5), "x1", done=True)
    found = t.violation(LAW)
    assert (found.seen, found.due) == ("done:true at page 0 after 5 events", "all 6 lines of agent2")
    assert found.entries[-1] == n


@pytest.mark.parametrize("why", ["never given", "cut", "delayed", "later", "other", "in part", "broken"])
def test_what_the_agent_could_not_read_it_need_not_have(why: str) -> None:
    t = Tale()
    t.connect()
    t.stream("opened")
    t.lines(6)
    if why == "cut":
        t.wait(1).add(LinkChanged("agent2", "cut"))
    elif why == "delayed":
        t.wait(1).add(LinkChanged("agent2", "delayed", 4))
    t.wait(1)
    if why == "never given":
        t.stream("broken", 2)
    elif why == "broken":
        t.stream("broken", 6)
    elif why == "in part":
        t.stream("ended", 5)
    elif why == "other":
        t.stream("ended", 6, stream="events")
    elif why != "later":
        t.stream("ended", 6)
    t.page(JOB, [], "x1", done=True)
    t.stream("ended", 6)
    judged = t.judged(LAW).judgement
    assert judged.status is Status.HELD
    assert judged.judged == 1


@pytest.mark.req("CHAT-046")
def test_a_cut_before_the_gateway_excuses_no_line_that_agent2_gave() -> None:
    t = Tale()
    t.add(ParticipantDeclared("a2", "agent2", "double"))
    t.add(LinkOpened("front", "gw"))
    t.add(LinkOpened("back", "a2"))
    t.connect()
    t.assign()
    t.stream("opened")
    t.lines(3)
    t.wait(1).add(LinkChanged("front", "cut"))
    t.wait(1).add(LinkChanged("front", "healed"))
    t.stream("ended", 3)
    done = t.page(JOB, numbered_lines(0, 2), "x1", done=True)
    assert done in t.violation("stream-complete").entries


def test_a_cursor_for_two_positions() -> None:
    t = tale()
    first = t.page(JOB, numbered_lines(0, 2), "x1")
    again = t.page("x1", numbered_lines(2, 2), "x1")
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("the nextRef of page 1 stands for events 2 and 4", (first, again))


@pytest.mark.req("CHAT-032", "CHAT-033", "CHAT-034")
def test_a_page_that_breaks_its_schema() -> None:
    t = tale()
    n = t.page(JOB, numbered_lines(0, 2), "x1", schema={"keyword": "required", "path": ""})
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("page 0 breaks its schema at the body (required)", (n,))


def test_a_page_of_an_unknown_cursor() -> None:
    t = tale()
    t.page("elsewhere", numbered_lines(4, 2), "x1")
    assert t.status(LAW) is Status.UNKNOWN


def test_a_stream_of_an_agent2_that_the_lab_does_not_see() -> None:
    t = Tale()
    t.connect()
    t.page(JOB, numbered_lines(0, 2), "x1", done=True)
    assert t.status(LAW) is Status.HELD
    t.page(JOB, numbered_lines(1, 1), "x2")
    assert t.status(LAW) is Status.BROKEN


def test_answers_that_are_no_page_are_left_alone() -> None:
    t = tale()
    for content, status in (("chat.session", "ok"), ("job.stream", "not_found")):
        t.add(BodyAnswered("c1", JOB, content, "r", JOB, status, 0, "00"))
    assert t.status(LAW) is Status.NOTHING


def test_an_early_stop() -> None:
    t = tale()
    t.page(JOB, numbered_lines(0, 2), "x1")
    t.end("interrupted")
    assert t.status(LAW) is Status.HELD
