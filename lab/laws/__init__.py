"""The promises of the chat leg, each a sentence and a pure function from a journal to what broke it.

Nothing of lab.protocol stands behind them: they judge what that core does.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.journal.writer import Entry
from lab.laws import (
    agent2_client,
    capabilities,
    chunks,
    content,
    conversation,
    cursors,
    fallback,
    frames,
    jobs,
    law,
    leftovers,
    liveness,
    longpoll,
    numbering,
    outcome,
    progress,
    queue,
    refusals,
    requests,
    resume,
    retransmission,
    signatures,
    stream,
)
from lab.laws.law import Judged, Judgement, Law, Status, Violation
from lab.laws.view import JournalView

ALL_LAWS: tuple[Law, ...] = (
    *stream.LAWS,
    *longpoll.LAWS,
    *cursors.LAWS,
    *requests.LAWS,
    *chunks.LAWS,
    *conversation.LAWS,
    *jobs.LAWS,
    *queue.LAWS,
    *progress.LAWS,
    *outcome.LAWS,
    *agent2_client.LAWS,
    *numbering.LAWS,
    *retransmission.LAWS,
    *resume.LAWS,
    *liveness.LAWS,
    *frames.LAWS,
    *refusals.LAWS,
    *signatures.LAWS,
    *capabilities.LAWS,
    *fallback.LAWS,
    *content.LAWS,
    *leftovers.LAWS,
)
"""Every law; all are judged in every run."""


def judge_all(entries: Sequence[Entry], laws: Sequence[Law] = ALL_LAWS) -> list[Judged]:
    """Each law's judgement of a journal, in the order of `laws`."""
    return law.judge_all(entries, laws)


__all__ = ["ALL_LAWS", "JournalView", "Judged", "Judgement", "Law", "Status", "Violation", "judge_all"]
