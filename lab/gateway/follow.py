"""Following a job's stream page by page, as the gateway's caller does (CP-026, CP-027)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

MOST_ODD = 256
"""Events out of place that are kept for the verdict; more would tell nothing new."""

LARGEST_INDEX = 2**53 - 1


class BadPage(Exception):
    """A body that is no page of a stream; the message says what was seen, without any of its content."""


@dataclass
class Follower:
    """The events of one job's stream so far, and the ref to ask for next. The first ref is the job's id (CHAT-035)."""

    job_id: str
    ref: str = ""
    events: list[str] = field(default_factory=list)
    pages: int = 0
    empty_pages: int = 0
    done: bool = False
    odd: list[str] = field(default_factory=list)
    """What was not as it must be, for the verdict of `contiguous`."""

    def __post_init__(self) -> None:
        self.ref = self.ref or self.job_id

    def take(self, body: bytes) -> int:
        """Take a page's body; returns how many of its events are new. Raises `BadPage`.

        An event that was there before is not taken again (by its `i`), and a gap is noted.
        """
        page = _page(body)
        fresh = 0
        for event in page["events"]:
            if event["i"] == len(self.events):
                self.events.append(event["e"])
                fresh += 1
            else:
                self._note_odd(f"event {event['i']} where {len(self.events)} was due")
        self.pages += 1
        self.empty_pages += 0 if page["events"] else 1
        self.ref = page["nextRef"]
        self.done = page["done"]
        return fresh

    def _note_odd(self, words: str) -> None:
        if len(self.odd) < MOST_ODD:
            self.odd.append(words)


def _page(body: bytes) -> dict[str, Any]:
    try:
        page = json.loads(body)
        if not isinstance(page, dict):
            raise BadPage("a job.stream body that is no object")
        for event in page["events"]:
            if not _is_index(event["i"]) or not isinstance(event["e"], str):
                raise BadPage("a job.stream event without a number `i` and a text `e`")
        if not isinstance(page["nextRef"], str) or not isinstance(page["done"], bool):
            raise BadPage("a job.stream body whose nextRef or done is not of its type")
    except (ValueError, KeyError, TypeError, RecursionError):
        # Without the cause: a parser's words may quote the body.
        raise BadPage(f"a job.stream body of {len(body)} bytes that is not {{events, nextRef, done}}") from None
    return page


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_INDEX
