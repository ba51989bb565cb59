"""Digests in findings become places, and only that."""

from __future__ import annotations

import pytest

from lab.journal.events import (
    Agent2Job,
    Agent2Line,
    BodyAnswered,
    Event,
    SutOutput,
    digest,
)
from lab.run.places import NOWHERE, ROWS, Places, content_rows
from tests.run.made import entries, frame

LINES = [Agent2Line("j", i, f"sha-{i}", 9, f"fixtures/agent2/a.yaml:{i + 7}") for i in range(4)]
PLACES = Places(
    texts={
        digest("", "the question")["sha256"]: "the input of q1, scenarios/a.yaml:9",
        digest("", "the answer")["sha256"]: "fixtures/agent2/a.yaml:30",
    },
    canaries={"key": "fixtures/agent2/a.yaml:8", "prompt": "the input of q1", "answer.agent2.chat.0": "a.yaml:30"},
    inputs={"j": "the input of q1, scenarios/a.yaml:9"},
    lines={"j": LINES},
)


def page(*events: tuple[object, object]) -> BodyAnswered:
    told = tuple({"i": i, "sha256": f"sha-{line}", "chars": 9} for i, line in events)
    return BodyAnswered("c1", "r", "job.stream", "", "j", "ok", 9, "", {"events": told})


def session(*turns: tuple[str, str]) -> BodyAnswered:
    told = tuple({"role": role, **digest("", text), "chars": 9} for role, text in turns)
    return BodyAnswered("c1", "r", "chat.session", "", "j", "ok", 9, "", {"turns": told})


def rows(*events: Event, places: Places = PLACES) -> tuple[str, ...]:
    return content_rows(entries(*events), range(len(events)), places)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (LINES[2], ["agent2's line 2 is fixtures/agent2/a.yaml:9"]),
        (page((0, 0), (1, 1), (2, 2)), ["events 0 to 2 are fixtures/agent2/a.yaml:7 to 9"]),
        (
            page((0, 0), (1, 1), (1, 1), (2, 3)),
            [
                "events 0 to 1 are fixtures/agent2/a.yaml:7 to 8",
                "event 1 is fixtures/agent2/a.yaml:8",
                "event 2 is fixtures/agent2/a.yaml:10",
            ],
        ),
        (page((0, 0), (1, "else")), ["event 0 is fixtures/agent2/a.yaml:7", f"event 1 is {NOWHERE}"]),
        (page(("x", 0)), ["event x is fixtures/agent2/a.yaml:7"]),
        (
            session(("user", "the question"), ("assistant", "the answer"), ("assistant", "the answer")),
            [
                "turn 0 (user) is the input of q1, scenarios/a.yaml:9",
                "turns 1 to 2 (assistant) are fixtures/agent2/a.yaml:30",
            ],
        ),
        (
            session(("user", "another")),
            [f"turn 0 (user) is {NOWHERE}; due was the input of q1, scenarios/a.yaml:9"],
        ),
        (
            Agent2Job("j", "accepted", "chat", digest("prompt", "the question")),
            ["the prompt at agent2 is the input of q1, scenarios/a.yaml:9"],
        ),
        (
            Agent2Job("j", "accepted", "chat", digest("prompt", "the quest")),
            [f"the prompt at agent2 is {NOWHERE}", "due was the input of q1, scenarios/a.yaml:9"],
        ),
        (Agent2Job("j", "done"), []),
        (
            frame(type="job.event", payload={"phase": digest("token", "the answer"), "more": digest("x", "?")}),
            ["job.event phase is fixtures/agent2/a.yaml:30"],
        ),
        (
            frame(type="job.assign", payload={"inputs": ({"inline": digest("inline", "the question")},)}),
            ["job.assign inputs[0].inline is the input of q1, scenarios/a.yaml:9"],
        ),
        (
            frame(type="log", facts={"canaries": ({"id": "key", "place": "payload.x"}, {"id": "none", "place": "y"})}),
            ["canary key is fixtures/agent2/a.yaml:8"],
        ),
        (
            SutOutput("local_agent", "out", digest("line", "?"), ("prompt",)),
            ["canary prompt is the input of q1"],
        ),
    ],
)
def test_what_is_told_of_an_entry(event: Event, told: list[str]) -> None:
    """Its places; nothing of a digest that nobody knows where nothing was due."""
    assert list(rows(event)) == told


def test_the_answers_turn_names_the_answer_that_was_due() -> None:
    """Of the lines the one that is the answer."""
    line = Agent2Line("j", 0, "sha-0", 9, "a.yaml:7", role="assistant")
    places = Places(lines={"j": [line]})
    assert rows(session(("assistant", "cut")), places=places) == (f"turn 0 (assistant) is {NOWHERE}; due was a.yaml:7",)


def test_lines_of_one_text_keep_their_places() -> None:
    """The second of two equal lines is not taken for the first."""
    lines = [Agent2Line("j", i, "same", 9, f"a.yaml:{i}") for i in range(3)]
    told = tuple({"i": i, "sha256": "same"} for i in range(3))
    body = BodyAnswered("c1", "r", "job.stream", "", "j", "ok", 9, "", {"events": told})
    assert rows(body, places=Places(lines={"j": lines})) == ("events 0 to 2 are a.yaml:0 to 2",)


def test_what_belongs_into_a_body_is_no_canary_of_it() -> None:
    """The question and the answer are to be there; a key is not."""
    body = BodyAnswered(
        "c1", "r", "file", "", None, "ok", 9, "", {"canaries": ("prompt", "answer.agent2.chat.0", "key")}
    )
    assert rows(body) == ("canary key is fixtures/agent2/a.yaml:8",)


def test_a_finding_names_so_many_places() -> None:
    """And counts the rest."""
    told = rows(page(*((i * 2, 0) for i in range(ROWS + 3))))
    assert len(told) == ROWS
    assert told[-1] == "… and 4 more"


def test_only_the_entries_of_a_finding_are_told() -> None:
    """Each once."""
    journal = entries(LINES[0], LINES[1], LINES[1])
    assert content_rows(journal, (1, 2), PLACES) == ("agent2's line 1 is fixtures/agent2/a.yaml:8",)
