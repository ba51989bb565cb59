from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ScenarioError
from lab.partner.model.script import (
    Attempt,
    Charge,
    Flush,
    OnFailure,
    Pause,
    Text,
    Thinking,
    ToolCall,
    When,
)
from lab.partner.model.script_reading import load_script, load_scripts, parse_script
from lab.partner.model.usage import TokenCounts

FIXTURES = Path(__file__).parents[3] / "fixtures" / "partner"
SHIPPED = {
    "endless",
    "exception",
    "failing-tool",
    "hello",
    "long-answer",
    "product-9001",
    "slow-stages",
    "stop-on-refusal",
    "two-models",
}

FULL = """\
script: full
about: every word of the language
when: { agent: agent-1, contains: boots }
max_iterations: 3
delays: { queue: 10ms, tool_setup: 1s }
classification: { model: small, after: 5ms, usage: { input: 1, output: 2 } }
iterations:
  - model: large
    attempts: [ { model: older, after: 1ms } ]
    deliver: 2ms
    steps:
      - thinking: "hm"
      - text: "a"
      - text: ""
      - wait: 3ms
      - text: { of: "one two three", events: 2, every: 4ms }
      - repeat: { count: 2, text: "{n}," }
      - tool: { name: catalog_get, input: { id: 1, deep: [1.5, null, true, "x"] }, on_failure: stop, worker: 6ms }
      - tools: [ { name: a }, { name: b } ]
    usage: { input: 3, output: 4, cache_read: 5, cache_write: 6, cache_write_1h: 7 }
  - model: large
    blocking: true
    steps: [ { text: "z" } ]
    fails: "raw"
billing: [ { kind: runtime_seconds, pico: 9 }, { kind: gpu_seconds } ]
flush: { after: 8ms, fails: true }
"""


def test_every_word_is_read() -> None:
    script = parse_script(FULL, "full.yaml")
    assert script.when == When("agent-1", "boots")
    assert (script.max_iterations, script.endless) == (3, False)
    assert (script.delay("queue"), script.delay("tool_setup"), script.delay("other")) == (0.01, 1.0, 0.0)
    assert script.classification == Attempt("small", 0.005, TokenCounts(1, 2))
    assert script.billing == (Charge("runtime_seconds", 9), Charge("gpu_seconds", None))
    assert script.flush == Flush(0.008, True)
    first, last = script.iterations
    assert first.deltas == (
        Thinking("hm"),
        Text("a"),
        Text(""),
        Pause(0.003),
        Pause(0.004),
        Text("one "),
        Pause(0.004),
        Text("two three"),
        Text("1,"),
        Text("2,"),
    )
    assert first.calls == (
        (ToolCall("catalog_get", {"id": 1, "deep": [1.5, None, True, "x"]}, OnFailure.STOP, 0.006),),
        (ToolCall("a", {}), ToolCall("b", {})),
    )
    assert first.usage == TokenCounts(3, 4, 5, 6, 7)
    assert (first.attempts, first.deliver) == ((Attempt("older", 0.001),), 0.002)
    assert (last.blocking, last.fails, last.usage) == (True, "raw", None)
    assert script.answer == "aone two three1,2,z"


