"""Where content is written that a journal tells by its digest: the line of a script, an input of the scenario.

The journal holds no content (SEC-012), so a finding can only say that a text is not the one due. With the places
of all texts that the scripts and the scenario brought into the run it says which text it is, and still not its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from lab.journal.events import Agent2Job, Agent2Line, BodyAnswered, Digest, Event, Frame
from lab.journal.writer import Entry
from lab.run.identity import PROMPT_CANARY

ROWS = 6
"""Places that one finding names; a page of a stream that is all wrong would name hundreds."""
NOWHERE = "no text of the scripts or the scenario"


@dataclass(frozen=True)
class Places:
    """Places of texts by their SHA-256, of canaries by their id, of each job's inputs and of its lines."""

    texts: Mapping[str, str] = field(default_factory=dict)
    canaries: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    """By job id."""
    lines: Mapping[str, Sequence[Agent2Line]] = field(default_factory=dict)
    """By job id; an empty line has no position in a stream (CHAT-048) and is not among them."""

    def of(self, told: Mapping[str, Any]) -> str:
        """The place of a text told by its digest, empty when nothing that is known has it."""
        return self.texts.get(str(told.get("sha256")), "")

    def of_line(self, line: Agent2Line) -> str:
        """The place of a line of agent2's, which its event names as well."""
        return self.of({"sha256": line.sha256}) or line.source


NO_PLACES = Places()
"""Of a journal whose scripts nobody has at hand."""


def content_rows(entries: Sequence[Entry], numbers: Iterable[int], places: Places) -> tuple[str, ...]:
    """What is known of the content that some entries tell by digest, a line each; never the content."""
    named = frozenset(numbers)
    rows: dict[str, None] = {}
    for entry in entries:
        if entry.n in named:
            rows.update(dict.fromkeys(_rows(entry.event, places)))
    shown = list(rows)
    if len(shown) > ROWS:
        shown = [*shown[: ROWS - 1], f"… and {len(shown) - ROWS + 1} more"]
    return tuple(shown)


def _rows(event: Event, places: Places) -> list[str]:
    rows = list(_texts(event, places))
    for canary in _canaries(event):
        place = places.canaries.get(canary)
        if place is not None and not any(place in row for row in rows):
            rows.append(f"canary {canary} is {place}")
    return rows


def _texts(event: Event, places: Places) -> Iterator[str]:
    match event:
        case Agent2Line():
            if event.source:
                yield f"agent2's line {event.i} is {places.of_line(event)}"
        case Agent2Job():
            if event.prompt is not None:
                yield from _prompt(event.job_id, event.prompt, places)
        case BodyAnswered():
            yield from _page(event, places)
            yield from _turns(event, places)
        case Frame():
            yield from _payload(event.type or "frame", event.payload, places)
        case _:
            pass


def _prompt(job_id: str, prompt: Digest, places: Places) -> Iterator[str]:
    place = places.of(prompt)
    yield f"the prompt at agent2 is {place or NOWHERE}"
    if not place and job_id in places.inputs:
        yield f"due was {places.inputs[job_id]}"


def _page(body: BodyAnswered, places: Places) -> Iterator[str]:
    """The events of a page in spans, so that the odd one stands out."""
    events = [event for event in body.facts.get("events", ()) if isinstance(event, dict)]
    lines = places.lines.get(body.job_id or "", ())
    if not lines:
        return
    ordinals: dict[str, list[int]] = {}
    for ordinal, line in enumerate(lines):
        ordinals.setdefault(line.sha256, []).append(ordinal)

    def line_of(event: Mapping[str, Any]) -> int | None:
        same = ordinals.get(str(event.get("sha256")), [])
        # Of several lines with one text it is the one in its place.
        return event.get("i") if event.get("i") in same else same[0] if same else None

    told = [(place, event.get("i"), line_of(event)) for place, event in enumerate(events)]

    def span(one: tuple[int, Any, int | None]) -> tuple[int | None, int | None]:
        place, i, line = one
        return (i - place if isinstance(i, int) else None, line - place if line is not None else None)

    for _, group in groupby(told, span):
        part = list(group)
        (_, first, from_line), (_, last, to_line) = part[0], part[-1]
        which = f"event {first} is" if len(part) == 1 else f"events {first} to {last} are"
        if from_line is None or to_line is None:
            yield f"{which} {NOWHERE}"
        else:
            yield f"{which} {_stretch(lines[from_line], lines[to_line], places)}"


def _stretch(first: Agent2Line, last: Agent2Line, places: Places) -> str:
    begin, end = places.of_line(first), places.of_line(last)
    return begin if begin == end else f"{begin} to {end.rpartition(':')[2]}"


def _turns(body: BodyAnswered, places: Places) -> Iterator[str]:
    turns = [turn for turn in body.facts.get("turns", ()) if isinstance(turn, dict)]
    job_id = body.job_id or ""
    answer = next((line for line in places.lines.get(job_id, ()) if line.role == "assistant"), None)
    due = {
        "user": places.inputs.get(job_id, ""),
        "assistant": places.of_line(answer) if answer is not None else "",
    }
    told = [(number, str(turn.get("role")), places.of(turn)) for number, turn in enumerate(turns)]
    for (role, place), group in groupby(told, lambda one: one[1:]):
        numbers = [number for number, _, _ in group]
        which = f"turn {numbers[0]} ({role}) is"
        if len(numbers) > 1:
            which = f"turns {numbers[0]} to {numbers[-1]} ({role}) are"
        wanted = f"; due was {due[role]}" if not place and due.get(role) else ""
        yield f"{which} {place or NOWHERE}{wanted}"


def _payload(path: str, value: object, places: Places) -> Iterator[str]:
    """Digests in a payload that are of known texts; of the others there is nothing to say."""
    if isinstance(value, Mapping):
        if "sha256" in value and "bytes" in value:
            place = places.of(value)
            if place:
                yield f"{path} is {place}"
            return
        for name, member in value.items():
            yield from _payload(f"{path} {name}" if " " not in path else f"{path}.{name}", member, places)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _payload(f"{path}[{number}]", item, places)


def _canaries(event: Event) -> Iterator[str]:
    found = getattr(event, "canaries", None) or getattr(event, "facts", {}).get("canaries", ())
    for one in found:
        canary = str(one["id"]) if isinstance(one, Mapping) else str(one)
        # What was asked and answered belongs into a body; a secret does not.
        if not (isinstance(event, BodyAnswered) and (canary == PROMPT_CANARY or canary.startswith("answer."))):
            yield canary
