"""A run's clock and dice."""

from __future__ import annotations

import re

import pytest

from lab.clock import timestamp, wall_ms
from lab.draws import Draws
from lab.journal.events import Defect
from tests.run.made import context

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def test_lab_time_begins_at_zero() -> None:
    """Whatever the loop's clock says."""
    loop = [812.5]
    ctx = context(lambda: loop[0])
    assert ctx.now() == 0.0
    loop[0] += 2.25
    assert ctx.now() == 2.25
    assert ctx.clock.loop_time(4.0) == 816.5
    assert ctx.wall_ms() == 1_700_000_002_250


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
        (1_709_210_096_999, "2024-02-29T12:34:56.999Z"),
        (4_102_444_799_040, "2099-12-31T23:59:59.040Z"),
    ],
)
def test_timestamps_have_milliseconds_and_a_z(ms: int, text: str) -> None:
    """RFC 3339 in UTC."""
    assert timestamp(ms) == text


def test_wall_time_follows_lab_time() -> None:
    """To the millisecond below."""
    assert wall_ms(1000, 1.9999) == 2999


def test_one_seed_gives_one_stream() -> None:
    """The same bytes, however they are taken."""
    assert Draws(7, "a", "b").bytes(200) == Draws(7, "a", "b").bytes(200)
    assert len(Draws(7, "a", "b").bytes(3)) == 3


def test_streams_of_other_names_are_independent() -> None:
    """Seed, actor and purpose each make another stream, also where their texts together are the same."""
    names = [(7, "a", "b"), (8, "a", "b"), (7, "b", "b"), (7, "a", "c"), (7, "ab", ""), (7, "", "ab"), (77, "a", "b")]
    assert len({Draws(*name).bytes(32) for name in names}) == len(names)


def test_a_further_stream_shifts_no_other() -> None:
    """Draws of one are what they are without the other."""
    alone = Draws(7, "gateway", "ids")
    expected = [alone.uuid() for _ in range(5)]
    one, other = Draws(7, "gateway", "ids"), Draws(7, "agent", "ids")
    mixed = []
    for _ in range(5):
        other.uuid()
        mixed.append(one.uuid())
    assert mixed == expected


@pytest.mark.req("WS-004")
def test_ids_are_lower_case_uuids_and_differ() -> None:
    """Version 4 by their form."""
    draws = Draws(7, "driver", "ids")
    ids = [draws.uuid() for _ in range(500)]
    assert all(UUID.fullmatch(text) for text in ids)
    assert len(set(ids)) == 500


def test_tokens_are_43_characters_and_differ() -> None:
    """32 bytes in base64url, without padding."""
    draws = Draws(7, "agent", "cursor")
    tokens = [draws.token() for _ in range(500)]
    assert all(TOKEN.fullmatch(text) for text in tokens)
    assert len(set(tokens)) == 500


def test_fractions_fill_the_unit_interval() -> None:
    """From 0, below 1, on both halves."""
    draws = Draws(7, "agent", "dice")
    rolls = [draws.fraction() for _ in range(500)]
    assert all(0.0 <= roll < 1.0 for roll in rolls)
    assert 150 < sum(roll < 0.5 for roll in rolls) < 350


def test_secrets_do_not_follow_from_the_seed() -> None:
    """Two runs with one seed share their ids and none of their tokens."""
    from lab.context import RunContext

    base = context()
    runs = [RunContext(1, base.clock, base.journal, secret_seed=number) for number in (5, 6)]
    assert len({run.draws("a", "id").uuid() for run in runs}) == 1
    assert len({run.secret_draws("a", "token").token() for run in runs}) == 2
    assert base.secret_draws("a", "x").token() == base.draws("a", "x").token()


def test_a_defect_is_kept_and_told() -> None:
    """By the name of its class only: its text may hold anything."""
    ctx = context()
    error = ValueError("the prompt")
    ctx.fail(error)
    assert ctx.defects == [error]
    assert [entry.event for entry in ctx.journal.entries] == [Defect("ValueError")]
