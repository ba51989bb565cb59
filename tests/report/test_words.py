"""Findings, laws and figures in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.laws.law import Judged, Status
from lab.report.words import HEADS, MEANINGS, details, figures_line, headline, laws_line, notice_line
from lab.run.figures import Figures
from lab.run.notices import Notice
from lab.run.verdict import Finding, Outcome
from tests.run.made import judged, verdict


def test_every_outcome_has_its_words() -> None:
    """None is forgotten, none twice."""
    assert set(HEADS) == set(MEANINGS) == set(Outcome)
    assert len(set(HEADS.values())) == len(set(MEANINGS.values())) == len(Outcome)


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (Finding(Outcome.FAIL, "step", "it"), "step   it"),
        (Finding(Outcome.FAIL, "acks", "All.", participant="local_agent"), "acks (local_agent)   All."),
        (Finding(Outcome.FAIL, "acks", "All.", requirements=("A-1", "B-2")), "acks   All.   A-1 B-2"),
    ],
)
def test_a_headline(finding: Finding, line: str) -> None:
    """What, who, the promise, and its ids."""
    assert headline(finding) == line


def test_details_leave_out_what_is_empty() -> None:
    """And put the two places into one line."""
    assert details(Finding(Outcome.FAIL, "step", "it"), "a.yaml") == []
    full = Finding(
        Outcome.FAIL,
        "x",
        "y",
        "seen",
        "due",
        "near",
        entries=(3, 4),
        line=24,
        context="link gateway healed at 2",
        content=("event 1 is a.yaml:7", "event 2 is a.yaml:9"),
    )
    assert details(full, "a.yaml") == [
        ("seen", "seen"),
        ("due", "due"),
        ("near", "near"),
        ("text", "event 1 is a.yaml:7\nevent 2 is a.yaml:9"),
        ("where", "journal 3, 4 (link gateway healed at 2) · a.yaml:24"),
    ]
    assert details(Finding(Outcome.FAIL, "x", "y", line=2), "a.yaml") == [("where", "a.yaml:2")]


def test_a_notice_in_a_line() -> None:
    """Whom it is about and where it shows."""
    assert notice_line(Notice("mine", "did not end", 4)) == "mine did not end (journal 4)"


def test_the_laws_in_a_line() -> None:
    """Only the numbers that are not zero."""
    assert laws_line(verdict(laws=[judged(Status.HELD)] * 3)) == "laws: 3 held"
    every = [judged(status) for status in Status]
    assert laws_line(verdict(laws=every)) == (
        "laws: 1 held · 1 broken · 1 excused by a fault · 1 unknown · 1 had nothing to judge"
    )


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        (Figures(frames=3), "3 frames · 0 sent again"),
        (Figures(frames=1, events=1, pages=1), "1 frame · 1 event in 1 page · 0 sent again"),
        (Figures(frames=3, events=12, pages=2), "3 frames · 12 events in 2 pages · 0 sent again"),
        (Figures(frames=9, retransmissions=1, gateway_retransmissions=2), "9 frames · 3 sent again (1 by the agent)"),
        (Figures(calls=1, events=1, streams=1, store_executed=1), "1 call · 1 event in 1 stream · 1 tool run"),
        (
            Figures(calls=9, call_retries=2, events=12, streams=2),
            "9 calls (2 again) · 12 events in 2 streams · 0 tool runs",
        ),
        (Figures(frames=9, resumes=1, resume_seconds=3.14), "9 frames · 0 sent again · resumed in 3.1 s"),
    ],
)
def test_the_figures_in_a_line(figures: Figures, line: str) -> None:
    """What there was."""
    assert figures_line(figures) == line


def test_what_a_law_that_held_could_not_tell_is_counted() -> None:
    """So that a pass does not look better than it is."""
    told = judged(Status.HELD)
    for unsure, words in ((0, "laws: 1 held"), (1, "1 case could not be told"), (3, "3 cases could not be told")):
        one = Judged(told.law, replace(told.judgement, unsure=unsure))
        assert laws_line(verdict(laws=[one])).endswith(words)
