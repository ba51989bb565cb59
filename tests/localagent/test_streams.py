import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.draws import Draws
from lab.localagent import streams
from lab.localagent.streams import MAX_PAGE_BYTES, NotFound, Page, StreamBook, TooSmall, Wait, encode_page
from tests.localagent.doubles import JOB, JOB_B, WORKSPACE

CURSOR = re.compile(r"[A-Za-z0-9_-]{43}")


def book_of(lines: list[str], *, closed: bool, **bounds: int) -> StreamBook:
    book = StreamBook(Draws(7, "agent", "cursors"), **bounds)
    book.open(JOB, WORKSPACE)
    for line in lines:
        book.append(JOB, line)
    if closed:
        book.close(JOB)
    return book


def page(book: StreamBook, ref: str, max_bytes: int = MAX_PAGE_BYTES) -> Page:
    found = book.page(ref, max_bytes)
    assert isinstance(found, Page)
    return found


def drained(book: StreamBook, max_bytes: int = MAX_PAGE_BYTES) -> list[Page]:
    """All pages of a closed stream."""
    pages = [page(book, JOB, max_bytes)]
    while not pages[-1].done:
        pages.append(page(book, pages[-1].next_ref, max_bytes))
    return pages


@pytest.mark.req("CHAT-032", "CHAT-034")
def test_the_body_of_a_page() -> None:
    found = page(book_of(["a", 'é"'], closed=True), JOB)
    assert CURSOR.fullmatch(found.next_ref)
    assert json.loads(encode_page(found)) == {
        "events": [{"i": 0, "e": "a"}, {"i": 1, "e": 'é"'}],
        "nextRef": found.next_ref,
        "done": True,
    }


@pytest.mark.req("CHAT-033", "CHAT-035", "CHAT-040", "CHAT-041", "CHAT-049")
@given(st.lists(st.text(min_size=1, max_size=40), max_size=40), st.integers(420, 900))
def test_pages_join_to_the_stream(lines: list[str], max_bytes: int) -> None:
    pages = drained(book_of(lines, closed=True), max_bytes)
    events = [event for found in pages for event in found.events]
    assert [(event.i, event.e) for event in events] == list(enumerate(lines))
    assert all(len(encode_page(found)) <= max_bytes for found in pages)
    assert [found.done for found in pages] == [False] * (len(pages) - 1) + [True]


@pytest.mark.req("CHAT-033")
def test_at_most_512_events() -> None:
    pages = drained(book_of(["x"] * 1025, closed=True))
    assert [len(found.events) for found in pages] == [512, 512, 1]


@pytest.mark.req("CHAT-049")
def test_at_most_2_mib_and_as_many_as_fit() -> None:
    pages = drained(book_of(["x" * 16000] * 300, closed=True))
    assert [len(found.events) for found in pages] == [130, 130, 40]
    assert all(len(encode_page(found)) <= 2 * 1024 * 1024 for found in pages)


def test_an_exact_fit() -> None:
    book = book_of(["ab"], closed=True)
    size = len(encode_page(page(book, JOB)))
    # `false` is what a page is reserved for; `true` is one character shorter.
    assert len(page(book, JOB, size + 1).events) == 1
    assert book.page(JOB, size) == TooSmall()


@pytest.mark.req("CHAT-046", "SEC-018")
def test_cursors_are_idempotent_and_tell_nothing() -> None:
    book = book_of(["a", "b"], closed=False)
    first = page(book, JOB)
    assert book.page(first.next_ref) == Wait(JOB, recorded=True)
    book.append(JOB, "c")
    again = page(book, first.next_ref)
    assert again == page(book, first.next_ref)
    assert [event.e for event in again.events] == ["c"]
    other = StreamBook(Draws(8, "agent", "cursors"))
    other.open(JOB, WORKSPACE, ["a", "b"])
    assert page(other, JOB).next_ref != first.next_ref


@pytest.mark.req("CHAT-041")
def test_after_done_nothing_comes() -> None:
    book = book_of(["a"], closed=True)
    last = page(book, JOB)
    after = page(book, last.next_ref)
    assert (after.events, after.done) == ((), True)


@pytest.mark.req("CHAT-041")
def test_done_waits_for_the_end() -> None:
    book = book_of(["a"], closed=False)
    first = page(book, JOB)
    assert not first.done
    book.close(JOB)
    assert page(book, first.next_ref).done


@pytest.mark.req("CHAT-043")
def test_an_unknown_cursor() -> None:
    assert book_of([], closed=True).page("x" * 43) == NotFound()


def test_a_job_without_a_record_waits_until_someone_knows_better() -> None:
    book = book_of([], closed=True)
    assert book.page(JOB_B) == Wait(JOB_B, recorded=False)
    empty = book.empty_page(JOB_B)
    assert (empty.events, empty.done) == ((), False)
    book.open(JOB_B, WORKSPACE, ["late"])
    assert [event.e for event in page(book, empty.next_ref).events] == ["late"]


def test_the_oldest_cursors_and_closed_records_are_forgotten() -> None:
    book = book_of(["a"] * 3, closed=True, max_cursors=2, max_records=2)
    cursors = [book.cursor(JOB, position) for position in range(3)]
    assert book.page(cursors[0]) == NotFound()
    assert page(book, cursors[1]).events
    book.open(JOB_B, WORKSPACE)
    book.open("other", WORKSPACE)
    assert not book.knows(JOB)
    assert book.knows(JOB_B)
    assert book.workspace_of(JOB) is None


def test_a_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_RECORD_CHARS", 10)
    book = book_of(["x" * 6, "y" * 6], closed=False)
    assert book.is_full(JOB)
    assert [event.e for event in page(book, JOB).events] == ["x" * 6, '{"type":"truncated"}']


def test_watchers_hear_of_every_change_until_they_stop() -> None:
    book = book_of([], closed=False)
    heard: list[str] = []
    stop = book.watch(JOB, lambda: heard.append("one"))
    book.watch(JOB, lambda: heard.append("two"))
    book.append(JOB, "a")
    stop()
    book.close(JOB)
    assert heard == ["one", "two", "two"]
