"""Output is cut into lines, judged from its bytes, masked, and kept within bounds."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.journal.events import SutOutput, digest
from lab.sut.masking import MASK
from lab.sut.output import LAST_LINES, LineCutter, OutputBounds, OutputRecord

TOKEN = "token-of-the-gateway"
CANARY = "canary-value-0001"
SMALL = OutputBounds(line_bytes=32, total_bytes=400, lines=50)


class Kept:
    """A record with all that it keeps in reach."""

    def __init__(self, bounds: OutputBounds = SMALL) -> None:
        self.log = io.StringIO()
        self.events: list[SutOutput] = []
        self.record = OutputRecord("agent", self.log, lambda: 1.5, self.events.append, [TOKEN], {"c1": CANARY}, bounds)
        self.cutter = LineCutter("out", self.record)

    def feed(self, *parts: bytes) -> Kept:
        for part in parts:
            self.cutter.feed(part)
        self.cutter.end()
        return self

    def lines(self) -> list[str]:
        return self.log.getvalue().splitlines()


def test_each_line_is_logged_with_time_and_stream_and_journalled_as_digest() -> None:
    kept = Kept().feed(b"one\ntwo\r\nlast")
    assert kept.lines() == ["1.500 out one", "1.500 out two\\x0d", "1.500 out last"]
    assert [event.line for event in kept.events] == [digest("sut.output", line) for line in (b"one", b"two\r", b"last")]


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_how_bytes_are_split_over_reads_changes_nothing(parts: list[bytes]) -> None:
    whole = Kept().feed(b"".join(parts))
    split = Kept().feed(*parts)
    assert (split.log.getvalue(), split.events) == (whole.log.getvalue(), whole.events)


@pytest.mark.req("SEC-015")
@pytest.mark.parametrize("cut", range(len(TOKEN) + 1))
def test_a_secret_split_over_two_reads_is_hidden(cut: int) -> None:
    kept = Kept().feed(b"a " + TOKEN[:cut].encode(), TOKEN[cut:].encode() + b" b\n")
    assert kept.lines() == [f"1.500 out a {MASK} b"]
    assert kept.record.last_lines() == (f"a {MASK} b",)


@pytest.mark.req("SEC-015")
@pytest.mark.parametrize("before", range(10, 40))
def test_a_long_line_is_cut_and_a_secret_across_the_cut_is_hidden(before: int) -> None:
    raw = b"x" * before + TOKEN.encode() + b"y" * 500
    kept = Kept().feed(raw + b"\n")
    (shown,) = kept.record.last_lines()
    assert (
        shown
        == "x" * min(before, 32)
        + (MASK if before < 32 else "")
        + ("y" * (12 - before) if before < 12 else "")
        + f" [{len(raw) - 32} more bytes]"
    )
    assert kept.events[0].line == digest("sut.output", raw)


@pytest.mark.parametrize("cut", range(len(CANARY) + 1))
def test_a_canary_is_found_before_it_is_hidden_also_far_beyond_the_cut(cut: int) -> None:
    kept = Kept().feed(b"x" * 5000 + CANARY[:cut].encode(), CANARY[cut:].encode() + b"x" * 5000 + b"\n")
    assert [event.canaries for event in kept.events] == [("c1",)]


def test_a_canary_is_hidden_in_what_is_kept() -> None:
    kept = Kept().feed(CANARY.encode() + b"\n")
    assert kept.lines() == [f"1.500 out {MASK}"]


def test_a_canary_is_not_found_across_two_lines() -> None:
    kept = Kept().feed(CANARY[:5].encode() + b"\n" + CANARY[5:].encode() + b"\n")
    assert [event.canaries for event in kept.events] == [(), ()]


@pytest.mark.parametrize("line", [b"x\n", b"0123456789012345678901234567890\n"])
def test_a_flood_ends_the_log_with_a_note(line: bytes) -> None:
    kept = Kept().feed(line * 1000)
    assert "no more is kept" in kept.lines()[-1]
    assert len(kept.events) == len(kept.lines()) - 1 <= SMALL.lines
    assert len(kept.log.getvalue()) < 2 * SMALL.total_bytes + SMALL.lines * len("1.500 out ")


def test_past_the_bounds_the_first_sight_of_a_canary_is_still_journalled() -> None:
    kept = Kept().feed(b"x\n" * 1000)
    before = len(kept.events)
    kept.feed(f"{CANARY}\n{CANARY}\n".encode())
    assert [event.canaries for event in kept.events[before:]] == [("c1",)]


def test_the_last_lines_are_kept_past_the_bounds() -> None:
    kept = Kept().feed(b"".join(b"%d\n" % i for i in range(1000)))
    assert kept.record.last_lines() == tuple(str(i) for i in range(1000 - LAST_LINES, 1000))


def test_a_terminal_is_not_commanded() -> None:
    kept = Kept().feed("\x1b]0;x\x07\x9b2J\ttab\n".encode())
    assert kept.record.last_lines() == ("\\x1b]0;x\\x07\\x9b2J\ttab",)
