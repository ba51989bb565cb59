"""What the laws of the partner leg read a journal into: calls, streams, runs, conversations, calls of the store."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.journal.partner_events import (
    IssuerRequest,
    PartnerAnswerText,
    PartnerCall,
    PartnerDelivery,
    PartnerEvent,
    PartnerRequest,
    PartnerStream,
    PartnerTurn,
    StoreRequest,
)
from lab.journal.writer import Entry
from lab.laws.partner.words import TERMINAL

Facts = Mapping[str, Any]

_NONE: Facts = {}


def part(facts: Facts, name: str) -> Facts:
    """A member of `facts` that is an object; empty where it is none."""
    value = facts.get(name)
    return value if isinstance(value, Mapping) else _NONE


def sha_of(value: object) -> str | None:
    """The SHA-256 of a digest; None where `value` is none."""
    found = value.get("sha256") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else None


def key(value: object) -> Hashable:
    """A value of an answer by which others are found; anything but a scalar, which a peer may send, by its text."""
    return value if value is None or isinstance(value, str | int | float) else repr(value)


@dataclass(frozen=True)
class Moment:
    """A place in the journal."""

    n: int
    t: float


@dataclass(frozen=True)
class CallAt(Moment):
    """A try of a call that the driver made, with its place in the journal: where its answer was seen."""

    by: str
    event: PartnerCall
    operation: str

    @property
    def start(self) -> float:
        """Lab time at which it began."""
        return self.t - self.event.seconds

    @property
    def sent(self) -> Facts:
        """What was sent, under the contract's names."""
        return part(self.event.facts, "sent")

    @property
    def answer(self) -> Facts:
        """What came back, under the contract's names."""
        return part(self.event.facts, "answer")

    @property
    def answered(self) -> bool:
        """Whether a whole answer of the contract's form came."""
        return self.event.status != 0 and self.event.error is None

    @property
    def ok(self) -> bool:
        """Whether what was asked for was done, and told."""
        return self.answered and 200 <= self.event.status < 300

    @property
    def by_order(self) -> bool:
        """Whether the scenario asked for something odd here."""
        return self.event.facts.get("byOrder") is True

    @property
    def actor(self) -> tuple[Hashable, Hashable]:
        """The employee and the team in whose name it was made, by their external ids."""
        return key(self.sent.get("externalUserId")), key(self.sent.get("externalTeamId"))

    def after(self, other: Moment) -> bool:
        """Whether it surely began after another thing had been seen."""
        if self.event.began is not None:
            return other.n < self.event.began
        return other.n < self.n and self.start > other.t


@dataclass(frozen=True)
class RequestAt(Moment):
    """A request that the API's model answered."""

    event: PartnerRequest
    operation: str

    @property
    def ok(self) -> bool:
        """Whether what was asked for was done."""
        return 200 <= self.event.status < 300


@dataclass(frozen=True)
class EventAt(Moment):
    """An event of a run's stream."""

    event: PartnerEvent

    @property
    def type(self) -> str:
        """Its type, as its data says."""
        return self.event.type or ""

    @property
    def facts(self) -> Facts:
        """What its data says."""
        return self.event.facts


@dataclass
class StreamAt:
    """A stream of a run's events, as the driver had it."""

    number: int
    run_id: str
    opened: tuple[Moment, PartnerStream]
    events: list[EventAt] = field(default_factory=list)
    over: tuple[Moment, PartnerStream] | None = None

    @property
    def asked(self) -> int | None:
        """The sequence that it was to continue after; None where the header was no id of this run."""
        event = self.opened[1]
        if event.last_event_id is not None:
            return event.last_event_id
        return None if event.facts.get("sentLastEventId") is not None else 0

    @property
    def by_order(self) -> bool:
        """Whether the scenario chose where it begins."""
        return self.opened[1].facts.get("byOrder") is True

    @property
    def ended(self) -> bool:
        """Whether the API closed it as one closes what is complete."""
        return self.over is not None and self.over[1].change == "ended"


@dataclass(frozen=True)
class Snapshot(Moment):
    """A run's state as an answer or its run_status told it; `facts` has the members that were told."""

    source: str
    """message, run or run_status."""
    facts: Facts
    call: CallAt | None = None

    @property
    def status(self) -> str:
        """The run's status; empty where it was told in no known form."""
        value = self.facts.get("status")
        return value if isinstance(value, str) else ""

    @property
    def terminal(self) -> bool:
        """Whether the status never changes any more."""
        return self.status in TERMINAL

    def after(self, other: Moment) -> bool:
        """Whether what it tells was surely asked for after another thing had been seen."""
        return self.call is not None and self.call.after(other)


@dataclass(frozen=True)
class StoreAt(Moment):
    """A request that the store took; it is told where it was decided, so that its place is that of its effect."""

    by: str
    event: StoreRequest

    @property
    def reached_a_tool(self) -> bool:
        """Whether a tool ran for it, now or for an earlier request with its call id."""
        return self.event.executed or self.event.duplicate

    def after(self, other: Moment) -> bool:
        """Whether it came after another thing had been seen."""
        return other.n < self.n


@dataclass(frozen=True)
class IssuerAt(Moment):
    """A request that the issuer answered."""

    by: str
    event: IssuerRequest


