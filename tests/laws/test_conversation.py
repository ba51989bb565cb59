"""What was said: the prompt, and the stored turns."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged, digest
from lab.laws import Status
from tests.laws.journals import ANSWER, JOB, QUESTION, Tale

PROMPT = "prompt-whole"
TURNS = "conversation"


def chat(*inputs: str, kind: str = "chat", **told: Any) -> Tale:
    t = Tale()
    t.connect()
    t.assigned(*(inputs or (QUESTION,)), kind=kind, **told)
    t.assign(kind=kind)
    return t


@pytest.mark.req("CHAT-016")
def test_the_parts_joined_by_a_blank_line_and_trimmed() -> None:
    t = chat(" one", "two ")
    t.post()
    t.accepted("one\n\ntwo")
    assert t.status(PROMPT) is Status.HELD


@pytest.mark.req("CHAT-012", "CHAT-016", "LA-029")
@pytest.mark.parametrize("prompt", ["one\ntwo", "one\n\ntw", " one\n\ntwo ", ""])
def test_another_prompt(prompt: str) -> None:
    t = chat(" one", "two ")
    t.post()
    entry = t.accepted(prompt)
    found = t.violation(PROMPT)
    assert (found.due, found.entries) == ("the 8 bytes of the inputs", (entry,))


@pytest.mark.parametrize(("inputs", "status"), [(("one",), Status.UNKNOWN), (("two",), Status.UNKNOWN)])
def test_without_the_driver_s_word_only_an_equal_text_can_be_told(inputs: tuple[str, ...], status: Status) -> None:
    t = chat(*inputs, prompt=None)
    t.post()
    t.accepted("one ")
    assert t.status(PROMPT) is status
    t.entries.pop()
    t.accepted(inputs[0])
    assert t.status(PROMPT) is Status.HELD


def test_a_text_that_is_cut_or_invented_by_rule() -> None:
    for text in (" ", "x" * 70000):
        t = chat(text, kind="fix")
        t.post()
        t.accepted("something")
        assert t.status(PROMPT) is Status.UNKNOWN


@pytest.mark.req("CHAT-017")
def test_a_chat_without_a_text_is_never_posted() -> None:
    t = chat(" ")
    entry = t.post()
    t.accepted("something")
    found = t.violation(PROMPT)
    assert (found.seen, found.entries) == ("a chat without a text posted to agent2", (entry,))


@pytest.mark.req("CHAT-012", "CHAT-013")
def test_a_chat_s_prompt_that_is_too_large() -> None:
    t = chat("\u00e9" * 8193)
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "unknown"})
    assert t.status(PROMPT) is Status.HELD


@pytest.mark.req("CHAT-012")
def test_it_is_never_posted() -> None:
    t = chat("x" * 16385)
    t.post()
    t.accepted("x" * 16384)
    assert t.violation(PROMPT).seen == "a prompt of 16385 bytes posted to agent2"


@pytest.mark.req("CHAT-012")
def test_it_fails_with_unknown() -> None:
    t = chat("x" * 16385)
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    assert t.violation(PROMPT).due == "failed (unknown): the prompt is too large"


def test_the_largest_prompt_that_fits() -> None:
    t = chat("x" * 16384)
    t.post()
    t.accepted("x" * 16384)
    assert t.status(PROMPT) is Status.HELD


# The conversation


def answered(*, secret: bool = False, over: bool = True, **told: Any) -> Tale:
    t = chat(**told)
    t.post()
    t.line(0, role="assistant", text_digest=ANSWER, secret=secret)
    if over:
        t.ended("done", outcome="no_change")
        t.ask(2, "r", JOB)
        t.answer(1, "r")
        t.page(JOB, [(0, "line 0")], "x", done=True, name="r")
    t.ask(3, "s", JOB, "chat.session")
    t.answer(2, "s")
    return t


def test_the_two_turns() -> None:
    t = answered()
    t.turns("s", ("user", QUESTION), ("assistant", ANSWER))
    assert t.status(TURNS) is Status.HELD


@pytest.mark.parametrize(
    ("turns", "seen"),
    [
        pytest.param(
            (("user", "Other?"), ("assistant", ANSWER)), "the turn of user", marks=pytest.mark.req("CHAT-018")
        ),
        pytest.param(
            (("user", QUESTION), ("assistant", "No.")), "the turn of assistant", marks=pytest.mark.req("CHAT-056")
        ),
        pytest.param((("user", QUESTION),), "no turn of assistant", marks=pytest.mark.req("CHAT-056")),
        pytest.param((("assistant", ANSWER),), "turn 0 of assistant", marks=pytest.mark.req("CHAT-018")),
        pytest.param(
            (("assistant", ANSWER), ("user", QUESTION)), "turn 0 of assistant", marks=pytest.mark.req("CHAT-052")
        ),
        pytest.param(
            (("user", QUESTION), ("assistant", "a"), ("assistant", "b")),
            "the turn of assistant",
            marks=pytest.mark.req("CHAT-056"),
        ),
        pytest.param(
            (("user", QUESTION), ("assistant", ANSWER), ("assistant", ANSWER + "!")),
            "turn 2 of assistant",
            marks=pytest.mark.req("CHAT-056"),
        ),
        pytest.param((), "no turn of user", marks=pytest.mark.req("CHAT-018")),
    ],
)
def test_other_turns(turns: tuple[tuple[str, str], ...], seen: str) -> None:
    t = answered()
    t.turns("s", *turns)
    assert t.violation(TURNS).seen.startswith(seen)


def test_the_answer_of_a_running_chat_may_be_missing() -> None:
    t = answered(over=False)
    t.turns("s", ("user", QUESTION))
    assert t.status(TURNS) is Status.HELD


@pytest.mark.req("CHAT-060")
def test_a_secret_is_masked_in_the_turns() -> None:
    t = answered(secret=True)
    t.turns("s", ("user", QUESTION), ("assistant", "[masked]"))
    assert t.status(TURNS) is Status.HELD
    t.entries.pop()
    t.turns("s", ("user", QUESTION), ("assistant", ANSWER))
    assert t.violation(TURNS).seen == "the turn of assistant with a secret in it"


def test_what_the_driver_does_not_tell_is_not_compared() -> None:
    t = answered(user_turn=None)
    t.turns("s", ("user", "[masked]"), ("assistant", ANSWER))
    assert t.status(TURNS) is Status.HELD


@pytest.mark.req("CHAT-052", "CHAT-053")
@pytest.mark.parametrize(
    ("turns", "status"),
    [
        ((("assistant", ANSWER),), Status.HELD),
        ((("user", QUESTION), ("assistant", ANSWER)), Status.HELD),
        ((("user", QUESTION),), Status.BROKEN),
        ((("assistant", QUESTION),), Status.BROKEN),
        ((("user", ANSWER), ("user", QUESTION), ("assistant", ANSWER)), Status.BROKEN),
        ((), Status.UNKNOWN),
    ],
)
def test_the_newest_turns_are_kept(turns: tuple[tuple[str, str], ...], status: Status) -> None:
    t = answered()
    t.turns("s", *turns, truncated=True)
    assert t.status(TURNS) is status


def test_a_cut_conversation_may_lack_the_answer_of_a_running_chat() -> None:
    t = answered(over=False)
    t.turns("s", ("user", QUESTION), truncated=True)
    assert t.status(TURNS) is Status.HELD


def test_after_a_cut_the_answer_may_be_missing() -> None:
    t = chat()
    t.add(LinkChanged("agent2", "cut"), "link")
    t.post()
    t.line(0, role="assistant", text_digest=ANSWER)
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "no_change"})
    t.wait(2).ask(3, "s", JOB, "chat.session")
    t.answer(2, "s")
    t.turns("s", ("user", QUESTION))
    assert t.status(TURNS) is Status.HELD


def test_a_long_turn_may_be_cut() -> None:
    t = answered(user_turn=digest("user-turn", "x" * 70000))
    t.turns("s", ("user", "x"), ("assistant", ANSWER))
    assert t.status(TURNS) is Status.HELD
