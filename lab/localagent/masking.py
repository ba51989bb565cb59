"""Taking secrets out of what a chat leaves behind (CHAT-025, CHAT-026, CHAT-060).

The patterns are the replaceable part. Each is linear: runs are possessive or end the match, everything else has
a small bound. What stands in a JSON string stays a JSON string, since no pattern crosses a quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "[masked]"

_PEM_LABEL = "[A-Z0-9 ]{0,40}PRIVATE KEY-----"
# A pattern's group `keep`, if it has one, stays in front of the mask.
PATTERNS: tuple[re.Pattern[str], ...] = (
    # A private key, up to its end line, or to the end of the string or text that holds it.
    re.compile(
        rf'-----BEGIN {_PEM_LABEL}(?:[^"\\]|\\[^"])*?(?:-----END {_PEM_LABEL}|(?=\\?(?:"|\Z)))',
        re.DOTALL,
    ),
    re.compile(r"(?P<keep>\bbearer\s{1,8})[A-Za-z0-9._~+/=-]{8,}+", re.IGNORECASE),
    re.compile(
        r"(?<![A-Za-z0-9])(?:"
        r"sk-[A-Za-z0-9_-]{16,}+|gh[opsur]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+|(?:AKIA|ASIA)[0-9A-Z]{12,}+"
        r")"
    ),
    re.compile(
        r"(?P<keep>(?:password|passwd|passphrase|pwd|secret|api[_-]?key)"
        r"""(?:\\{0,3}["'])?\s{0,4}[=:]\s{0,4}(?:\\{0,3}["'])?)"""
        r"""[^\s"'\\,;&]++""",
        re.IGNORECASE,
    ),
)


def mask(text: str, patterns: Sequence[re.Pattern[str]] = PATTERNS) -> str:
    """`text` with every secret that the patterns find replaced by `[masked]`; other text stays as it is."""
    for pattern in patterns:
        text = pattern.sub(_masked, text)
    return text


def _masked(match: re.Match[str]) -> str:
    return (match.groupdict().get("keep") or "") + MASK
