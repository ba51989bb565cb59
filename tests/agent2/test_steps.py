from __future__ import annotations

import pytest

from lab.agent2.beats import AwaitApproval, EmitFrame, EmitLine, End, FrameType, LineType
from lab.agent2.script import parse_script
from lab.agent2.steps import MAX_BEATS, MAX_CHARS
from lab.errors import Place, ScenarioError
from tests.agent2.written import NO_CHANGE, actions_of, lines_of, script_of, text_of

DEALT = """\
script: test
about: A test
steps:
  - text:
      events: 3
      every: 20ms
      of: |
        one two three
        four

        five six
  - result: { outcome: no_change }
"""


def test_each_step_is_one_action() -> None:
    assert actions_of(
        '- text: "a"',
        "- tool: { name: read, hits: 2, found: true }",
        "- answer: b",
        "- done",
        "- approval: { id: ap-1 }",
        "- audit: { code: policy_checked, count: 1 }",
        "- event: { phase: plan, iteration: 2, filesChanged: 3 }",
        "- event: { state: preparing, terminal: false }",
    ) == [
        EmitLine(LineType.TEXT, (("text", "a"),), "test.yaml:4"),
        EmitLine(LineType.TOOL, (("name", "read"), ("hits", 2), ("found", True)), "test.yaml:5"),
        EmitLine(LineType.ANSWER, (("text", "b"),), "test.yaml:6"),
        EmitLine(LineType.DONE, (), "test.yaml:7"),
        AwaitApproval("ap-1"),
        EmitFrame(FrameType.AUDIT_EVENT, {"code": "policy_checked", "count": 1}),
        EmitFrame(FrameType.JOB_EVENT, {"state": "running", "phase": "plan", "iteration": 2, "filesChanged": 3}),
        EmitFrame(FrameType.JOB_EVENT, {"state": "preparing", "terminal": False}),
    ]


@pytest.mark.parametrize(
    ("step", "end"),
    [
        ("result: { outcome: no_change }", End({"outcome": "no_change"}, "done")),
        ("result: { outcome: failed, errorCode: llm }", End({"outcome": "failed", "errorCode": "llm"}, "failed")),
        ("result: { outcome: cancelled }", End({"outcome": "cancelled"}, "cancelled")),
        (
            "result: { outcome: pr_opened, tests: { passed: 2, failed: 0, skipped: 1 } }",
            End({"outcome": "pr_opened", "tests": {"passed": 2, "failed": 0, "skipped": 1}}, "done"),
        ),
        (
            "result: { outcome: no_change, filesChangedCount: x }",
            End({"outcome": "no_change", "filesChangedCount": "x"}, "done"),
        ),
        ("end: failed", End(None, "failed")),
        ("end: silent", End(None, None)),
    ],
)
def test_the_last_step_ends_the_job(step: str, end: End) -> None:
    assert script_of(f"- {step}").beats[-1].action == end


def test_waits_add_up_before_the_next_thing() -> None:
    script = script_of("- wait: 200ms", "- wait: 1s", "- done", NO_CHANGE)
    assert [beat.delay for beat in script.beats] == [pytest.approx(1.2), 0.0]


def test_a_text_is_dealt_into_events_that_join_to_it() -> None:
    script = parse_script(DEALT, "test.yaml")
    lines = lines_of(script)
    assert [(line.members[0][1], line.source) for line in lines] == [
        ("one two ", "test.yaml:8"),
        ("three\nfour\n\n", "test.yaml:8"),
        ("five six\n", "test.yaml:11"),
    ]
    assert [beat.delay for beat in script.beats] == [0.02, 0.02, 0.02, 0.0]


def test_a_text_without_a_number_of_events_is_dealt_by_lines() -> None:
    lines = lines_of(parse_script(DEALT.replace("events: 3", "# by lines"), "test.yaml"))
    assert [(line.members[0][1], line.source) for line in lines] == [
        ("one two three\n", "test.yaml:8"),
        ("four\n\n", "test.yaml:9"),
        ("five six\n", "test.yaml:11"),
    ]


