"""The turns of a conversation: what a chat's answer was, and the body of `chat.session`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_TURNS = 1000
MAX_TEXT = 65536
MAX_BODY_BYTES = 64 * 32768


@dataclass(frozen=True)
class Turn:
    """One turn; `role` is user or assistant, `ts` an RFC 3339 time in UTC."""

    role: str
    ts: str
    text: str


def session_body(turns: Sequence[Turn], max_bytes: int = MAX_BODY_BYTES) -> bytes | None:
    """The body of `chat.session`, within `max_bytes` and 2 MiB; None when not even an empty one fits.

    The newest turns win; `truncated` tells that something was left out.
    """
    # CHAT-053: at most 1000 turns, and texts of at most 65536 characters.
    kept = turns[-MAX_TURNS:]
    truncated = len(kept) < len(turns) or any(len(turn.text) > MAX_TEXT for turn in kept)
    budget = min(max_bytes, MAX_BODY_BYTES) - len(_body([], truncated=False))
    if budget < 0:
        return None
    encoded: list[str] = []
    # CHAT-052: the oldest ones go first when the body is too large.
    for turn in reversed(kept):
        item = _dumps({"role": turn.role, "ts": turn.ts, "text": turn.text[:MAX_TEXT]})
        budget -= len(item.encode()) + (1 if encoded else 0)
        if budget < 0:
            truncated = True
            break
        encoded.append(item)
    return _body(encoded[::-1], truncated)


def _body(items: Iterable[str], truncated: bool) -> bytes:
    return f'{{"turns":[{",".join(items)}],"truncated":{"true" if truncated else "false"}}}'.encode()


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class AnswerText:
    """The assistant's turn, gathered from agent2's lines: the answer event's text, else the joined text events."""

    def __init__(self) -> None:
        self._answer: str | None = None
        self._parts: list[str] = []
        self._size = 0

    def take(self, line: str) -> None:
        """Look at one line; one that is no event of agent2's format is passed over."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict) or not isinstance(event.get("text"), str):
            return
        # CHAT-056: a final answer beats the pieces. One character above the limit tells that something is missing.
        if event.get("type") == "answer":
            self._answer = event["text"][: MAX_TEXT + 1]
        elif event.get("type") == "text" and self._size <= MAX_TEXT:
            part = event["text"][: MAX_TEXT + 1 - self._size]
            self._parts.append(part)
            self._size += len(part)

    def text(self) -> str:
        """What the assistant said; empty when nothing did."""
        found = "".join(self._parts) if self._answer is None else self._answer
        return found.encode("utf-8", "replace").decode()
