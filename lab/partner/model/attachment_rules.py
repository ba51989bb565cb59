"""Which files a chat takes, and what a model is shown of them (AT-003); types and sizes stand in `words`."""

from __future__ import annotations

import re
from types import MappingProxyType

from lab.partner.model.words import IMAGE_TYPES, TEXT_TYPES

KIND_OF_TYPE = MappingProxyType({**dict.fromkeys(IMAGE_TYPES, "image"), **dict.fromkeys(TEXT_TYPES, "text")})
# AT-010, AT-041: how long a file waits for a message
UNSENT_LIFE_MS = 3_600_000
# AT-007, AT-042: code points
MAX_TEXT_CHARACTERS = 20_000
SHORTENED_NOTICE = "\n[This file was shortened to its first 20000 characters.]"
# AT-038
MAX_NAME_CHARACTERS = 255
NAME_OF_NAMELESS = "file"

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def mime_type(content_type: str | None) -> str | None:
    """The accepted type that a part's Content-Type names, None for any other (AT-037)."""
    bare = (content_type or "").partition(";")[0].strip().lower()
    return bare if bare in KIND_OF_TYPE else None


def clean_name(filename: str | None) -> str:
    """The base name of `filename`, fit to be shown (AT-038)."""
    base = re.split(r"[/\\]", filename or "")[-1]
    name = _CONTROLS.sub("", base).strip()[:MAX_NAME_CHARACTERS]
    return NAME_OF_NAMELESS if name in ("", ".", "..") else name


def text_for_model(content: bytes) -> str:
    """A text file as a model reads it: the first 20,000 characters, and a notice if there were more (AT-007)."""
    text = content.decode("utf-8", "replace")
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[:MAX_TEXT_CHARACTERS] + SHORTENED_NOTICE


def has_lapsed(created_ms: int, now_ms: int) -> bool:
    """Whether a file that no message used is over its hour, swept or not (AT-041); times in epoch milliseconds."""
    return now_ms - created_ms > UNSENT_LIFE_MS
