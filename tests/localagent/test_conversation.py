import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.localagent.conversation import MAX_BODY_BYTES, AnswerText, Turn, session_body
from tests.localagent.doubles import TS


def decoded(turns: list[Turn], max_bytes: int = MAX_BODY_BYTES) -> tuple[list[str], bool]:
    raw = session_body(turns, max_bytes)
    assert raw is not None
    assert len(raw) <= max_bytes
    body = json.loads(raw)
    assert set(body) == {"turns", "truncated"}
    assert all(set(turn) == {"role", "ts", "text"} for turn in body["turns"])
    return [turn["text"] for turn in body["turns"]], body["truncated"]


@pytest.mark.req("CHAT-051")
def test_a_conversation_in_order() -> None:
    raw = session_body([Turn("user", TS, "é?"), Turn("assistant", TS, "")])
    assert raw is not None
    assert json.loads(raw) == {
        "turns": [{"role": "user", "ts": TS, "text": "é?"}, {"role": "assistant", "ts": TS, "text": ""}],
        "truncated": False,
    }


@pytest.mark.req("CHAT-052")
def test_the_oldest_turns_go_when_the_body_is_too_large() -> None:
    turns = [Turn("user", TS, f"{number:03}" + "x" * 60000) for number in range(40)]
    texts, truncated = decoded(turns)
    assert truncated
    assert 30 < len(texts) < 40
    assert texts == [turn.text for turn in turns[-len(texts) :]]


@pytest.mark.req("CHAT-053")
def test_at_most_1000_turns_and_65536_characters() -> None:
    turns = [Turn("user", TS, str(number)) for number in range(1001)]
    assert decoded(turns) == ([str(number) for number in range(1, 1001)], True)
    assert decoded(turns[:1000])[1] is False
    assert decoded([Turn("user", TS, "é" * 65536)]) == (["é" * 65536], False)
    assert decoded([Turn("user", TS, "é" * 65537)]) == (["é" * 65536], True)


@given(st.lists(st.text(max_size=30), max_size=20), st.integers(31, 600))
def test_the_bound_holds_and_the_newest_turns_stay(texts: list[str], max_bytes: int) -> None:
    kept, truncated = decoded([Turn("user", TS, text) for text in texts], max_bytes)
    assert kept == texts[len(texts) - len(kept) :]
    assert truncated is (len(kept) < len(texts))


def test_a_bound_below_an_empty_body() -> None:
    assert session_body([], 20) is None


@pytest.mark.req("CHAT-056")
@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (['{"type":"text","text":"a"}', '{"type":"text","text":"b"}', '{"type":"done"}'], "ab"),
        (['{"type":"text","text":"a"}', '{"type":"answer","text":"final"}', '{"type":"text","text":"z"}'], "final"),
        (['{"type":"tool","text":"t"}', "no json", "[]", '{"type":"text","text":5}', "[" * 100_000], ""),
        ([], ""),
        ([r'{"type":"answer","text":"\ud800"}'], "?"),
    ],
)
def test_the_assistants_turn(lines: list[str], text: str) -> None:
    answer = AnswerText()
    for line in lines:
        answer.take(line)
    assert answer.text() == text


def test_an_endless_answer_is_bounded_but_still_counts_as_too_long() -> None:
    answer = AnswerText()
    for _ in range(100):
        answer.take(json.dumps({"type": "text", "text": "x" * 10000}))
    assert len(answer.text()) == 65537
