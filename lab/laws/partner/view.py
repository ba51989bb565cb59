"""A journal as the laws of the partner leg read it: runs, conversations, memberships, grants, joined by their ids."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lab.journal.events import ParticipantDeclared, RunStarted
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
from lab.laws.partner.seen import (
    CallAt,
    Conversation,
    EventAt,
    IssuerAt,
    Moment,
    RequestAt,
    Run,
    Snapshot,
    StoreAt,
    StreamAt,
    moment,
)
from lab.laws.partner.words import OF_ISSUER, PARTNER_API, operation

if TYPE_CHECKING:
    from lab.laws.view import JournalView

KINDS = frozenset(
    one.kind
    for one in (
        RunStarted,
        PartnerCall,
        PartnerStream,
        PartnerEvent,
        PartnerAnswerText,
        PartnerRequest,
        PartnerTurn,
        PartnerDelivery,
        StoreRequest,
        IssuerRequest,
    )
)
"""The events that are read."""

MINTING = frozenset({"grants", "lab-grants"})
"""Routes of the issuer that make a grant."""

REVOKING = "lab-revocations"


class PartnerView:
    """Built once from a journal's entries, and only when a law of the partner leg asks for it; then only read."""

    def __init__(self, journal: JournalView) -> None:
        self.journal = journal
        self.there = False
        """Whether anything of the partner leg stands in the journal."""
        self.calls: list[CallAt] = []
        """The driver's calls of the API, in the order of their answers."""
        self.issuer_calls: list[CallAt] = []
        """The driver's calls of the issuer."""
        self.requests: list[RequestAt] = []
        self.streams: dict[tuple[str, int], StreamAt] = {}
        """By the driver's name and the stream's number."""
        self.runs: dict[str, Run] = {}
        self.conversations: dict[str, Conversation] = {}
        self.store: list[StoreAt] = []
        self.issuer: list[IssuerAt] = []
        self.epoch_ms = 0
        self._of_turn: dict[str, Run] = {}
        self._moves: list[tuple[Moment, float]] = []
        """When the model's wall clock was moved, and by how many seconds."""
        for entry in journal.entries:
            # A journal of the chat leg is passed over at a look-up an entry.
            if entry.event.kind in KINDS:
                self._take(entry)
        self._times = [entry.t for entry in journal.entries] if self.there else []
        if self.there:
            self._join()

    def _take(self, entry: Entry) -> None:
        event = entry.event
        at = moment(entry)
        if isinstance(event, PartnerCall):
            self._take_call(CallAt(entry.n, entry.t, entry.by, event, operation(event.route)))
        elif isinstance(event, PartnerEvent):
            self._take_event(entry.by, EventAt(entry.n, entry.t, event))
        elif isinstance(event, PartnerStream):
            self._take_stream(entry.by, at, event)
        elif isinstance(event, PartnerAnswerText):
            self.run(event.run_id).texts.append((at, event))
        elif isinstance(event, PartnerRequest):
            self._take_request(at, event)
        elif isinstance(event, PartnerTurn):
            run = self.run(event.run_id)
            run.turns.append((at, event))
            run.turn_id = run.turn_id or event.turn_id
            run.conversation_id = run.conversation_id or event.conversation_id
        elif isinstance(event, PartnerDelivery):
            self.run(event.run_id).deliveries.append((at, event))
        elif isinstance(event, StoreRequest):
            self.store.append(StoreAt(entry.n, entry.t, entry.by, event))
        elif isinstance(event, IssuerRequest):
            self.issuer.append(IssuerAt(entry.n, entry.t, entry.by, event))
        else:
            if isinstance(event, RunStarted):
                self.epoch_ms = event.epoch_ms
            return
        self.there = True

    def _take_call(self, call: CallAt) -> None:
        if call.operation in OF_ISSUER:
            self.issuer_calls.append(call)
            return
        if call.operation == "control":
            # None of the contract's; the model tells what was ordered.
            return
        self.calls.append(call)
        conversation_id = call.event.conversation_id
        if call.operation == "create" and call.ok:
            answered = call.answer.get("conversationId", conversation_id)
            if isinstance(answered, str):
                self.conversation(answered).created.append(call)
        elif conversation_id is not None:
            self.conversation(conversation_id).calls.append(call)
        if call.operation in ("message", "run") and call.ok:
            self._take_run(call)

    def _take_run(self, call: CallAt) -> None:
        run_id = call.answer.get("runId", call.event.run_id)
        if not isinstance(run_id, str):
            return
        run = self.run(run_id)
        run.conversation_id = run.conversation_id or call.event.conversation_id
        turn_id = call.answer.get("turnId")
        if run.turn_id is None and isinstance(turn_id, str):
            run.turn_id = turn_id
        run.snapshots.append(Snapshot(call.n, call.t, call.operation, call.answer, call))
        (run.accepted if call.operation == "message" else run.polls).append(call)

    def _take_stream(self, by: str, at: Moment, event: PartnerStream) -> None:
        run = self.run(event.run_id)
        run.conversation_id = run.conversation_id or event.conversation_id
        if event.change == "refused":
            run.refused.append((at, event))
        elif event.change == "opened":
            stream = StreamAt(event.stream, event.run_id, (at, event))
            self.streams[by, event.stream] = stream
            run.streams.append(stream)
        elif (by, event.stream) in self.streams:
            self.streams[by, event.stream].over = (at, event)
        else:
            run.unopened.append((at, event))

    def _take_event(self, by: str, seen: EventAt) -> None:
        stream = self.streams.get((by, seen.event.stream))
        if stream is None:
            return
        stream.events.append(seen)
        if seen.type == "run_status":
            self.run(seen.event.run_id).snapshots.append(Snapshot(seen.n, seen.t, "run_status", seen.facts))

    def _take_request(self, at: Moment, event: PartnerRequest) -> None:
        request = RequestAt(at.n, at.t, event, operation(_with_method(event)))
        self.requests.append(request)
        by_ms = event.facts.get("byMs")
        if request.operation == "control" and isinstance(by_ms, int | float):
            self._moves.append((at, by_ms / 1000))
        if event.conversation_id is not None:
            self.conversation(event.conversation_id).requests.append(request)

    def _join(self) -> None:
        self._of_turn = {run.turn_id: run for run in self.runs.values() if run.turn_id is not None}
        for request in self.store:
            run = self.run_of_turn(request.event.turn_id)
            if run is not None:
                run.store_calls.append(request)
        for run in self.runs.values():
            if run.conversation_id is not None:
                self.conversation(run.conversation_id).runs.append(run)

    def run(self, run_id: str) -> Run:
        """The run with this id."""
        return self.runs.setdefault(run_id, Run(run_id))

    def conversation(self, conversation_id: str) -> Conversation:
        """The conversation with this id."""
        return self.conversations.setdefault(conversation_id, Conversation(conversation_id))

    # What a law asks

    def run_of_turn(self, turn_id: str | None) -> Run | None:
        """The run whose turn has this id."""
        return self._of_turn.get(turn_id) if turn_id is not None else None

    def name(self, party: str) -> str:
        """The participant that plays a party; the party's own name where nobody was declared."""
        declared = self.journal.participants.values()
        return next((one.name for one in declared if one.role == party), party)

    def declared(self, party: str) -> ParticipantDeclared | None:
        """How a party was declared."""
        return next((one for one in self.journal.participants.values() if one.role == party), None)

    def of(self, operation: str) -> list[CallAt]:
        """The driver's calls of one operation of the API."""
        return [call for call in self.calls if call.operation == operation]

    def arrived(self, operation: str) -> list[RequestAt]:
        """The requests of one operation at the API's model."""
        return [request for request in self.requests if request.operation == operation]

    def wall(self, at: Moment, t: float | None = None) -> float:
        """Seconds since 1970 UTC by the API's wall clock at a place of the journal, or then at lab time `t`."""
        moved = sum(by for move, by in self._moves if move.n < at.n)
        return self.epoch_ms / 1000 + (at.t if t is None else t) + moved

    def when(self, wall: float, after: Moment) -> Moment:
        """The first moment behind `after` at which the API's wall clock has come to `wall`."""
        due = wall - self.wall(after, 0.0)
        for move, by in self._moves:
            if move.n > after.n and due > move.t:
                due -= by
                if due <= move.t:
                    return move
        return Moment(bisect.bisect_right(self._times, due) - 1, due)

    def clock_moved(self) -> bool:
        """Whether the scenario moved the API's wall clock."""
        return any(True for _ in self.ordered("clock"))

    def clock_known(self) -> bool:
        """Whether the witness told how far each move of the API's wall clock went."""
        return all(isinstance(one.event.facts.get("byMs"), int | float) for one in self.ordered("clock"))

    def ordered(self, *controls: str) -> Iterator[RequestAt]:
        """The uses of these controls of the lab, as the model told them."""
        ends = tuple(f"/__lab/{control}" for control in controls)
        return (one for one in self.arrived("control") if one.event.route.endswith(ends))

    def minted(self) -> list[IssuerAt]:
        """The requests that made a grant."""
        return [one for one in self.issuer if one.event.route in MINTING and one.event.grant is not None]

    def revoked(self) -> list[IssuerAt]:
        """The requests that revoked a grant."""
        return [one for one in self.issuer if one.event.route == REVOKING and 200 <= one.event.status < 300]

    def quiet(self, start: float, end: float) -> bool:
        """Whether no link was broken or held bytes back, and the API's program neither came nor went."""
        return self.journal.quiet(start, end) and not self.journal.agent_process_changed(
            self.name(PARTNER_API), start, end
        )


def _with_method(event: PartnerRequest) -> str:
    return event.route if event.route.startswith(f"{event.method} ") else f"{event.method} {event.route}"
