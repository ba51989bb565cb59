from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from lab.errors import EnvironmentFault, MisuseError, StateFault
from lab.partner.model.state import SEAL_KEY_BYTES, State

KEY = bytes(SEAL_KEY_BYTES)
_NUMBERS = count()


def nonce(size: int) -> bytes:
    return next(_NUMBERS).to_bytes(size, "big")


def opened(path: Path | None = None, key: bytes = KEY) -> State:
    return State(path, key, nonce)


@pytest.fixture
def state() -> Iterator[State]:
    held = opened()
    yield held
    held.close()


class _Stop(Exception):
    pass


def test_what_a_transaction_wrote_counts_together_or_not_at_all(state: State) -> None:
    with suppress(_Stop), state.transaction():
        state.set_meta("a", "1")
        with state.transaction():
            state.set_meta("b", "1")
        raise _Stop
    assert (state.meta("a"), state.meta("b")) == (None, None)
    with state.transaction():
        state.set_meta("a", "2")
    assert state.meta("a") == "2"


def test_a_failure_inside_of_an_inner_transaction_undoes_the_outer_one(state: State) -> None:
    with suppress(_Stop), state.transaction():
        state.set_meta("a", "1")
        with state.transaction():
            raise _Stop
    assert state.meta("a") is None


@pytest.mark.req("CX-016", "CX-035", "PRIV-002")
def test_a_sealed_grant_opens_with_its_key_alone(state: State) -> None:
    sealed = state.seal("tg1.grant")
    assert b"grant" not in sealed
    assert sealed != state.seal("tg1.grant")
    assert state.unseal(sealed) == "tg1.grant"
    other = opened(key=b"\x01" * SEAL_KEY_BYTES)
    try:
        with pytest.raises(EnvironmentFault):
            other.unseal(sealed)
    finally:
        other.close()


def test_a_file_and_what_lies_beside_it_are_private_and_survive(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch(mode=0o644)
    first = opened(path)
    first.set_meta("a", "kept")
    files = sorted(entry.name for entry in tmp_path.iterdir())
    assert files == ["state.db", "state.db-shm", "state.db-wal"]
    assert [entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()] == [0o600] * 3
    first.close()
    second = opened(path)
    assert second.meta("a") == "kept"
    second.close()


def test_what_no_transaction_committed_is_gone_after_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = opened(path)
    with suppress(_Stop), first.transaction():
        first.set_meta("a", "1")
        raise _Stop
    first.close()
    second = opened(path)
    assert second.meta("a") is None
    second.close()


@pytest.mark.req("PA-026", "PRIV-012")
def test_what_was_erased_is_in_no_file_any_more(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    state = opened(path)
    state.set_meta("secret", "m4rker" * 50)
    state.run("DELETE FROM meta WHERE name = 'secret'")
    state.forget_erased()
    assert all(b"m4rker" not in entry.read_bytes() for entry in tmp_path.iterdir())
    state.close()


def test_a_place_that_holds_something_else_is_named(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database, but long enough to be looked at " * 10)
    with pytest.raises(EnvironmentFault, match=r"notes\.txt cannot be opened as a database"):
        opened(other)
    with pytest.raises(EnvironmentFault):
        opened(tmp_path)


def test_a_count_is_one_number(state: State) -> None:
    assert state.count("SELECT COUNT(*) FROM meta") == 0
    with pytest.raises(MisuseError):
        state.count("SELECT value FROM meta")


def test_changes_tell_of_every_row_that_is_written_and_of_no_query(state: State) -> None:
    seen = [state.changes]

    def look() -> None:
        assert state.changes not in seen
        seen.append(state.changes)

    state.set_meta("a", "1")
    look()
    state.set_meta("a", "2")
    look()
    with state.transaction():
        state.set_meta("b", "1")
    look()
    state.rows("SELECT * FROM meta")
    assert state.run("DELETE FROM meta WHERE name = 'none'") == 0
    assert state.changes == seen[-1]
    state.run("DELETE FROM meta")
    look()


def write_much(state: State) -> None:
    with state.transaction():
        state.set_meta("a", "after")
        state.set_meta("b", "x" * 100_000)


def test_a_full_disk_is_told_in_a_sentence_and_undoes_its_transaction(tmp_path: Path) -> None:
    """What was written before stays, and there is room again for a later one."""
    state = opened(tmp_path / "s.sqlite")
    try:
        state.set_meta("a", "before")
        pages = state.count("PRAGMA page_count")
        state.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StateFault, match=r"cannot be kept: the disk is full\. .* by --state of"):
            write_much(state)
        assert (state.meta("a"), state.meta("b")) == ("before", None)
        state.rows("PRAGMA max_page_count = 10000")
        write_much(state)
        assert state.meta("a") == "after"
    finally:
        state.close()


def test_a_state_that_another_has_is_no_defect(tmp_path: Path) -> None:
    state, other = opened(tmp_path / "s.sqlite"), opened(tmp_path / "s.sqlite")
    try:
        state.rows("PRAGMA busy_timeout = 0")
        with other.transaction():
            for write in (lambda: state.run("BEGIN IMMEDIATE"), lambda: state.set_meta("a", "1")):
                with pytest.raises(StateFault, match="another process holds it"):
                    write()
    finally:
        state.close()
        other.close()


def test_a_wrong_statement_stays_a_defect(state: State) -> None:
    for ask in (state.run, state.row, state.rows):
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            ask("SELECT * FROM nowhere")
