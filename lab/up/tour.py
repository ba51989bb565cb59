"""The tour: what a partner's developer copies into a shell, from membership to a streamed answer."""

from __future__ import annotations

import shlex
from pathlib import Path

_HERE = Path(__file__).parent
TOUR = _HERE / "tour.sh"
WORDS = _HERE / "words.sh"
"""The few functions and variables that the tour's commands use."""

_BINDING = ("# 3  ", "# 4  ")
_NO_STORE = "# 3, 4  left out: the agent of this scenario has no store (mcp: none), so that there is nothing to bind"


def tour_text(shell: Path, question: str, *, has_store: bool = True) -> str:
    """The commands, each with a line on what it does. They hold no secret: the keys come from the file `shell`.

    Without `has_store` the agent has no store, and the steps that bind a grant are left out.
    """
    text = TOUR.read_text("utf-8")
    if not has_store:
        steps = text.split("\n\n")
        first = next(index for index, step in enumerate(steps) if step.startswith(_BINDING))
        kept = [step for step in steps if not step.startswith(_BINDING)]
        text = "\n\n".join((*kept[:first], _NO_STORE, *kept[first:]))
    # Without a slash a shell looks for it in its PATH.
    named = str(shell) if shell.parent != Path() else f"./{shell}"
    return text.replace("@SHELL@", shlex.quote(named)).replace("@QUESTION@", question)
