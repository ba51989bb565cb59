"""Sessions and the streams that they keep."""

from __future__ import annotations

import itertools

from lab.store.sessions import KEPT_BYTES, KEPT_SESSIONS, KEPT_STREAMS, Sessions


def sessions() -> Sessions:
    numbers = itertools.count()
    return Sessions(lambda: f"s{next(numbers)}")


def test_a_session_is_found_until_it_ends() -> None:
    kept = sessions()
    one, other = kept.open("v"), kept.open("v")
    assert kept.find("s0") is one
    kept.end(one)
    kept.end(one)
    assert (kept.find("s0"), one.over, other.over) == (None, True, False)
    assert (kept.end_all(), kept.end_all(), other.over) == (1, 0, True)


def test_the_oldest_of_too_many_sessions_ends() -> None:
    kept = sessions()
    first = kept.open("v")
    for _ in range(KEPT_SESSIONS):
        kept.open("v")
    assert (first.over, kept.find("s0"), kept.end_all()) == (True, None, KEPT_SESSIONS)


def test_the_events_after_one_are_those_of_its_stream() -> None:
    session = sessions().open("v")
    ids = [event_id for event_id, _ in session.number([b"a", b"b", b"c"])]
    session.number([b"d"])
    assert session.after_untrusted(ids[0]) == [(ids[1], b"b"), (ids[2], b"c")]
    assert session.after_untrusted(ids[2]) == []
    for wrong in ("1-3", "3-0", "0-0", "", "x", "1", "1-", "-1-0", "1-0\n", "9" * 30 + "-0"):
        assert session.after_untrusted(wrong) is None


def test_the_oldest_of_too_many_streams_is_forgotten() -> None:
    session = sessions().open("v")
    first = session.number([b"a"])[0][0]
    for _ in range(KEPT_STREAMS):
        last = session.number([b"b"])[0][0]
    assert (session.after_untrusted(first), session.after_untrusted(last)) == (None, [])


def test_streams_of_too_many_bytes_are_forgotten_from_the_oldest() -> None:
    session = sessions().open("v")
    half = b"x" * (KEPT_BYTES // 2)
    first, second = (session.number([b"", half])[0][0] for _ in range(2))
    assert session.after_untrusted(first)
    third = session.number([b"", b"x"])[0][0]
    assert [bool(session.after_untrusted(one)) for one in (first, second, third)] == [False, True, True]
    huge = session.number([b"", half * 3])[0][0]
    assert [bool(session.after_untrusted(one)) for one in (second, third, huge)] == [False, False, True]
    last = session.number([b"", b"x"])[0][0]
    assert [bool(session.after_untrusted(one)) for one in (huge, last)] == [False, True]
