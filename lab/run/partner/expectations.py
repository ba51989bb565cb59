"""What a scenario of the partner leg expects at its end, held against what the driver has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.partner.client.driver import PartnerDriver
from lab.partner.client.history_walk import HistoryWalk
from lab.partner.client.run_steps import Followed
from lab.partner.client.shapes import Context, Run
from lab.run.expectations import Held, hold_listed_text, hold_number, hold_turns, words_of
from lab.scenario.model import Expectation

ACTIVE = ("accepted", "running")
"""The statuses of a run that goes on."""


@dataclass
class Seen:
    """What the steps got of the things that paths name, by label."""

    driver: PartnerDriver
    followed: dict[str, Followed] = field(default_factory=dict)
    polled: dict[str, Run] = field(default_factory=dict)
    histories: dict[str, HistoryWalk] = field(default_factory=dict)
    contexts: dict[str, Context] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict, repr=False)


def judge_partner_expectation(expectation: Expectation, seen: Seen, figures: Mapping[str, float]) -> Held:
    """Judge one line of `expect`."""
    root, _, rest = expectation.path.partition(".")
    label, _, member = rest.partition(".")
    match root:
        case "figures":
            return hold_number(expectation, figures[rest], expectation.due)
        case "run":
            return _run(expectation, seen, label, member)
        case "stream":
            return _stream(expectation, seen, label, member)
        case "history":
            return _history(expectation, seen, label, member)
        case _:
            return _context(expectation, seen, label, member)


def _nothing(expectation: Expectation, seen: str) -> Held:
    return Held(expectation, None, seen, words_of(expectation.due))


def _plain(expectation: Expectation, value: Any) -> Held:
    return Held(expectation, value == expectation.due, words_of(value), words_of(expectation.due))


def _run(expectation: Expectation, seen: Seen, label: str, member: str) -> Held:
    record = seen.driver.runs.get(label)
    followed, run = seen.followed.get(label), seen.polled.get(label)
    if record is None:
        return _nothing(expectation, "the run never began")
    if member == "text":
        if followed is None:
            return _nothing(expectation, "the run was not followed to its end")
        return hold_listed_text(expectation, followed.events.text, expectation.due)
    if followed is None and run is None:
        return _nothing(expectation, "the run was neither followed to its end nor polled")
    if member in ("status", "reason"):
        told = run if run is not None else followed
        return _plain(expectation, getattr(told, member))
    return _figure(expectation, run, followed, member)


def _figure(expectation: Expectation, run: Run | None, followed: Followed | None, member: str) -> Held:
    told = run if run is not None else followed.events.end or followed.run if followed is not None else None
    if told is None:
        return _nothing(expectation, "no answer told of the run's end")
    if told.status in ACTIVE:
        # Its numbers are zeros, which would fit any `max`.
        return _nothing(expectation, f"the run was {told.status} when it was asked for last")
    if member == "toolErrors":
        return hold_number(expectation, len(told.tool_errors), expectation.due)
    if member == "costUsd":
        return _plain(expectation, None if told.usage is None else f"{told.usage.cost:.12f}")
    if told.timings is None:
        return _nothing(expectation, "the run was never measured")
    if member == "iterations":
        return hold_number(expectation, len(told.timings.iterations), expectation.due)
    value = told.timings.stages[member]
    if value is None:
        return _nothing(expectation, "the run was not measured to its end")
    return hold_number(expectation, float(value), expectation.due)


def _stream(expectation: Expectation, seen: Seen, label: str, member: str) -> Held:
    record = seen.driver.runs.get(label)
    if record is None or not record.events.applied:
        return _nothing(expectation, "no event of the run came")
    if member == "opened":
        followed = seen.followed.get(label)
        return hold_number(expectation, followed.streams if followed is not None else 1, expectation.due)
    events = record.events
    contiguous = events.applied == events.last
    due = expectation.due if isinstance(expectation.due, Mapping) else {"count": expectation.due}
    numbers = {name: value for name, value in due.items() if name != "contiguous"}
    held = hold_number(expectation, events.applied, numbers).held is True
    fits = held and contiguous is due.get("contiguous", contiguous)
    told = f"{events.applied} events, {'contiguous' if contiguous else 'not contiguous'}"
    return Held(expectation, fits, told, words_of(expectation.due))


def _history(expectation: Expectation, seen: Seen, label: str, member: str) -> Held:
    walk = seen.histories.get(label)
    if walk is None:
        return _nothing(expectation, "the history was not read")
    if member == "pages":
        return hold_number(expectation, walk.pages, expectation.due)
    turns = [{"role": item.role, "text": item.text} for item in walk.items]
    due = expectation.due if isinstance(expectation.due, list | Mapping) else {"count": expectation.due}
    return hold_turns(expectation, turns, due)


def _context(expectation: Expectation, seen: Seen, label: str, member: str) -> Held:
    context = seen.contexts.get(label)
    if context is None:
        return _nothing(expectation, "the context was not read")
    if member == "active":
        return _plain(expectation, context.active)
    return hold_number(expectation, context.version, expectation.due)
