"""What the store does wrong because it was told to: rules, and which of them a request meets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from lab.errors import UsageError
from lab.store.headers import Era

STATUSES = (401, 403, 404, 429, 500, 503)
MAX_SECONDS = 86_400.0
MAX_BYTES = 64 << 20


class Wrong(StrEnum):
    """What goes wrong. The first six are done in place of a tool; with all others it has run: its answer suffers."""

    HTTP_STATUS = "http-status"
    REDIRECT = "redirect"
    JSONRPC_ERROR = "jsonrpc-error"
    IS_ERROR = "is-error"
    REFUSAL = "refusal"
    """Refused as a call without a grant is, in the store's style."""
    LOST_SESSION = "lost-session"
    SLOW = "slow"
    HANG = "hang"
    PROTOCOL_ERROR = "protocol-error"
    """JSON that is no JSON-RPC message."""
    WRONG_ID = "wrong-id"
    EMPTY_ARRAY = "empty-array"
    TRUNCATED_JSON = "truncated-json"
    SSE_CUT = "sse-cut"
    SSE_CUT_WITH_ID = "sse-cut-with-id"
    HUGE_ANSWER = "huge-answer"
    RESET = "reset"
    """A reset in the middle of the answer."""
    CUT = "cut"
    """The connection is closed in place of an answer."""


ONLY_2025 = frozenset({Wrong.SSE_CUT_WITH_ID, Wrong.LOST_SESSION})
"""What needs sessions."""

_ONLY_CALLS = frozenset({Wrong.IS_ERROR, Wrong.HUGE_ANSWER, Wrong.REFUSAL})
_ANY_REQUEST = frozenset({Wrong.SLOW, Wrong.HANG, Wrong.HTTP_STATUS, Wrong.REDIRECT, Wrong.CUT, Wrong.LOST_SESSION})
"""All others need an answer with a message in it, which a notification has not."""
_NOTIFICATIONS = "notifications/"


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """One rule. It counts the requests that fit it, and strikes the `nth` of them, from 1, or all without one.

    `method` is a JSON-RPC method, `tool` the tool of a tools/call, `era` one of the two wires; None fits any. Only
    requests that would be served count. `seconds` is how long `slow` waits, `status` what `http-status` answers,
    `location` where a `redirect` (307) points, `size` how many bytes a `huge-answer` adds, and `text` what an error
    says: a marker can be followed in it. A rule that cannot be raises `UsageError`.
    """

    wrong: Wrong
    method: str | None = None
    tool: str | None = None
    nth: int | None = None
    era: Era | None = None
    seconds: float = 1.0
    status: int = 500
    location: str = "/elsewhere"
    size: int = 1 << 20
    text: str = "The store was told to fail here."

    def __post_init__(self) -> None:
        if fault := _fault(self):
            raise UsageError(f"misbehaviour {self.wrong}: {fault}")

    def fits(self, era: Era, method: str, tool: str | None) -> bool:
        """Whether a request is one of those that the rule counts."""
        if self.wrong in ONLY_2025 and era is not Era.SESSIONS:
            return False
        if method.startswith(_NOTIFICATIONS) and self.wrong not in _ANY_REQUEST:
            return False
        if method == "initialize" and self.wrong is Wrong.LOST_SESSION:
            return False
        return (
            self.era in (None, era)
            and self.method in (None, method)
            and self.tool in (None, tool)
            and (self.wrong not in _ONLY_CALLS or method == "tools/call")
        )


class Misbehaviours:
    """The rules that hold now, with their counts."""

    def __init__(self) -> None:
        self._rules: list[Misbehaviour] = []
        self._counts: list[int] = []

    def set(self, rules: Iterable[Misbehaviour]) -> None:
        """These rules in place of all others; they count from here."""
        self._rules = list(rules)
        self._counts = [0] * len(self._rules)

    def add(self, rules: Iterable[Misbehaviour]) -> None:
        """These rules beside the others."""
        for rule in rules:
            self._rules.append(rule)
            self._counts.append(0)

    def meet(self, era: Era, method: str, tool: str | None) -> Misbehaviour | None:
        """Count a request; the first rule that strikes it."""
        struck = None
        for index, rule in enumerate(self._rules):
            if not rule.fits(era, method, tool):
                continue
            self._counts[index] += 1
            if struck is None and rule.nth in (None, self._counts[index]):
                struck = rule
        return struck


def _fault(rule: Misbehaviour) -> str | None:
    """Why the rule cannot be."""
    if rule.wrong in ONLY_2025 and rule.era is Era.STATELESS:
        return "exists on the wire of 2025 only, which has sessions and numbered events"
    if rule.wrong in _ONLY_CALLS and rule.method not in (None, "tools/call"):
        return "concerns the results of tools: leave `method` out, or make it tools/call"
    if (rule.method or "").startswith(_NOTIFICATIONS) and rule.wrong not in _ANY_REQUEST:
        return "needs an answer, which a notification has not"
    if rule.method == "initialize" and rule.wrong is Wrong.LOST_SESSION:
        return "needs a session, which an initialize has not"
    if rule.tool is not None and rule.method not in (None, "tools/call"):
        return "`tool` goes with the method tools/call"
    if rule.nth is not None and rule.nth < 1:
        return f"`nth` counts from 1, and is {rule.nth}"
    if not 0 <= rule.seconds <= MAX_SECONDS:
        return f"`seconds` is 0 to {MAX_SECONDS:.0f}"
    if rule.wrong is Wrong.HTTP_STATUS and rule.status not in STATUSES:
        return f"`status` is one of {', '.join(map(str, STATUSES))}"
    if not 0 <= rule.size <= MAX_BYTES:
        return f"`size` is 0 to {MAX_BYTES} bytes"
    if rule.wrong is Wrong.REDIRECT and not _stays_here(rule.location):
        return "`location` is a path or a loopback URL: nobody is sent away from this machine"
    return None


def _stays_here(location: str) -> bool:
    if not location.isascii() or not location.isprintable() or " " in location or "\\" in location:
        return False
    try:
        parts = urlsplit(location)
    except ValueError:
        return False
    if not parts.netloc:
        return not parts.scheme and location.startswith("/") and not location.startswith("//")
    return parts.scheme in ("http", "https") and parts.hostname in ("127.0.0.1", "::1", "localhost")
