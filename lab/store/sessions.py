"""Sessions of the wire of 2025, and what of their streams can be asked for again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

KEPT_SESSIONS = 1024
KEPT_STREAMS = 64
"""Of a session; older ones, like older sessions, are forgotten."""
KEPT_BYTES = 2 << 20
"""Of a session's streams; the newest is kept, however long it is."""

_EVENT_ID = re.compile(r"(\d{1,9})-(\d{1,9})")


class Session:
    """A client's session. `listened` tells whether its own stream is open; `over` that it has ended."""

    def __init__(self, session_id: str, version: str) -> None:
        self.session_id = session_id
        self.version = version
        self.over = False
        self.listened = False
        self._streams: dict[int, tuple[bytes, ...]] = {}
        self._count = 0
        self._bytes = 0

    def number(self, payloads: Sequence[bytes]) -> list[tuple[str, bytes]]:
        """Keep a stream of events; gives each with its id."""
        self._count += 1
        self._streams[self._count] = tuple(payloads)
        self._bytes += _size(payloads)
        while len(self._streams) > KEPT_STREAMS or (self._bytes > KEPT_BYTES and len(self._streams) > 1):
            self._bytes -= _size(self._streams.pop(next(iter(self._streams))))
        return [(f"{self._count}-{index}", payload) for index, payload in enumerate(payloads)]

    def after_untrusted(self, event_id: str) -> list[tuple[str, bytes]] | None:
        """The events of the same stream after this one; None for an id that was never given out."""
        found = _EVENT_ID.fullmatch(event_id)
        if found is None:
            return None
        stream, last = int(found[1]), int(found[2])
        payloads = self._streams.get(stream, ())
        if last >= len(payloads):
            return None
        return [(f"{stream}-{index}", payloads[index]) for index in range(last + 1, len(payloads))]


def _size(payloads: Sequence[bytes]) -> int:
    return sum(map(len, payloads))


class Sessions:
    """The sessions that live; `ids` gives ids that nobody can guess."""

    def __init__(self, ids: Callable[[], str]) -> None:
        self._ids = ids
        self._living: dict[str, Session] = {}

    def open(self, version: str) -> Session:
        """A new session."""
        session = Session(self._ids(), version)
        self._living[session.session_id] = session
        while len(self._living) > KEPT_SESSIONS:
            self.end(next(iter(self._living.values())))
        return session

    def find(self, session_id: str) -> Session | None:
        """The session of this id, while it lives."""
        return self._living.get(session_id)

    def end(self, session: Session) -> None:
        """It is known no longer."""
        self._living.pop(session.session_id, None)
        session.over = True

    def end_all(self) -> int:
        """Lose them all; how many there were."""
        count = len(self._living)
        for session in tuple(self._living.values()):
            self.end(session)
        return count
