"""The steps that send messages and learn what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lab.errors import MisuseError
from lab.journal.events import digest
from lab.journal.partner_events import PartnerAnswerText
from lab.partner.client.asking import Ask, Departure
from lab.partner.client.ground import Ground, odd_one
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, Outcome, TransportError
from lab.partner.client.polling import poll_until_terminal
from lab.partner.client.records import Member, RunRecord
from lab.partner.client.run_events import RunEvents, sequence_untrusted
from lab.partner.client.shapes import Run, run_untrusted
from lab.partner.client.words import GET_EVENTS, GET_RUN, LAST_EVENT_ID, POST_MESSAGE


@dataclass(frozen=True, slots=True)
class Followed:
    """A run that was followed to its end.

    `source` tells where the status comes from: run_status, or poll, whose answer is then `run`. `complete` says whether
    the stream's last event came, so that `events` has all of the run.
    """

    status: str
    reason: str | None
    source: str
    complete: bool
    events: RunEvents
    streams: int
    run: Run | None = None


class RunSteps(Ground):
    """Messages, runs and their events."""

    async def message(
        self,
        conversation: str,
        run: str,
        text: str | None = None,
        *,
        files: tuple[str, ...] = (),
        timezone: str | None = None,
        who: str | None = None,
        intent: str | None = None,
        departure: Departure | None = None,
    ) -> Outcome[Run]:
        """Send a message; `run` is the label of the run that it starts. The same `intent`, the run's label by default,
        has the same Idempotency-Key (MSG-032)."""
        record, member = self.with_member(conversation, who)
        members: dict[str, Any] = dict(member.actor)
        if text is not None:
            members["message"] = text
        if files:
            members["attachmentIds"] = [self.file(one).told.id for one in files]
        if timezone is not None:
            members["timezone"] = timezone
        key = self.key_of(intent or f"message {run}")
        ask = self.site.ask(POST_MESSAGE, record.ids, members=members, idempotency_key=key, departure=departure)
        outcome = await self.calls.call(ask, run_untrusted)
        if isinstance(outcome, Done):
            known = self.runs.get(run)
            if known is not None and known.told.run_id == outcome.value.run_id:
                known.told = outcome.value
            else:
                self.runs[run] = RunRecord(run, record, outcome.value, RunEvents(outcome.value.run_id))
        return outcome

    async def get_run(
        self,
        run: str,
        *,
        who: str | None = None,
        conversation: str | None = None,
        poll: int | None = None,
        departure: Departure | None = None,
    ) -> Outcome[Run]:
        """Read a run once."""
        record = self.run(run)
        place, member = self.with_member(conversation or record.conversation.label, who)
        marks = {} if poll is None else {"poll": poll}
        ids = {**place.ids, "runId": record.told.run_id}
        ask = self.site.ask(GET_RUN, ids, query=member.actor, departure=departure, marks=marks)
        outcome = await self.calls.call(ask, run_untrusted)
        if isinstance(outcome, Done):
            record.told = outcome.value
        return outcome

    async def poll(
        self, run: str, *, who: str | None = None, deadline_s: float | None = None
    ) -> Done[Run] | ApiRefusal | TransportError | GaveUp:
        """Read a run until its status is terminal (MSG-043)."""
        deadline = self.settings.poll_deadline_s if deadline_s is None else deadline_s
        return await poll_until_terminal(lambda k: self.get_run(run, who=who, poll=k), self.ctx.now, deadline)

    async def follow(
        self,
        run: str,
        *,
        who: str | None = None,
        start: str = "on",
        last_event_id: str | None = None,
        deadline_s: float | None = None,
        departure: Departure | None = None,
    ) -> Done[Followed] | ApiRefusal | TransportError | GaveUp:
        """Read a run's events to its end, and poll where they do not tell it (SSE-018, SSE-050).

        `start` on goes on behind what is known of the run; first and zero read it anew, without Last-Event-ID or with
        `<runId>:0`. `last_event_id` is sent as it stands. What was read anew does not replace what is known.
        """
        record = self.run(run)
        _, member = self.with_member(record.conversation.label, who)
        events, first = self._where_to_begin(record, start, last_event_id)
        odd = odd_one(departure, last_event_id is not None or start != "on")
        raw = [last_event_id]

        def ask_for(after: int | None) -> Ask:
            given = raw.pop() if raw else None
            usual = None if after is None else f"{record.told.run_id}:{after}"
            return self._stream_ask(record, member, usual if given is None else given, odd)

        deadline = self.ctx.now() + (self.settings.follow_deadline_s if deadline_s is None else deadline_s)
        end = await self.follower.follow(ask_for, events, first, deadline)
        if isinstance(end, ApiRefusal | TransportError):
            return end
        if events.end is not None:
            told = events.end
            followed = Followed(told.status, told.reason, "run_status", True, events, end.streams)
        elif end.why == "deadline":
            return GaveUp(record.told.status, 0)
        else:
            polled = await self.poll(run, who=who)
            if not isinstance(polled, Done):
                return polled
            found = polled.value
            followed = Followed(found.status, found.reason, "poll", events.over, events, end.streams, found)
        self._note_text(record, followed)
        return Done(followed, 200)

    def _where_to_begin(self, record: RunRecord, start: str, last_event_id: str | None) -> tuple[RunEvents, int | None]:
        run_id = record.told.run_id
        if last_event_id is not None:
            after = sequence_untrusted(run_id, last_event_id)
            return RunEvents(run_id, after or 0), after
        match start:
            case "on":
                return record.events, record.events.last or None
            case "first":
                return RunEvents(run_id), None
            case "zero":
                return RunEvents(run_id), 0
        raise MisuseError(f"a stream begins on, first or zero, not {start}")

    def _stream_ask(self, record: RunRecord, member: Member, header: str | None, departure: Departure | None) -> Ask:
        ask = self.site.ask(GET_EVENTS, record.ids, query=member.actor, departure=departure)
        return ask if header is None else replace(ask, headers={**ask.headers, LAST_EVENT_ID: header})

    def _note_text(self, record: RunRecord, followed: Followed) -> None:
        events = followed.events
        self.ctx.journal.record(
            self.name,
            PartnerAnswerText(
                record.told.run_id,
                digest("text", events.text),
                events.applied,
                followed.status,
                followed.source,
                tuple(digest("text", text) for text in events.segments),
                self._tap.text(events.text),
            ),
        )

    def successful(self, run: Run) -> bool:
        """Whether a terminal run did what was asked; failed tool calls count only with `strict_tools` (MSG-019)."""
        return run.status == "completed" and not (self.settings.strict_tools and run.tool_errors)
