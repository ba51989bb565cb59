"""Reads what a scenario expects at its end: paths, what is due there, and the laws it must exercise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.scenario.findings import seen, words
from lab.scenario.model import Expectation
from lab.scenario.read_steps import check_job
from lab.scenario.reading import Reading, entries
from lab.scenario.yaml_places import ListNode, MapNode, Node, ScalarNode, plain

OUTCOMES = ("pr_opened", "no_change", "failed", "cancelled")
NUMBERS = ("count", "min", "max")


@dataclass(frozen=True)
class Due:
    """What may be due at a path: scalars of `types`, of `words` if any; a mapping of `matchers`; a list of turns."""

    sentence: str
    types: tuple[type, ...] = ()
    words: tuple[str, ...] = ()
    matchers: tuple[str, ...] = ()
    turns: bool = False


_NUMBER = Due("a number, or a mapping of count, min and max", types=(int, float), matchers=NUMBERS)
_BOUNDS = Due("a mapping of min and max: a duration is never exact", matchers=("min", "max"))
"""TM-054."""
_LISTED = Due(
    "a number, or a mapping of count, min, max and contains", types=(int, float), matchers=(*NUMBERS, "contains")
)

PATHS: Mapping[str, Mapping[str, Due]] = {
    "job": {
        "outcome": Due(f"one of {words(OUTCOMES)}", types=(str,), words=OUTCOMES),
        "errorCode": Due("a text, or null for none", types=(str, type(None))),
        "filesChangedCount": _NUMBER,
        "runs": _NUMBER,
        "acks": _LISTED,
    },
    "stream": {
        "events": Due(
            "a number, or a mapping of count, min, max and contiguous",
            types=(int, float),
            matchers=(*NUMBERS, "contiguous"),
        ),
        "pages": _NUMBER,
        "emptyPages": _NUMBER,
    },
    "session": {
        "turns": Due("a list of turns, or a mapping of count, min and max", matchers=NUMBERS, turns=True),
        "truncated": Due("true or false", types=(bool,)),
    },
    "socket": {
        "opened": _NUMBER,
        "closes": _LISTED,
        "errors": _LISTED,
        "refusals": _LISTED,
        "fallbacks": _NUMBER,
    },
}
_TEXT = Due("a mapping of count (characters), min, max and contains", matchers=(*NUMBERS, "contains"))
RUN_STATUSES = ("accepted", "running", "completed", "failed", "limited", "interrupted", "cancelled")
TIMINGS = (
    *("queuedMs", "admissionMs", "lockMs", "agentMs", "promptMs", "toolSetupMs", "workerMs", "classificationMs"),
    *("setupMs", "modelMs", "toolMs", "historyMs", "otherMs", "totalMs"),
)
"""TM-044: the numbers of a run's timings."""

PARTNER_PATHS: Mapping[str, Mapping[str, Due]] = {
    "run": {
        "status": Due(f"one of {words(RUN_STATUSES)}", types=(str,), words=RUN_STATUSES),
        "reason": Due("a text, or null for none", types=(str, type(None))),
        "text": _TEXT,
        "toolErrors": _NUMBER,
        "costUsd": Due("a decimal text in quotes, or null for unaccounted", types=(str, type(None))),
        "iterations": _NUMBER,
        **dict.fromkeys(TIMINGS, _BOUNDS),
    },
    "stream": {"events": PATHS["stream"]["events"], "opened": _NUMBER},
    "history": {
        "items": Due(
            "a number, a list of items, or a mapping of count, min and max",
            types=(int, float),
            matchers=NUMBERS,
            turns=True,
        ),
        "pages": _NUMBER,
    },
    "context": {"version": _NUMBER, "active": Due("true or false", types=(bool,))},
}
LABELS = {"run": "run", "stream": "run", "history": "conversation", "context": "conversation"}
"""Of which kind the label in a path of the partner leg is."""

SOCKET = "socket"
FIGURES = "figures"


def read_expect(reading: Reading, root: MapNode) -> tuple[Expectation, ...]:
    """The expectations in order."""
    lines = [node for node in entries(root, "expect") if isinstance(node, MapNode)]
    return tuple(_expectation(reading, line, path) for line in lines for path in line.members)


