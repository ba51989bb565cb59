"""Scripts written in tests."""

from __future__ import annotations

from lab.agent2.beats import Action, EmitLine
from lab.agent2.script import Script, parse_script

NO_CHANGE = "- result: { outcome: no_change }"


def script_of(*steps: str, orders: str = "") -> Script:
    """The script of these steps, each a YAML list item of one line; `orders` stands before them."""
    return parse_script(text_of(*steps, orders=orders), "test.yaml")


def text_of(*steps: str, orders: str = "") -> str:
    """The text of that script; the first step stands at line 4, or below the `orders`."""
    head = f"script: test\nabout: A test\n{orders}"
    return head + "steps:\n" + "".join(f"  {step}\n" for step in steps)


def actions_of(*steps: str) -> list[Action]:
    """What these steps do before the end, which is added."""
    return [beat.action for beat in script_of(*steps, NO_CHANGE).beats][:-1]


def lines_of(script: Script) -> list[EmitLine]:
    """The content lines of a script."""
    return [beat.action for beat in script.beats if isinstance(beat.action, EmitLine)]