def test_a_repeat_counts_from_one() -> None:
    script = script_of('- repeat: { count: 3, every: 1s, text: "part {n} of 3" }', NO_CHANGE)
    assert [line.members[0][1] for line in lines_of(script)] == ["part 1 of 3", "part 2 of 3", "part 3 of 3"]
    assert [beat.delay for beat in script.beats] == [1.0, 1.0, 1.0, 0.0]


def test_a_script_lists_the_canaries_it_needs() -> None:
    script = script_of("- done", '- answer: "{canary:b} {canary:a} {canary:b}"', NO_CHANGE)
    assert script.canaries == {"b": Place("test.yaml", 5, 13), "a": Place("test.yaml", 5, 13)}


@pytest.mark.parametrize(
    ("steps", "line", "path", "words"),
    [
        (("- done",), 4, "steps", "last step must be `result:`"),
        ((NO_CHANGE, "- done"), 5, "steps[1]", "nothing may follow"),
        (("- text: ''",), 4, "steps[0].text", "a text is due"),
        (("- text: 9001",), 4, "steps[0].text", "quotes"),
        (("- text: { of: a b, events: 3 }",), 4, "steps[0].text.events", "2 words, too few for 3"),
        (("- text: { off: a b }",), 4, "steps[0].text.off", "`of`"),
        (("- wait: 20",), 4, "steps[0].wait", "a number and a unit"),
        (("- wait: [1s]",), 4, "steps[0].wait", "a duration is due"),
        (("- repeat: { count: 0, text: a }",), 4, "steps[0].repeat.count", "whole number"),
        (("- tool: { path: a }",), 4, "steps[0].tool", "`name` is missing"),
        (("- tool: { name: a, type: b }",), 4, "steps[0].tool.type", "always `tool`"),
        (("- event: { state: runing }",), 4, "steps[0].event.state", "a state is due"),
        (("- event: { iteration: -1 }",), 4, "steps[0].event.iteration", "whole number"),
        (("- audit: { phase: plan }",), 4, "steps[0].audit", "`code` is missing"),
        (("- approval: { id: 'a b' }",), 4, "steps[0].approval.id", "1 to 128 letters"),
        (("- approval: { id: a }", "- approval: { id: a }"), 5, "steps[1].approval.id", "waited for before"),
        (("- result: { outcome: ok }",), 4, "steps[0].result.outcome", "an outcome is due"),
        (("- result: { outcome: failed, tests: { passed: 1 } }",), 4, "steps[0].result.tests", "`failed` is missing"),
        (("- end: now",), 4, "steps[0].end", "an end without a result"),
        (("- don",), 4, "steps[0]", "a step is due"),
        (("- { done: 1, wait: 1s }",), 4, "steps[0]", "one word with its value"),
        (("- answr: a",), 4, "steps[0].answr", "`answr` is no step"),
        (("- answer: '{canary:}'",), 4, "steps[0].answer", "A canary is written"),
    ],
)
def test_a_fault_names_line_path_and_what_is_due(steps: tuple[str, ...], line: int, path: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        script_of(*steps)
    fault = caught.value
    assert words in fault.message
    assert (fault.place.file, fault.place.line, fault.path) == ("test.yaml", line, path)


def test_an_unknown_step_has_a_nearest_word() -> None:
    with pytest.raises(ScenarioError, match="Did you mean `answer`"):
        script_of("- answr: a")


def test_a_script_is_bounded() -> None:
    half = f'- repeat: {{ count: {MAX_BEATS}, text: "{{n}}" }}'
    with pytest.raises(ScenarioError, match=f"{MAX_BEATS} things at most"):
        parse_script(text_of(half, "- done"), "test.yaml")
    big = "x" * (MAX_CHARS // MAX_BEATS + 1)
    with pytest.raises(ScenarioError, match=f"{MAX_CHARS} characters at most"):
        parse_script(text_of(f"- repeat: {{ count: {MAX_BEATS}, text: {big} }}"), "test.yaml")
