"""What a job has produced, kept for every reader from the start (A2-060), and a reader's position in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Feed(Generic[T]):
    """Everything of one stream, in order; `over` once nothing more will come."""

    items: list[T] = field(default_factory=list)
    over: bool = False


@dataclass
class Breaks:
    """How often a stream still breaks, each time after `after` items."""

    after: int
    left: int


class Reader(Generic[T]):
    """One reader of a feed, from its start.

    Call `take` for what is new. Then, when `broken`, tear the connection; when `ended`, end it properly;
    otherwise wait for more.
    """

    def __init__(self, feed: Feed[T], breaks: Breaks | None = None) -> None:
        self._feed = feed
        self._breaks = breaks
        self.position = 0
        self.broken = False

    def take(self) -> tuple[T, ...]:
        """The items that came since the last call, up to the place where the stream is to break."""
        breaks = self._breaks
        end = len(self._feed.items)
        if breaks is not None and breaks.left > 0 and self.position <= breaks.after <= end:
            breaks.left -= 1
            self.broken = True
            end = breaks.after
        items = tuple(self._feed.items[self.position : end])
        self.position = end
        return items

    @property
    def ended(self) -> bool:
        """Whether it has everything, and nothing more will come."""
        return not self.broken and self._feed.over and self.position == len(self._feed.items)
