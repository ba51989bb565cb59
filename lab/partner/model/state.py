"""What the model remembers: one SQLite database, in memory or in a private file, with the grants sealed in it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from lab.errors import EnvironmentFault, MisuseError, StateFault
from lab.partner.model.tables import SCHEMA

SEAL_KEY_BYTES: Final = SecretBox.KEY_SIZE
NONCE_BYTES: Final = SecretBox.NONCE_SIZE

Value = str | int | float | bytes | None

_DISK: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not read or write",
    sqlite3.SQLITE_READONLY: "it can only be read",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened any more",
    sqlite3.SQLITE_PERM: "it may not be written",
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is no database any more",
}
"""What the machine can do to a state, by SQLite's primary code; every other error is the lab's own."""


class State:
    """The tables of `tables.py`, inline: no call waits for anything but the disk.

    `path` None keeps all in memory. Otherwise the file and what SQLite lays beside it can be read by their owner alone.
    `seal_key` seals the grants and is no part of the state (CX-035); `nonce` gives fresh bytes for each.
    Whatever reads or writes raises `StateFault` once the disk refuses.
    """

    def __init__(self, path: Path | None, seal_key: bytes, nonce: Callable[[int], bytes]) -> None:
        self._box = SecretBox(seal_key)
        self._nonce = nonce
        self._depth = 0
        self._path = path
        self._connection = _open(path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside counts together or not at all. One inside another is part of the outer one."""
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self.run("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # A disk that refuses has made SQLite roll back by itself.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise
        finally:
            self._depth = 0

    def run(self, sql: str, *values: Value) -> int:
        """Execute one statement that writes; how many rows it met."""
        try:
            return self._connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            self._judge(error)
            raise

    def row(self, sql: str, *values: Value) -> sqlite3.Row | None:
        """The first row of a query."""
        try:
            found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            self._judge(error)
            raise
        return found

    def rows(self, sql: str, *values: Value) -> list[sqlite3.Row]:
        """All rows of a query."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self._judge(error)
            raise

    def count(self, sql: str, *values: Value) -> int:
        """The number that a query gives as its only column."""
        found = self.row(sql, *values)
        if found is None or not isinstance(found[0], int):
            raise MisuseError(f"not one number: {sql}")
        return found[0]

    @property
    def changes(self) -> int:
        """Grows with each row that is written; outside of transactions, while it stands still all answers do."""
        return self._connection.total_changes

    def meta(self, name: str) -> str | None:
        """A fact about the state itself."""
        found = self.row("SELECT value FROM meta WHERE name = ?", name)
        return None if found is None else str(found["value"])

    def set_meta(self, name: str, value: str) -> None:
        """Write such a fact."""
        self.run("INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)

    def seal(self, grant: str) -> bytes:
        """A grant as it may lie in the state (CX-016)."""
        return bytes(self._box.encrypt(grant.encode(), self._nonce(NONCE_BYTES)))

    def unseal(self, sealed: bytes) -> str:
        """The grant again. A state whose key is another raises `EnvironmentFault`."""
        try:
            return self._box.decrypt(sealed).decode()
        except CryptoError as error:
            raise EnvironmentFault(
                "A stored grant does not open with the key beside the state. Use the key file that belongs to it."
            ) from error

    def forget_erased(self) -> None:
        """Let nothing that was erased stay behind in the write-ahead log (PA-026)."""
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def dump(self) -> str:
        """The whole state as SQL text: what a thief of it would read."""
        return "\n".join(self._connection.iterdump())

    def close(self) -> None:
        """Let go of the file. What no transaction has committed is gone."""
        self._connection.close()

    def _judge(self, error: sqlite3.Error) -> None:
        """Raise `StateFault` for an error that is the machine's; one that SQLite never saw has no code."""
        what = _DISK.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if what is not None:
            raise StateFault(
                f"The state {self._path or 'in memory'} cannot be kept: {what}. "
                "Give it room and rights, or another place: by --state of `lab serve partner`, by TMPDIR elsewhere."
            ) from error


def _open(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None:
            _make_private(path)
        # Transactions are this module's own.
        connection = sqlite3.connect(":memory:" if path is None else path, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path) from error
    try:
        connection.row_factory = sqlite3.Row
        # Erased rows are overwritten (PA-026).
        connection.execute("PRAGMA secure_delete = ON").fetchall()
        if path is not None:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(SCHEMA)
    except sqlite3.Error as error:
        connection.close()
        raise _unusable(path) from error
    return connection


def _make_private(path: Path) -> None:
    """SQLite gives the files beside a database the mode of the database."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _unusable(path: Path | None) -> EnvironmentFault:
    return EnvironmentFault(
        f"The state {path or 'in memory'} cannot be opened as a database. "
        "Name a writable place with no other file there, with --state."
    )
