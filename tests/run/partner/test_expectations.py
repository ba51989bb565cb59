"""What the end of a scenario of the partner leg expects: held, broken, or nothing to judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.journal.events import ExpectationJudged
from lab.run.verdict import Outcome
from lab.scenario.loader import as_text
from tests.run.partner.played import ASKED, OPENED, QUESTION, events_of, finding_of, notes, play, told

TALK = (
    ASKED
    + """\
  - follow: { run: r1 }
  - poll: { run: r1 }
  - history: { conversation: c1, limit: 1 }
  - context: { conversation: c1 }
"""
)
"""A run of eleven events that calls one tool; its history has two pages of one item each."""

NEVER = """\
  - membership: { user: anna }
  - conversation: { conversation: c1, user: anna }
  - message: { run: r1, conversation: c1, text: x, fails: MCP_CONTEXT_DENIED }
"""
"""Nothing of a run, a stream, a history or a context."""

ANSWER_CHARS = len("I look it up.\n\nProduct 9001 is in the catalogue, and its details are as the store has them.")


def judged(folder: Path, steps: str, *expect: tuple[str, Any]) -> dict[str, list[tuple[bool | None, str]]]:
    """By path, what was judged and seen, in order."""
    result = play(folder, steps, more=as_text({"expect": [{path: due} for path, due in expect]}))
    events = events_of(result, ExpectationJudged)
    assert len(events) == len(expect), told(result)
    assert [(held.held, held.seen) for held in result.verdict.held] == [(one.held, one.seen) for one in events]
    found: dict[str, list[tuple[bool | None, str]]] = {}
    for event in events:
        found.setdefault(event.path, []).append((event.held, event.seen))
    return found


def test_what_a_whole_turn_comes_to(tmp_path: Path) -> None:
    """Each path held by what is there, and broken by anything else."""
    items = [{"role": "assistant", "contains": "9001"}, {"role": "user", "contains": QUESTION}]
    found = judged(
        tmp_path,
        TALK,
        ("run.r1.status", "completed"),
        ("run.r1.status", "failed"),
        ("run.r1.reason", None),
        ("run.r1.reason", "CHAT_EXECUTION_FAILED"),
        ("run.r1.text", {"contains": "9001", "min": 10}),
        ("run.r1.text", {"contains": "9002"}),
        ("run.r1.text", {"count": ANSWER_CHARS}),
        ("run.r1.text", {"max": 3}),
        ("run.r1.toolErrors", 0),
        ("run.r1.toolErrors", {"min": 1}),
        ("run.r1.iterations", 2),
        ("run.r1.iterations", {"max": 1}),
        ("run.r1.toolMs", {"max": 60_000}),
        ("run.r1.toolMs", {"min": 60_000}),
        ("run.r1.costUsd", "0.000000000000"),
        ("stream.r1.events", 11),
        ("stream.r1.events", {"contiguous": True, "max": 10}),
        ("stream.r1.events", {"contiguous": True, "min": 11}),
        ("stream.r1.events", {"contiguous": False}),
        ("stream.r1.opened", 1),
        ("stream.r1.opened", {"min": 2}),
        ("history.c1.pages", 2),
        ("history.c1.pages", 1),
        ("history.c1.items", 2),
        ("history.c1.items", {"max": 1}),
        ("history.c1.items", items),
        ("history.c1.items", [dict(one) for one in reversed(items)]),
        ("history.c1.items", [dict(items[0])]),
        ("context.c1.active", True),
        ("context.c1.active", False),
        ("context.c1.version", 1),
        ("context.c1.version", {"min": 2}),
        ("figures.events", 11),
        ("figures.store_executed", {"min": 2}),
    )
    assert found["run.r1.status"] == [(True, "completed"), (False, "completed")]
    assert found["run.r1.reason"] == [(True, "none"), (False, "none")]
    assert [held for held, _ in found["run.r1.text"]] == [True, False, True, False]
    assert found["run.r1.text"][1][1] == f"a text of {ANSWER_CHARS} characters without it"
    assert found["run.r1.toolErrors"] == [(True, "0"), (False, "0")]
    assert found["run.r1.iterations"] == [(True, "2"), (False, "2")]
    assert [held for held, _ in found["run.r1.toolMs"]] == [True, False]
    ((held, cost),) = found["run.r1.costUsd"]
    assert (held, len(cost.partition(".")[2])) == (False, 12)
    assert [held for held, _ in found["stream.r1.events"]] == [True, False, True, False]
    assert found["stream.r1.events"][0][1] == "11 events, contiguous"
    assert found["stream.r1.opened"] == [(True, "1"), (False, "1")]
    assert found["history.c1.pages"] == [(True, "2"), (False, "2")]
    assert [held for held, _ in found["history.c1.items"]] == [True, False, True, False, False]
    assert found["context.c1.active"] == [(True, "true"), (False, "true")]
    assert found["context.c1.version"] == [(True, "1"), (False, "1")]
    assert found["figures.events"] == [(True, "11")]
    assert found["figures.store_executed"] == [(False, "1")]


@pytest.mark.parametrize(
    ("steps", "path", "due", "seen"),
    [
        (NEVER, "run.r1.status", "completed", "the run never began"),
        (NEVER, "run.r1.text", {"contains": "x"}, "the run never began"),
        (NEVER, "stream.r1.events", 1, "no event of the run came"),
        (NEVER, "stream.r1.opened", 1, "no event of the run came"),
        (NEVER, "history.c1.items", 1, "the history was not read"),
        (NEVER, "history.c1.pages", 1, "the history was not read"),
        (NEVER, "context.c1.active", True, "the context was not read"),
        (NEVER, "context.c1.version", 1, "the context was not read"),
        (ASKED, "run.r1.status", "completed", "the run was neither followed to its end nor polled"),
        (ASKED, "run.r1.text", {"contains": "x"}, "the run was not followed to its end"),
        (f"{ASKED}  - poll: {{ run: r1 }}\n", "run.r1.text", {"min": 1}, "the run was not followed to its end"),
        (
            f"{ASKED}  - poll: {{ run: r1, until: now }}\n",
            "run.r1.totalMs",
            {"max": 5},
            "the run was running when it was asked for last",
        ),
    ],
)
def test_nothing_to_judge_by_is_no_pass(steps: str, path: str, due: Any, seen: str, tmp_path: Path) -> None:
    result = play(tmp_path, steps, more=as_text({"expect": [{path: due}]}))
    assert [(held.held, held.seen) for held in result.verdict.held] == [(None, seen)]
    assert result.verdict.outcome is Outcome.UNKNOWN
    assert finding_of(result, "expectation").seen == seen


def test_a_run_that_was_polled_tells_its_status_and_numbers(tmp_path: Path) -> None:
    """Without its stream being read."""
    found = judged(
        tmp_path,
        f"{ASKED}  - poll: {{ run: r1 }}\n",
        ("run.r1.status", "completed"),
        ("run.r1.iterations", 2),
        ("run.r1.toolErrors", 0),
    )
    assert [one for (one,) in found.values()] == [(True, "completed"), (True, "2"), (True, "0")]


def test_content_is_compared_and_not_told(tmp_path: Path) -> None:
    """SEC-012: neither what was due nor what came stands in the journal."""
    expect = [{"run.r1.text": {"contains": "a secret word"}}, {"history.c1.items": [{"contains": "another word"}]}]
    result = play(tmp_path, TALK, more=as_text({"expect": expect}))
    assert [held.held for held in result.verdict.held] == [False, False]
    journal = (result.folder / "journal.jsonl").read_text("utf-8")
    for words in ("secret word", "another word", "in the catalogue", QUESTION):
        assert words not in journal
    assert "a text of 13 characters" in journal


def test_expectations_are_judged_after_a_failed_step(tmp_path: Path) -> None:
    """By what there was until then."""
    result = play(
        tmp_path,
        f"{OPENED}  - membership: {{ user: anna, fails: EXECUTION_DENIED }}\n  - context: {{ conversation: c1 }}\n",
        more="expect: [{ context.c1.version: 0 }, { figures.calls: { min: 2 } }]\n",
    )
    assert notes(result)[-1] == "it succeeded, EXECUTION_DENIED was due"
    assert [held.held for held in result.verdict.held] == [None, True]
