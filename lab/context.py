"""What a run gives to its parts in place of the wall clock, the system's dice and fresh ids.

Nothing below this module reads a clock or draws a number by itself, so one seed gives one run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lab.journal.events import Defect

if TYPE_CHECKING:
    from lab.journal.writer import Journal

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
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


class Draws:
    """A named sub-stream of a run's chance: draw n is blake2b(seed, actor, purpose, n).

    A further actor or purpose does not shift what the others draw.
    """

    def __init__(self, seed: int, actor: str, purpose: str) -> None:
        self._key = f"{seed}\x00{actor}\x00{purpose}".encode()
        self._index = 0

    def bytes(self, size: int) -> bytes:
        """`size` bytes."""
        block = b""
        while len(block) < size:
            block += hashlib.blake2b(self._key + b"\x00%d" % self._index, digest_size=64).digest()
            self._index += 1
        return block[:size]

    def uuid(self) -> str:
        """A lower-case UUID (WS-004)."""
        raw = bytearray(self.bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def token(self) -> str:
        """43 characters of base64url: 32 bytes nobody can guess (CHAT-034)."""
        return base64.urlsafe_b64encode(self.bytes(32)).rstrip(b"=").decode()

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return int.from_bytes(self.bytes(7), "big") / (1 << 56)


class RunContext:
    """A run's clock, seed and journal, handed to every double, link and reference SUT."""

    def __init__(self, seed: int, clock: Clock, journal: Journal, secret_seed: int | None = None) -> None:
        self.seed = seed
        self._secret_seed = seed if secret_seed is None else secret_seed
        self.clock = clock
        self.journal = journal
        self.defects: list[BaseException] = []
        """Errors that nobody caused on purpose: defects of the lab. A run with one ends with exit status 3."""

    def draws(self, actor: str, purpose: str) -> Draws:
        """A fresh sub-stream; whoever asks keeps it, since asking again starts it again."""
        return Draws(self.seed, actor, purpose)

    def secret_draws(self, actor: str, purpose: str) -> Draws:
        """A sub-stream for tokens and keys: on the real clock nobody who knows the run's seed can guess it."""
        return Draws(self._secret_seed, actor, purpose)

    def fail(self, defect: BaseException) -> None:
        """Note a defect, and tell whoever waits for the journal."""
        self.defects.append(defect)
        self.journal.record("run", Defect(type(defect).__name__))

    def now(self) -> float:
        """Lab time in seconds."""
        return self.clock.now()

    def wall_ms(self) -> int:
        """Milliseconds since 1970 UTC."""
        return wall_ms(self.clock.epoch_ms, self.clock.now())