def read_must_judge(reading: Reading, root: MapNode) -> tuple[str, ...]:
    """The ids of the laws that the run must exercise, each a known one."""
    for node in entries(root, "must_judge"):
        law = str(plain(node))
        if law not in reading.laws:
            message = f"no law has the id `{law}`."
            reading.findings.add(node, message, word=law, among=sorted(reading.laws))
    return tuple(str(plain(node)) for node in entries(root, "must_judge"))


def _expectation(reading: Reading, line: MapNode, path: str) -> Expectation:
    value = line.members[path]
    key = ScalarNode(line.keys[path], value.path, path, path)
    parts = path.split(".")
    if parts[0] == FIGURES and len(parts) == 2 and parts[1]:
        _check_figure(reading, key, parts[1])
        _check_due(reading, value, path, _NUMBER)
    elif parts[0] not in _paths(reading) or len(parts) != 3:
        _unknown_path(reading, key, parts)
    else:
        _check_label(reading, key, parts)
        _check_member(reading, key, value, parts)
    return Expectation(path, plain(value), key.place.line)


def _paths(reading: Reading) -> Mapping[str, Mapping[str, Due]]:
    return PARTNER_PATHS if reading.names.partner.agents else PATHS


def _check_figure(reading: Reading, key: ScalarNode, name: str) -> None:
    known = reading.figures
    if known is not None and name not in known:
        message = f"a run has no figure `{name}`; it has {words(known)}."
        reading.findings.add(key, message, word=name, among=known)


def _check_label(reading: Reading, key: ScalarNode, parts: list[str]) -> None:
    root, label = parts[:2]
    agents = reading.names.local_agents
    partner = reading.names.partner
    if partner.agents:
        made = partner.labels[LABELS[root]]
        if label not in made:
            message = f"no step makes a {LABELS[root]} `{label}`; there are {words(made)}."
            reading.findings.add(key, message, word=label, among=made)
    elif root != SOCKET:
        check_job(reading, key, label, None)
    elif label not in agents:
        message = f"no local agent is called `{label}`; there are {words(agents)}."
        reading.findings.add(key, message, word=label, among=agents)


def _unknown_path(reading: Reading, key: ScalarNode, parts: list[str]) -> None:
    forms = [
        f"{root}.<{'local agent' if root == SOCKET else 'label'}>.{member}"
        for root, members in _paths(reading).items()
        for member in members
    ]
    known = (*_paths(reading), FIGURES)
    message = f"seen the path `{key.text}`, due one of {words((*forms, f'{FIGURES}.<name>'))}."
    word = None if parts[0] in known else parts[0]
    reading.findings.add(key, message, word=word, among=known)


def _check_member(reading: Reading, key: ScalarNode, value: Node, parts: list[str]) -> None:
    members = _paths(reading)[parts[0]]
    due = members.get(parts[2])
    if due is None:
        message = f"`{parts[0]}.{parts[1]}` has no `{parts[2]}`; it has {words(members)}."
        reading.findings.add(key, message, word=parts[2], among=members)
        return
    _check_due(reading, value, key.text, due)


def _check_due(reading: Reading, value: Node, path: str, due: Due) -> None:
    if isinstance(value, MapNode) and due.matchers:
        _check_matchers(reading, value, path, due)
        return
    if isinstance(value, ListNode):
        fits = due.turns
    elif isinstance(value, MapNode):
        fits = False
    else:
        fits = _scalar_fits(value, due)
    if not fits:
        word = value.text if isinstance(value, ScalarNode) else None
        reading.findings.add(value, f"seen {seen(value)}, due {due.sentence}.", word=word, among=due.words)


def _scalar_fits(node: ScalarNode, due: Due) -> bool:
    if isinstance(node.value, bool) and bool not in due.types:
        return False
    return isinstance(node.value, due.types) and (not due.words or node.value in due.words)


def _check_matchers(reading: Reading, value: MapNode, path: str, due: Due) -> None:
    for matcher in value.members:
        if matcher not in due.matchers:
            message = f"`{matcher}` has no meaning for `{path}`; due is {due.sentence}."
            reading.findings.add(value.members[matcher], message, place=value.keys[matcher])
    least, most = value.members.get("min"), value.members.get("max")
    if isinstance(least, ScalarNode) and isinstance(most, ScalarNode) and float(least.text) > float(most.text):
        reading.findings.add(value, f"min {least.text} is above max {most.text}, so nothing can fit.")
