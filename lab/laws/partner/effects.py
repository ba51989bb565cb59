"""The laws of what a turn does: what it counts, what it calls, how it begins, and what a crash makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import Moment, Run, Snapshot, part
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CLOCKS_S, PARTNER_API, RELATIVE_TOLERANCE, SMALLEST_TOLERANCE_MS

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "inputTokens": ("inputTokens",),
    "outputTokens": ("outputTokens",),
    "cacheReadTokens": ("cacheReadTokens",),
    # US-009: both sorts of writes together
    "cacheWriteTokens": ("cacheWriteTokens", "cacheWrite1hTokens"),
}


def _iterations(told: Snapshot) -> list[Mapping[str, Any]]:
    found = part(told.facts, "timings").get("iterations")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def _complete(run: Run) -> Iterator[Snapshot]:
    return (one for one in run.ends() if part(one.facts, "timings").get("complete") is True)


def _usage_covers(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        for told in _complete(run):
            usage = part(told.facts, "usage")
            for name, parts in COUNTERS.items():
                total = usage.get(name)
                counted = [part(one, "usage").get(word) for one in _iterations(told) for word in parts]
                least = sum(one for one in counted if isinstance(one, int))
                if isinstance(total, int):
                    # US-038: it may be more, as retries and the choice of a model are in no iteration
                    bench.case(total >= least, f"{name} {total} over iterations of {least}", f"{least} or more", told.n)


def _tool_time(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        events = run.whole()
        for told in _complete(run):
            iterations = _iterations(told)
            tools = [len(one["tools"]) for one in iterations if isinstance(one.get("tools"), list | tuple)]
            if events is None or sum(tools) != len(run.tool_calls(events)) or len(tools) != len(iterations):
                # A call outside of the iterations has time of its own.
                continue
            total = _number(part(told.facts, "timings").get("toolMs"))
            parts = [_number(one.get("toolMs")) for one in iterations]
            if total is None or None in parts:
                continue
            due = sum((one for one in parts if one is not None), Decimal(0))
            fine = abs(total - due) <= max(SMALLEST_TOLERANCE_MS, abs(due) * RELATIVE_TOLERANCE)
            bench.case(fine, f"toolMs {total} over iterations of {due}", f"{due}: discovery is none", told.n)


def _number(value: object) -> Decimal | None:
    plain = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Decimal(str(value)) if plain else None


def _listed_tools(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        known = [turn.facts.get("tools") for _, turn in run.turns if turn.change == "discovery"]
        tools = known[-1] if known else None
        if not isinstance(tools, list | tuple):
            continue
        for call in run.store_calls:
            if call.event.method == "tools/call" and call.event.tool is not None:
                seen = f"a call of {call.event.tool}, which the store did not list"
                bench.case(call.event.tool in tools, seen, "a failed step without a call", call.n)
        conversation = view.conversations.get(run.conversation_id or "")
        done = next((seen for seen in run.events() if seen.type == "done"), None)
        if done is not None and conversation is not None and conversation.destination is not None:
            # MCP-023
            bench.case(bool(tools), "a turn that came to its end without its store's tools", "an error event", done.n)


def _first_answers(view: PartnerView, bench: Bench) -> None:
    sent: set[str | None] = set()
    for call in view.of("message"):
        key = call.event.idempotency_key
        if key not in sent and call.ok and call.event.attempt == 1:
            told = (call.answer.get("status"), call.answer.get("reason"))
            bench.case(told == ("accepted", None), f"a first answer that says {told[0]}", "accepted", call.n)
        sent.add(key)


def _crashed(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        claims = [at for at, turn in run.turns if turn.change == "claimed"]
        if len(claims) > 1:
            # MSG-011
            bench.odd("a run that was claimed twice", "interrupted, and no second try", claims[0].n, claims[1].n)
        end = _end(run)
        deaths = [
            crash for crash in view.journal.crashes_of(view.name(PARTNER_API)) if claims and crash.n > claims[0].n
        ]
        if not deaths or end is None or end.n < deaths[0].n:
            continue
        if any(at.n < deaths[0].n for at, turn in run.turns if turn.change == "ended"):
            continue
        seen = f"a run that a crash cut off is {end.status}"
        bench.case(end.status == "interrupted", seen, "interrupted", deaths[0].n, end.n)


def _end(run: Run) -> Snapshot | None:
    return next(iter(run.ends()), None)


def _grants_in_time(view: PartnerView, bench: Bench) -> None:
    ends = {one.event.grant: one.event.facts.get("expiresAtMs") for one in view.minted()}
    for call in view.store:
        expires = ends.get(call.event.grant)
        if call.event.method != "tools/call" or not isinstance(expires, int | float) or not view.clock_known():
            continue
        fine = view.wall(Moment(call.n, call.t)) <= expires / 1000 + CLOCKS_S
        bench.case(fine, "a store call under a grant that has expired", "a failed step without a call", call.n)


LAWS = (
    promise(
        "usage-covers-iterations",
        "The counters of a run's usage are no less than those of its iterations together",
        PARTNER_API,
        ("US-008", "US-009", "US-038"),
        _usage_covers,
    ),
    promise(
        "tool-time-is-of-tools",
        "The tool time of a turn is that of its tool calls, and discovery is none of it",
        PARTNER_API,
        ("TM-018", "TM-037", "TM-049"),
        _tool_time,
    ),
    promise(
        "only-listed-tools",
        "A turn calls the tools that its store lists, and ends as an error where it cannot learn them",
        PARTNER_API,
        ("MCP-023", "MSG-042", "MSG-046"),
        _listed_tools,
    ),
    promise(
        "first-answer-is-accepted",
        "The first answer to a message tells a run that is accepted and has no reason",
        PARTNER_API,
        ("MSG-023",),
        _first_answers,
    ),
    promise(
        "crashed-run-is-interrupted",
        "A run that was under way when the API died is interrupted, and never claimed again",
        PARTNER_API,
        ("MSG-010", "MSG-011", "MSG-035"),
        _crashed,
    ),
    promise(
        "no-call-after-expiry",
        "No store call is made under a grant that has expired",
        PARTNER_API,
        ("CX-026", "MCP-002"),
        _grants_in_time,
    ),
)
