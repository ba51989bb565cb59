from __future__ import annotations

import pytest

from lab.partner.model.script import BUILT_IN, DELAYS, ModelIteration, Script, ScriptShelf, Text, Thinking
from lab.partner.model.script_reading import parse_script


def test_a_shelf_takes_the_fitting_script_then_the_general_one() -> None:
    def script(name: str, when: str = "") -> str:
        return f"script: {name}\nabout: a\n{when}iterations:\n  - model: m\n    steps: []\n"

    boots = parse_script(script("boots", "when: { contains: boots }\n"), "boots.yaml")
    other = parse_script(script("other", "when: { agent: agent-2, contains: boots }\n"), "other.yaml")
    general = parse_script(script("general"), "general.yaml")
    shelf = ScriptShelf({"agent-1": (general, boots), "agent-2": (other,)})
    assert shelf.choose("agent-1", "any boots?").name == "boots"
    assert shelf.choose("agent-1", "any hats?").name == "general"
    assert shelf.choose("agent-2", "any boots?").name == "other"
    assert shelf.choose("agent-2", "any hats?") is BUILT_IN
    assert shelf.choose("agent-3", "any boots?") is BUILT_IN


def test_the_last_iteration_comes_again_however_often_it_is_asked_for() -> None:
    first, last = ModelIteration("m", (Text("a"),)), ModelIteration("m", (Thinking("b"), Text("c")))
    script = Script("s", "about", (first, last), endless=True)
    assert [script.iteration(index) for index in range(4)] == [first, last, last, last]
    assert script.answer == "ac"


@pytest.mark.req("TM-054")
@pytest.mark.parametrize("name", DELAYS)
def test_every_place_to_wait_can_be_written(name: str) -> None:
    text = f"script: s\nabout: a\ndelays: {{ {name}: 7ms }}\niterations:\n  - model: m\n    steps: []\n"
    script = parse_script(text, "s.yaml")
    assert script.delay(name) == 0.007
    assert sum(script.delay(other) for other in DELAYS) == 0.007
