"""Slips of a gateway in what its callers get: reports of a job, and the pages of its stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab.gateway.core import GatewayCore
from lab.gateway.follow import Follower, _page
from lab.gateway.relay import ContentRelay
from lab.journal.events import StreamPage
from lab.protocol.events import Event, Repeated
from lab.run.driver import Assigned, Driver
from tests.bugs.plants import Function, Patch, plant


@plant("gateway-duplicate-delivered-again", scenario="gateway-report-again", law="reports-told-once")
def duplicate_delivered_again(patch: Patch) -> None:
    """A report that came again is told again."""

    def handle(self: Any, _conn: str, connection: Any, events: list[Event], _now: float) -> None:
        for event in events:
            if isinstance(event, Repeated) and event.frame.type == "job.event":
                patch.slipped()
                self._on_job_frame(connection, event.frame)

    patch.after(GatewayCore, "_handle", handle)


def ends(patch: Patch, after: Callable[[Assigned, int], bool]) -> None:
    """Let the loop over the pages end where `after` says so of a job and how many pages the last request brought."""

    def make(original: Function) -> Function:
        async def one_page(self: Any, assigned: Assigned) -> None:
            follower = assigned.follower
            pages = follower.pages
            await original(self, assigned)
            if not follower.done and after(assigned, follower.pages - pages):
                patch.slipped()
                follower.done = True

        return one_page

    patch.wrap(Driver, "_one_page", make)


@plant("gateway-failed-page-is-the-end", scenario="chat-lost-page", law="stream-read-on")
def failed_page_is_the_end(patch: Patch) -> None:
    """A page that fails is the last."""
    ends(patch, lambda _assigned, pages: pages == 0)


@plant("gateway-stops-at-the-result", scenario="chat-burst", law="stream-read-on")
def stops_at_the_result(patch: Patch) -> None:
    """Behind the result nothing comes."""
    ends(patch, lambda assigned, _pages: assigned.job.results > 0)


@plant("gateway-empty-page-is-the-end", scenario="chat-silent", law="stream-read-on")
def empty_page_is_the_end(patch: Patch) -> None:
    """A page without events is the last."""
    empty: dict[str, int] = {}

    def is_empty(assigned: Assigned, _pages: int) -> bool:
        before = empty.get(assigned.label, 0)
        empty[assigned.label] = assigned.follower.empty_pages
        return assigned.follower.empty_pages > before

    ends(patch, is_empty)


@plant("gateway-repeated-page-doubled", scenario="gateway-page-twice", law="stream-read-on")
def repeated_page_doubled(patch: Patch) -> None:
    """Whatever page comes, its events are new."""
    drivers: list[Any] = []
    late: dict[str, list[bytes]] = {}

    def take_all(self: Follower, body: bytes) -> int:
        page = _page(body)
        self.events.extend(event["e"] for event in page["events"])
        self.pages += 1
        self.ref, self.done = page["nextRef"], page["done"]
        return len(page["events"])

    def make_timeout(original: Function) -> Function:
        def handle_timeout(self: Any, now: float) -> object:
            answers = original(self, now)
            late.update((answer.request_id, []) for answer in answers)
            return answers

        return handle_timeout

    def take_late(_self: Any, frame: Any, data: bytes | None, _agent_id: str) -> None:
        parts = late.get(frame.request_id)
        if parts is None:
            return
        parts.append(data or b"")
        if frame.chunk.last:
            patch.slipped()
            (assigned,) = drivers[0].jobs.values()
            follower = assigned.follower
            fresh = follower.take(b"".join(parts))
            page = StreamPage(assigned.job.job_id, follower.pages, fresh, len(follower.events), follower.done)
            drivers[0]._ctx.journal.record("driver", page)

    patch.after(Driver, "__init__", lambda self, *_: drivers.append(self))
    patch.set(Follower, "take", take_all)
    patch.wrap(ContentRelay, "handle_timeout", make_timeout)
    patch.after(ContentRelay, "take", take_late)
