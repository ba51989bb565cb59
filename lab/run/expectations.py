"""What a scenario expects at its end, held against what the driver has. Content is compared here and never recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.run.sockets import SocketView
from lab.scenario.model import Expectation

ROLES = ("user", "assistant")

ABSENT = object()
"""Stands for what never came."""


@dataclass(frozen=True)
class JobView:
    """What the driver has of one job. `acks` are the statuses of acks to its job.assign, in order."""

    outcome: str | None = None
    error_code: str | None = None
    files_changed: int | None = None
    runs: int = 0
    acks: tuple[str, ...] = ()
    ended: bool = False


@dataclass(frozen=True)
class StreamView:
    """What the driver has of one stream."""

    events: int
    contiguous: bool
    pages: int
    empty_pages: int = 0


@dataclass(frozen=True)
class ConversationView:
    """A stored conversation as the driver got it. `turns` hold content."""

    turns: Sequence[Mapping[str, Any]] = field(repr=False)
    truncated: bool


@dataclass(frozen=True)
class Held:
    """One expectation, judged. `held` is None when there was nothing to judge it by."""

    expectation: Expectation
    held: bool | None
    seen: str
    due: str


@dataclass(frozen=True)
class Views:
    """Everything that paths can name, by label."""

    jobs: Mapping[str, JobView]
    streams: Mapping[str, StreamView]
    sessions: Mapping[str, ConversationView]
    figures: Mapping[str, float]
    sockets: Mapping[str, SocketView] = field(default_factory=dict)


def judge_expectation(expectation: Expectation, views: Views) -> Held:
    """Judge one line of `expect`."""
    root, _, rest = expectation.path.partition(".")
    label, _, member = rest.partition(".")
    due = expectation.due
    if root == "figures":
        return hold_number(expectation, views.figures.get(rest, ABSENT), due)
    if root == "socket":
        return _socket(expectation, views.sockets.get(label), member, due)
    if root == "job":
        return _job(expectation, views.jobs.get(label), member, due)
    if root == "stream":
        stream = views.streams.get(label)
        if stream is None:
            return Held(expectation, None, "the stream was not followed", words_of(due))
        return _stream(expectation, stream, member, due)
    session = views.sessions.get(label)
    if session is None:
        return Held(expectation, None, "the conversation was not opened", words_of(due))
    return _session(expectation, session, member, due)


def _job(expectation: Expectation, job: JobView | None, member: str, due: Any) -> Held:
    if job is None:
        return Held(expectation, None, "the job was not assigned", words_of(due))
    if member == "acks":
        return _acks(expectation, job, due)
    if member == "runs":
        return hold_number(expectation, job.runs, due)
    if not job.ended:
        return Held(expectation, None, "no job.result came", words_of(due))
    if member == "filesChangedCount":
        return hold_number(expectation, ABSENT if job.files_changed is None else job.files_changed, due)
    value = job.outcome if member == "outcome" else job.error_code
    return Held(expectation, value == due, words_of(value), words_of(due))


def _acks(expectation: Expectation, job: JobView, due: Any) -> Held:
    return _listed(expectation, job.acks, due)


def _listed(expectation: Expectation, words: Sequence[str], due: Any) -> Held:
    """A list of words: how many there are, and whether one is among them."""
    seen = f"{len(words)} ({', '.join(words) or 'none'})"
    matchers = due if isinstance(due, Mapping) else {"count": due}
    numbers = {name: value for name, value in matchers.items() if name != "contains"}
    held = _fits_number(len(words), numbers) and matchers.get("contains", "") in ("", *words)
    return Held(expectation, held, seen, words_of(due))


def _socket(expectation: Expectation, socket: SocketView | None, member: str, due: Any) -> Held:
    if socket is None:
        return Held(expectation, None, "the local agent never connected", words_of(due))
    match member:
        case "opened":
            return hold_number(expectation, socket.opened, due)
        case "fallbacks":
            return hold_number(expectation, socket.fallbacks, due)
        case "closes":
            return _listed(expectation, socket.closes, due)
        case "errors":
            return _listed(expectation, socket.errors, due)
        case _:
            return _listed(expectation, socket.refusals, due)


def _stream(expectation: Expectation, stream: StreamView, member: str, due: Any) -> Held:
    if member in ("pages", "emptyPages"):
        return hold_number(expectation, stream.pages if member == "pages" else stream.empty_pages, due)
    matchers = due if isinstance(due, Mapping) else {"count": due}
    numbers = {name: value for name, value in matchers.items() if name != "contiguous"}
    fits = _fits_number(stream.events, numbers) and stream.contiguous is matchers.get("contiguous", stream.contiguous)
    seen = f"{stream.events} events, {'contiguous' if stream.contiguous else 'not contiguous'}"
    return Held(expectation, fits, seen, words_of(due))


def _session(expectation: Expectation, session: ConversationView, member: str, due: Any) -> Held:
    if member == "truncated":
        return Held(expectation, session.truncated is due, words_of(session.truncated), words_of(due))
    return hold_turns(expectation, session.turns, due)


def hold_turns(expectation: Expectation, turns: Sequence[Mapping[str, Any]], due: Any) -> Held:
    """Turns of a conversation, of which each has a `role` and a `text`, against their number or a matcher for each."""
    roles = ", ".join(_role(turn) for turn in turns)
    seen = f"{len(turns)} turns ({roles})"
    if isinstance(due, Mapping):
        return Held(expectation, _fits_number(len(turns), due), seen, words_of(due))
    if len(turns) != len(due):
        return Held(expectation, False, seen, f"{len(due)} turns")
    for number, (turn, matcher) in enumerate(zip(turns, due, strict=True), 1):
        miss = _turn_miss(turn, matcher)
        if miss is not None:
            return Held(expectation, False, f"turn {number}: {miss}", _turn_words(matcher))
    return Held(expectation, True, seen, "; ".join(_turn_words(matcher) for matcher in due))


def _turn_miss(turn: Mapping[str, Any], matcher: Mapping[str, Any]) -> str | None:
    """What of a turn does not fit, without its content."""
    if "role" in matcher and turn.get("role") != matcher["role"]:
        return f"role {_role(turn)}"
    text = str(turn.get("text", ""))
    if "contains" in matcher and str(matcher["contains"]) not in text:
        return f"a text of {len(text)} characters without it"
    if "chars" in matcher and len(text) != matcher["chars"]:
        return f"a text of {len(text)} characters"
    return None


def _role(turn: Mapping[str, Any]) -> str:
    """A turn's role, unless it is no role at all: then it may be anything that a client wrote."""
    return str(turn.get("role")) if turn.get("role") in ROLES else "unknown"


