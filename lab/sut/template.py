"""Texts with placeholders: what a profile says about a program, before a run gives it its values.

`{tenant_id}` stands for a value of the run, `{blank:checkout}` for what the user must fill in; `{{` and `}}`
are braces. Nothing else in braces is allowed, so that a slip is found before a program starts with it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

BLANK = "blank:"
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateError(ValueError):
    """A text that is no template. `word` is the piece at fault as written, `nearest` what may have been meant."""

    def __init__(self, message: str, word: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.word = word
        self.nearest = nearest


def nearest_word(word: str, known: tuple[str, ...]) -> str | None:
    """The one of `known` that is most like `word`, or None when none is like it."""
    found = difflib.get_close_matches(word, known, n=1)
    return found[0] if found else None


@dataclass(frozen=True)
class Template:
    """A text cut into literal texts and names; a name is a placeholder or `blank:` and a blank's name."""

    pieces: tuple[tuple[str, bool], ...]
    """Each piece with whether it is a name."""

    def names(self) -> tuple[str, ...]:
        """The names in the order of the text."""
        return tuple(piece for piece, is_name in self.pieces if is_name)

    def blanks(self) -> tuple[str, ...]:
        """The blanks among the names, without their prefix."""
        return tuple(name.removeprefix(BLANK) for name in self.names() if name.startswith(BLANK))

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with every name replaced; `values` holds all of them."""
        return "".join(values[piece] if is_name else piece for piece, is_name in self.pieces)


def parse_template(text: str, known: tuple[str, ...]) -> Template:
    """Cut `text`. A name that is not in `known`, or a brace without its partner, raises `TemplateError`."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _PIECE.finditer(text):
        pieces.append((text[end : match.start()], False))
        pieces.append(_piece(match, known))
        end = match.end()
    pieces.append((text[end:], False))
    return Template(tuple(piece for piece in pieces if piece[0]))


def _piece(match: re.Match[str], known: tuple[str, ...]) -> tuple[str, bool]:
    written = match.group()
    if written in ("{{", "}}"):
        return written[0], False
    name = match.group(1)
    if name is None:
        raise TemplateError(f"`{written}` has no partner; a brace that is meant is written twice.", written)
    if name not in known:
        due = ", ".join(f"{{{word}}}" for word in known)
        nearest = nearest_word(name, known)
        message = f"`{written}` is no placeholder; there are {due}, and {{{{ for a brace."
        raise TemplateError(message, written, f"{{{nearest}}}" if nearest else None)
    return name, True
