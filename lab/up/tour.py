"""The tour: what a partner's developer copies into a shell, from membership to a streamed answer."""

from __future__ import annotations

import shlex
from pathlib import Path

_HERE = Path(__file__).parent
TOUR = _HERE / "tour.sh"
WORDS = _HERE / "words.sh"
"""The few functions and variables that the tour's commands use."""


def tour_text(shell: Path, question: str) -> str:
    """The commands, each with a line on what it does. They hold no secret: the keys come from the file `shell`."""
    text = TOUR.read_text("utf-8")
    # Without a slash a shell looks for it in its PATH.
    named = str(shell) if shell.parent != Path() else f"./{shell}"
    return text.replace("@SHELL@", shlex.quote(named)).replace("@QUESTION@", question)