@dataclass(frozen=True)
class ToolCall:
    """A tool call of a run's stream, with the result that closes it (SSE-041)."""

    call: EventAt
    result: EventAt | None

    @property
    def id(self) -> Hashable:
        """Its public id."""
        return key(self.call.facts.get("toolCallId"))

    @property
    def name(self) -> Hashable:
        """The tool's name."""
        return key(self.call.facts.get("name"))

    @property
    def ok(self) -> object:
        """Whether it went well; None while it is open."""
        return None if self.result is None else self.result.facts.get("ok")


@dataclass
class Run:
    """A run of the API, over everything that told of it."""

    run_id: str
    conversation_id: str | None = None
    turn_id: str | None = None
    accepted: list[CallAt] = field(default_factory=list)
    """The message calls that were answered with it."""
    streams: list[StreamAt] = field(default_factory=list)
    refused: list[tuple[Moment, PartnerStream]] = field(default_factory=list)
    unopened: list[tuple[Moment, PartnerStream]] = field(default_factory=list)
    """Streams that broke before anything came of them."""
    snapshots: list[Snapshot] = field(default_factory=list)
    polls: list[CallAt] = field(default_factory=list)
    texts: list[tuple[Moment, PartnerAnswerText]] = field(default_factory=list)
    turns: list[tuple[Moment, PartnerTurn]] = field(default_factory=list)
    deliveries: list[tuple[Moment, PartnerDelivery]] = field(default_factory=list)
    store_calls: list[StoreAt] = field(default_factory=list)

    def events(self) -> list[EventAt]:
        """Each event once, by rising sequence, as it was first seen."""
        first: dict[int, EventAt] = {}
        for seen in self.all_events():
            if seen.event.sequence is not None:
                first.setdefault(seen.event.sequence, seen)
        return [first[sequence] for sequence in sorted(first)]

    def all_events(self) -> Iterator[EventAt]:
        """The events of all its streams, one stream after another."""
        return (seen for stream in self.streams for seen in stream.events)

    def whole(self) -> list[EventAt] | None:
        """Its events from the first to one that ends it; None where some of them were not seen."""
        events = self.events()
        complete = [seen.event.sequence for seen in events] == list(range(1, len(events) + 1))
        last = events[-1] if events else None
        ends = last is not None and last.type in ("run_status", "error")
        return events if complete and ends else None

    def whole_text(self) -> tuple[Moment, PartnerAnswerText] | None:
        """The text that the driver joined from all of its events; None where it did not take every one."""
        events = self.whole()
        return next((one for one in self.texts if events is not None and one[1].events == len(events)), None)

    def tool_calls(self, events: list[EventAt]) -> list[ToolCall]:
        """Each tool call with its result: the oldest open one of that name (SSE-041)."""
        waiting: dict[Hashable, list[int]] = {}
        found: list[ToolCall] = []
        for seen in events:
            name = key(seen.facts.get("name"))
            if seen.type == "tool_call":
                waiting.setdefault(name, []).append(len(found))
                found.append(ToolCall(seen, None))
            elif seen.type == "tool_result" and waiting.get(name):
                at = waiting[name].pop(0)
                found[at] = ToolCall(found[at].call, seen)
        return found

    def ends(self) -> list[Snapshot]:
        """What told a terminal status."""
        return [one for one in self.snapshots if one.terminal]

    def first_end(self) -> Moment | None:
        """The first sign, by any witness, that it was over."""
        signs: list[Moment] = list(self.ends())
        signs += [seen for seen in self.all_events() if seen.type in ("done", "error", "run_status")]
        signs += [at for at, turn in self.turns if turn.change == "ended"]
        return min(signs, key=lambda at: at.n, default=None)

    def active_after(self, other: Moment) -> bool:
        """Whether it surely had not ended yet when another thing was seen."""
        polled = any(one.after(other) for one in self.snapshots if not one.terminal)
        called = any(one.after(other) for one in self.store_calls if one.event.executed)
        return polled or called or any(at.n > other.n for at, _ in self.turns)


@dataclass
class Conversation:
    """A conversation of the API, over the calls that were made in it."""

    conversation_id: str
    created: list[CallAt] = field(default_factory=list)
    """The create calls that were answered with it."""
    calls: list[CallAt] = field(default_factory=list)
    requests: list[RequestAt] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def of(self, operation: str) -> list[CallAt]:
        """The driver's calls of one operation."""
        return [call for call in self.calls if call.operation == operation]

    def arrived(self, operation: str) -> list[RequestAt]:
        """The requests of one operation at the API's model."""
        return [one for one in self.requests if one.operation == operation]

    @property
    def facts(self) -> Facts:
        """What its create call answered: conversationId, actorId, teamId, agentId, mcp."""
        return self.created[0].answer if self.created else _NONE

    @property
    def actor(self) -> tuple[Hashable, Hashable] | None:
        """Whose it is, by the external ids of employee and team."""
        return self.created[0].actor if self.created else None

    @property
    def destination(self) -> object:
        """The store that it speaks to; None without one."""
        return part(self.facts, "mcp").get("destination")


def moment(entry: Entry) -> Moment:
    """The place of an entry."""
    return Moment(entry.n, entry.t)
