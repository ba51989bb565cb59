"""The promises of the chat leg, each a sentence and a pure function from a journal to what broke it.

Nothing of lab.protocol stands behind them: they judge what that core does.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.journal.writer import Entry
from lab.laws import content, frames, jobs, law, numbering, outcome, resume, signatures, stream
from lab.laws.law import Judged, Judgement, Law, Status, Violation
from lab.laws.view import JournalView

ALL_LAWS: tuple[Law, ...] = (
    *stream.LAWS,
    *jobs.LAWS,
    *outcome.LAWS,
    *numbering.LAWS,
    *resume.LAWS,
    *frames.LAWS,
    *signatures.LAWS,
    *content.LAWS,
)
"""Every law; all are judged in every run."""


def judge_all(entries: Sequence[Entry], laws: Sequence[Law] = ALL_LAWS) -> list[Judged]:
    """Each law's judgement of a journal, in the order of `laws`."""
    return law.judge_all(entries, laws)


__all__ = ["ALL_LAWS", "JournalView", "Judged", "Judgement", "Law", "Status", "Violation", "judge_all"]
