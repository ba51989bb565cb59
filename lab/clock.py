"""Time as the lab counts it: seconds since a run began, and what stands on the wire for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Lab time: seconds since the run began, read from the event loop, so that it is right under both clocks."""

    def __init__(self, loop_time: Callable[[], float], epoch_ms: int) -> None:
        self._loop_time = loop_time
        self._start = loop_time()
        self.epoch_ms = epoch_ms
        """Wall time at lab time 0, in milliseconds since 1970 UTC; written to the journal once."""

    def now(self) -> float:
        """Lab time in seconds."""
        return self._loop_time() - self._start

    def loop_time(self, now: float) -> float:
        """The loop's time at lab time `now`: what `loop.call_at` wants."""
        return self._start + now


def wall_ms(epoch_ms: int, now: float) -> int:
    """Milliseconds since 1970 UTC at lab time `now`."""
    return epoch_ms + int(now * 1000)


def timestamp(ms: int) -> str:
    """RFC 3339 in UTC with milliseconds (WS-015)."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
