from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.agent2.feed import Breaks, Feed, Reader


def test_a_reader_that_has_everything_of_a_feed_that_is_over_has_ended() -> None:
    feed = Feed(["a", "b"])
    reader = Reader(feed)
    assert reader.take() == ("a", "b")
    assert not reader.ended
    feed.over = True
    assert reader.ended


@pytest.mark.parametrize(
    ("after", "takes"),
    [(0, [()]), (1, [("a",)]), (2, [("a", "b")]), (3, [("a", "b"), ("c",)]), (4, [("a", "b"), ("c",)])],
)
def test_a_stream_breaks_after_so_many_items(after: int, takes: list[tuple[str, ...]]) -> None:
    feed = Feed(["a", "b"])
    reader = Reader(feed, Breaks(after, 1))
    seen = [reader.take()]
    if not reader.broken:
        feed.items.append("c")
        feed.over = True
        seen.append(reader.take())
    assert seen == takes
    assert reader.broken is (after <= 3)
    assert reader.ended is (after == 4)


def test_breaks_are_shared_by_the_readers_and_used_up() -> None:
    feed = Feed(["a", "b"], over=True)
    breaks = Breaks(1, 2)
    seen = []
    for _ in range(3):
        reader = Reader(feed, breaks)
        seen.append((reader.take(), reader.broken, reader.ended))
    assert seen == [(("a",), True, False), (("a",), True, False), (("a", "b"), False, True)]


@pytest.mark.req("A2-038", "A2-060")
@settings(deadline=None)
@given(st.lists(st.one_of(st.just("produce"), st.just("open"), st.integers(0, 5))))
def test_every_reader_sees_the_same_from_the_start(moves: list[str | int]) -> None:
    feed: Feed[int] = Feed()
    readers: list[tuple[Reader[int], list[int]]] = []
    for move in moves:
        if move == "produce":
            feed.items.append(len(feed.items))
        elif move == "open":
            readers.append((Reader(feed), []))
        elif isinstance(move, int) and move < len(readers):
            reader, seen = readers[move]
            seen.extend(reader.take())
        for reader, seen in readers:
            assert seen == feed.items[: reader.position]
    feed.over = True
    for reader, seen in [*readers, (Reader(feed), [])]:
        seen.extend(reader.take())
        assert (seen, reader.ended) == (feed.items, True)
