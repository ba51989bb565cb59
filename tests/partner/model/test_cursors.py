from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.partner.model.cursors import Cursors, Position
from lab.partner.model.words import CURSOR_CHARACTERS

CURSORS = Cursors(b"k" * 32)
HERE = "conversation-1"

positions = st.builds(Position, st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))


@pytest.mark.req("HIS-027")
@given(positions, st.text(max_size=40))
def test_a_cursor_brings_its_position_back(position: Position, conversation: str) -> None:
    cursor = CURSORS.write(conversation, position)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
    assert len(cursor) <= CURSOR_CHARACTERS
    assert CURSORS.read_untrusted(cursor, conversation) == position


@pytest.mark.req("HIS-028")
@given(positions)
def test_a_cursor_is_of_one_conversation_and_one_key(position: Position) -> None:
    cursor = CURSORS.write(HERE, position)
    assert CURSORS.read_untrusted(cursor, "conversation-2") is None
    assert Cursors(b"l" * 32).read_untrusted(cursor, HERE) is None


@pytest.mark.req("HIS-028")
@given(positions, st.data())
def test_no_altered_cursor_is_taken(position: Position, data: st.DataObject) -> None:
    cursor = CURSORS.write(HERE, position)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("AZaz09-_").filter(lambda letter: letter != cursor[at]))
    assert CURSORS.read_untrusted(cursor[:at] + other + cursor[at + 1 :], HERE) is None
    assert CURSORS.read_untrusted(cursor[:at], HERE) is None
    assert CURSORS.read_untrusted(cursor + "A", HERE) is None


@given(positions)
def test_a_cursor_has_one_writing(position: Position) -> None:
    cursor = CURSORS.write(HERE, position)
    other = cursor.replace("-", "+").replace("_", "/")
    assert (CURSORS.read_untrusted(other, HERE) is None) == (other != cursor)
    assert CURSORS.read_untrusted(cursor + "=", HERE) is None


@example("é" * 44)
@given(st.text(max_size=600))
def test_no_text_is_too_odd(text: str) -> None:
    assert CURSORS.read_untrusted(text, HERE) is None
