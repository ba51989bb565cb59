"""Following a stream: pages put together, and pages that are none."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.gateway.follow import LARGEST_INDEX, MOST_ODD, BadPage, Follower

JOB = "0b0b0b0b-0000-4000-8000-00000000000b"


def page(start: int, *texts: str, ref: str = "next", done: bool = False) -> bytes:
    events = [{"i": start + number, "e": text} for number, text in enumerate(texts)]
    return json.dumps({"events": events, "nextRef": ref, "done": done}).encode()


@pytest.mark.req("CP-026", "CHAT-035")
def test_a_stream_is_asked_for_by_its_job_and_then_by_the_last_ref() -> None:
    follower = Follower(JOB)
    assert follower.ref == JOB
    assert follower.take(page(0, "a", "b", ref="r1")) == 2
    assert (follower.ref, follower.done) == ("r1", False)
    assert follower.take(page(2, ref="r2")) == 0
    assert follower.take(page(2, "c", ref="r3", done=True)) == 1
    assert (follower.events, follower.ref, follower.done) == (["a", "b", "c"], "r3", True)
    assert (follower.pages, follower.empty_pages, follower.odd) == (3, 1, [])


@pytest.mark.req("CP-027")
def test_an_event_that_was_there_is_not_taken_twice() -> None:
    follower = Follower(JOB)
    follower.take(page(0, "a", "b"))
    assert follower.take(page(1, "b", "c")) == 1
    assert follower.events == ["a", "b", "c"]
    assert follower.odd == ["event 1 where 2 was due"]


def test_a_gap_is_noted_and_not_closed() -> None:
    follower = Follower(JOB)
    assert follower.take(page(1, "b")) == 0
    assert (follower.events, follower.odd) == ([], ["event 1 where 0 was due"])


def test_what_is_out_of_place_is_kept_up_to_a_bound() -> None:
    follower = Follower(JOB)
    follower.take(page(7, *["x"] * (MOST_ODD + 5)))
    assert len(follower.odd) == MOST_ODD


def body(**members: Any) -> bytes:
    value = {"events": [], "nextRef": "r", "done": False, **members}
    return json.dumps({name: item for name, item in value.items() if item is not ...}).encode()


SECRET = "canary-1234"


@pytest.mark.req("SEC-009")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        SECRET.encode(),
        b"[]",
        b"null",
        b"[" * 100_000,
        body(events=...),
        body(nextRef=...),
        body(done=...),
        body(events=3),
        body(events=SECRET),
        body(events={SECRET: 1}),
        body(events=[SECRET]),
        body(events=[{"i": 0}]),
        body(events=[{"e": SECRET}]),
        body(events=[{"i": "0", "e": SECRET}]),
        body(events=[{"i": True, "e": SECRET}]),
        body(events=[{"i": 0.0, "e": SECRET}]),
        body(events=[{"i": -1, "e": SECRET}]),
        body(events=[{"i": LARGEST_INDEX + 1, "e": SECRET}]),
        body(events=[{"i": 0, "e": None}]),
        body(nextRef=7),
        body(done="yes"),
    ],
)
def test_a_body_that_is_no_page_is_refused_without_a_word_of_it(raw: bytes) -> None:
    follower = Follower(JOB)
    with pytest.raises(BadPage) as caught:
        follower.take(raw)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert (follower.events, follower.pages, follower.ref) == ([], 0, JOB)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page_or_a_bad_page(raw: bytes) -> None:
    with contextlib.suppress(BadPage):
        Follower(JOB).take(raw)
