"""Hiding secrets in text that somebody else wrote.

A program that logs a token rarely logs it bare: it stands in a URL, in JSON, in a Basic header. So each secret
is looked for in all of these spellings.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote, quote_plus

MASK = "[masked]"

SHORTEST = 6
"""Characters below which a text is not hidden. Hiding `on` or `1234` would blacken ordinary words all over the
output, and the pattern of black would give the text away; nothing so short keeps a secret anyway."""


class Masker:
    """Replaces every occurrence of the secrets given, in any spelling, by `[masked]`. Its repr shows none."""

    def __init__(self, secrets: Iterable[str]) -> None:
        words = dict.fromkeys(
            spelling for secret in secrets if len(secret) >= SHORTEST for spelling in spellings(secret)
        )
        self._words = tuple(words)
        self.reach = max((len(word.encode("utf-8", "surrogatepass")) for word in words), default=0)
        """Length in bytes of the longest spelling: how much text behind a cut is needed to judge what is before."""

    def mask(self, text: str, end: int | None = None) -> str:
        """`text[:end]` without secrets; one that goes on beyond `end` is hidden too."""
        limit = len(text) if end is None else min(end, len(text))
        parts: list[str] = []
        at = 0
        for start, stop in self._spans(text):
            if start >= limit:
                break
            parts += (text[at:start], MASK)
            at = stop
        parts.append(text[at:limit])
        return "".join(parts)

    def _spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Where secrets stand, in order, those that overlap or touch as one."""
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(span for word in self._words for span in _occurrences(text, word)):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged


def spellings(secret: str) -> tuple[str, ...]:
    """How `secret` may be written: bare, in JSON, in a URL, in base64 of something around it.

    A secret of several lines is also looked for line by line, since output comes in lines.
    """
    if not secret:
        return ()
    lines = [line for line in secret.splitlines() if len(line.strip()) >= SHORTEST]
    texts = dict.fromkeys((secret, *lines))
    return tuple(dict.fromkeys(spelling for text in texts for spelling in _spellings(text)))


def _spellings(text: str) -> Iterable[str]:
    yield text
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")
    raw = text.encode("utf-8", "surrogatepass")
    for quoted in (quote(raw, safe=""), quote(raw, safe="/"), quote_plus(raw)):
        yield quoted
        yield re.sub("%..", lambda match: match.group().lower(), quoted)
    yield from _base64_spellings(raw)


def _base64_spellings(raw: bytes) -> Iterable[str]:
    """Base64 of `raw` alone, and the characters that stay the same whatever stands before and behind it."""
    for alphabet in (b"+/", b"-_"):
        whole = base64.b64encode(raw, alphabet).decode()
        yield whole
        yield whole.rstrip("=")
        for before in range(3):
            encoded = base64.b64encode(bytes(before) + raw, alphabet).decode()
            loose = (before + len(raw)) % 3 != 0
            core = encoded.rstrip("=")[(0, 2, 3)[before] :]
            yield core[:-1] if loose else core


def _occurrences(text: str, word: str) -> Iterable[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + 1)