def _turn_words(matcher: Mapping[str, Any]) -> str:
    """What is due of a turn; a piece of its text is content, so only its length is told (SEC-012)."""
    if "contains" not in matcher:
        return words_of(matcher)
    return words_of({**matcher, "contains": f"a text of {len(str(matcher['contains']))} characters"})


def hold_listed_text(expectation: Expectation, text: str, due: Mapping[str, Any]) -> Held:
    """A text by its characters and by a piece of it; neither of them is told, since both are content (SEC-012)."""
    numbers = {name: value for name, value in due.items() if name != "contains"}
    held = _fits_number(len(text), numbers) and str(due.get("contains", "")) in text
    missing = "" if str(due.get("contains", "")) in text else " without it"
    return Held(expectation, held, f"a text of {len(text)} characters{missing}", _turn_words(due))


def hold_number(expectation: Expectation, seen: Any, due: Any) -> Held:
    """A number against another, or against matchers."""
    if seen is ABSENT:
        return Held(expectation, False, "absent", words_of(due))
    matchers = due if isinstance(due, Mapping) else {"count": due}
    return Held(expectation, _fits_number(seen, matchers), words_of(seen), words_of(due))


_MATCHERS: Mapping[str, Callable[[float, float], bool]] = {
    "count": lambda seen, due: seen == due,
    "min": lambda seen, due: seen >= due,
    "max": lambda seen, due: seen <= due,
}


def _fits_number(seen: float, matchers: Mapping[str, Any]) -> bool:
    return all(_MATCHERS[name](seen, value) for name, value in matchers.items())


def words_of(value: Any) -> str:
    """A value in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {words_of(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(words_of(item) for item in value)
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
