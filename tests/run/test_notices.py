"""What is told although no promise is about it."""

from __future__ import annotations

import pytest

from lab.journal.events import SutChanged
from lab.run.notices import Notice, notices_of
from lab.run.verdict import Outcome
from tests.run.made import STARTED, entries, verdict


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        (
            {"signal": "SIGKILL", "killed": 1},
            "did not end within 0.5 s of its stop signal: 1 process was killed",
        ),
        (
            {"signal": "SIGKILL", "killed": 3},
            "did not end within 0.5 s of its stop signal: 3 processes were killed",
        ),
        ({"code": 0, "killed": 2}, "ended and left others running: 2 processes were killed"),
    ],
)
def test_a_program_that_had_to_be_killed(detail: dict[str, object], told: str) -> None:
    """After how long, and how many; the run passes all the same."""
    journal = entries(STARTED, SutChanged("mine", "stopping"), SutChanged("mine", "killed", detail))
    reached = verdict(journal)
    assert reached.notices == (Notice("mine", told, 2),)
    assert reached.outcome is Outcome.PASS


def test_a_program_that_ends_when_it_is_told_to() -> None:
    """Nothing is said."""
    journal = entries(SutChanged("mine", "stopping"), SutChanged("mine", "stopped", {"code": 0}))
    assert notices_of(journal) == ()


def test_each_program_has_its_own_time() -> None:
    """Two that are stopped together."""
    detail = {"signal": "SIGKILL", "killed": 1}
    journal = entries(
        SutChanged("a", "stopping"),
        SutChanged("b", "stopping"),
        SutChanged("a", "killed", detail),
        SutChanged("b", "killed", detail),
    )
    assert [(one.participant, one.text.split(" of ")[0]) for one in notices_of(journal)] == [
        ("a", "did not end within 1.0 s"),
        ("b", "did not end within 1.0 s"),
    ]
