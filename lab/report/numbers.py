"""Numbers in words."""

from __future__ import annotations


def plural(number: int, word: str) -> str:
    """A number of things, whose `word` takes an s unless there is one."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