HEAD = "script: s\nabout: a\niterations:\n"
ONE = "{ model: m, steps: [] }"
FAULTS = {
    "": (1, "empty"),
    "script: s\nabout: a\n": (1, "`iterations` is missing"),
    "script: s\nabout: a\niteration: []\n": (3, "`iteration` is not known here"),
    HEAD[:-1] + " []\n": (3, "an iteration is due"),
    HEAD + "  - model: m\n    steps: [ { sing: x } ]\n": (5, "`sing` is no step"),
    HEAD + "  - model: m\n    steps: [ { text: 5 } ]\n": (5, "A text is due"),
    HEAD + "  - model: m\n    steps: [ { wait: soon } ]\n": (5, "no duration"),
    HEAD + "  - model: m\n    steps: [ { tool: { name: t } } ]\n": (4, "last iteration without one is due"),
    HEAD + "  - model: m\n    steps: [ { tool: { name: t } }, { text: x } ]\n": (5, "next iteration"),
    HEAD + "  - model: m\n    steps: []\n  - model: m\n    steps: []\n": (4, "The turn is over"),
    HEAD + "  - model: m\n    steps: [ { text: { of: one, events: 2 } } ]\n": (5, "too few for 2 events"),
    HEAD + "  - model: m\n    steps: [ { tools: [ { name: t } ] } ]\n": (5, "a single one is `tool:`"),
    HEAD + "  - model: m\n    steps: [ { tool: { name: t, input: 5 } } ]\n": (5, "mapping of its arguments"),
    HEAD + "  - model: m\n    steps: [ { tool: { name: t, on_failure: retry } } ]\n": (5, "`answer`, `stop`"),
    HEAD + "  - model: ä\n    steps: []\n": (4, "A model's name"),
    HEAD + "  - model: m\n    steps: []\n    usage: { input: 1 }\n": (6, "`output` is missing"),
    HEAD + "  - model: m\n    steps: []\n    usage: { input: -1, output: 0 }\n": (6, "a whole number"),
    HEAD + "  - model: m\n    steps: [ { tool: { name: t } } ]\n    fails: x\n": (6, "asks for no tool"),
    HEAD + "  - model: m\n    steps: []\nendless: true\n": (4, "calls a tool"),
    HEAD + "  - model: m\n    steps: []\nmax_iterations: 0\n": (6, "the most iterations"),
    HEAD + "  - model: m\n    steps: []\ndelays: { lunch: 1s }\n": (6, "`lunch` is not known here"),
    HEAD + "  - model: m\n    steps: []\nbilling: [ { kind: llm_tokens, pico: 1 } ]\n": (6, "usage alone"),
    HEAD + "  - model: m\n    steps: []\nwhen: {}\n": (6, "`agent`, `contains` or both"),
    HEAD + "  - model: m\n    steps: [ { repeat: { count: 10001, text: x } } ]\n": (5, "from 1 to 10000"),
    "script: s\nabout: a\nmax_iterations: 1\niterations:\n  - model: m\n    steps: [ { tool: { name: t } } ]\n"
    "  - model: m\n    steps: []\n": (7, "this one never comes"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_says_where_it_is_and_what_is_due(text: str) -> None:
    line, words = FAULTS[text]
    with pytest.raises(ScenarioError) as met:
        parse_script(text, "broken.yaml")
    assert words in str(met.value)
    assert met.value.place.file == "broken.yaml"
    assert met.value.place.line == line


def test_a_script_does_not_fill_the_memory() -> None:
    steps = ", ".join('{ repeat: { count: 10000, text: "x" } }' for _ in range(2))
    with pytest.raises(ScenarioError, match="10000 deltas"):
        parse_script(HEAD + f"  - model: m\n    steps: [ {steps} ]\n", "long.yaml")


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_script(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"script: s\nabout: \xe9\n")
    with pytest.raises(ScenarioError, match=r"latin.yaml:2.*not UTF-8"):
        load_script(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ScenarioError, match="too large"):
        load_script(tmp_path / "large.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScenarioError, match="no script"):
        load_scripts(tmp_path / "empty")


@given(st.text(max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    with pytest.raises(ScenarioError) as met:
        parse_script(text, "odd.yaml")
    assert met.value.place.line >= 1


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\ufeff"))
        | st.integers(0, 86_400_000),
        max_size=8,
    )
)
def test_deltas_come_back_as_they_were_written(told: list[str | int]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    steps = [f"- wait: {one}ms" if isinstance(one, int) else f"- text: {quoted(one)}" for one in told]
    block = "\n".join(f"      {step}" for step in steps)
    text = f"{HEAD}  - model: m\n    steps:{' []' if not steps else ''}\n{block}\n"
    if any(ord(letter) > 0xFFFF or not letter.isprintable() for letter in text if letter != "\n"):
        return
    (iteration,) = parse_script(text, "t.yaml").iterations
    assert iteration.deltas == tuple(Pause(one * 0.001) if isinstance(one, int) else Text(one) for one in told)


def test_a_folder_is_one_script_for_all_and_others_for_some(tmp_path: Path) -> None:
    for name, when in (("b", ""), ("a", "when: { contains: boots }\n")):
        (tmp_path / f"{name}.yaml").write_text(f"{when}{HEAD.replace('script: s', f'script: {name}')}  - {ONE}\n")
    assert [script.name for script in load_scripts(tmp_path)] == ["a", "b"]
    (tmp_path / "c.yaml").write_text(f"{HEAD}  - {ONE}\n")
    with pytest.raises(ScenarioError, match=r"c\.yaml:1:1: Nothing would choose this script, as b\.yaml"):
        load_scripts(tmp_path)


def test_the_shipped_scripts_can_be_read() -> None:
    scripts = {script.name: script for script in map(load_script, FIXTURES.glob("*.yaml"))}
    assert set(scripts) == SHIPPED
    texts = [delta for delta in scripts["long-answer"].iterations[0].deltas if isinstance(delta, Text)]
    assert len(texts) >= 200
    for name, script in scripts.items():
        assert (FIXTURES / f"{name}.yaml").is_file()
        assert script.about
