from __future__ import annotations

import json

import pytest

from lab.agent2.beats import EmitLine, LineType


@pytest.mark.req("A2-049")
@pytest.mark.parametrize(
    ("line", "text"),
    [
        (EmitLine(LineType.TEXT, (("text", "a\nb"),), "f:1"), '{"type":"text","text":"a\\nb"}'),
        (EmitLine(LineType.TOOL, (("name", "x"), ("hits", 2)), "f:1"), '{"type":"tool","name":"x","hits":2}'),
        (EmitLine(LineType.ANSWER, (("text", "né ✓"),), "f:1"), '{"type":"answer","text":"né ✓"}'),
        (EmitLine(LineType.DONE, (), "f:1"), '{"type":"done"}'),
    ],
)
def test_a_line_is_one_json_text_in_the_order_written(line: EmitLine, text: str) -> None:
    assert line.encoded() == text
    assert json.loads(text)["type"] == line.type


def test_canaries_are_named_and_filled() -> None:
    line = EmitLine(LineType.TOOL, (("name", "{canary:a}-{canary:b-2}"), ("hits", 2)), "f:1")
    assert line.canaries == ("a", "b-2")
    assert line.filled({"a": "X", "b-2": r"\1"}).members == (("name", r"X-\1"), ("hits", 2))
