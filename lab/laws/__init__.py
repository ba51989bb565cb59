"""The promises of the chat leg, each a sentence and a pure function from a journal to what broke it.

Nothing of lab.protocol stands behind them: they judge what that core does.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.journal.writer import Entry
from lab.laws import (
    admission,
    agent2_client,
    approvals,
    audits,
    cancels,
    capabilities,
    chunks,
    content,
    conversation,
    cursors,
    endings,
    fallback,
    frames,
    gateway_jobs,
    gateway_reading,
    gateway_sockets,
    handshake,
    jobs,
    law,
    leftovers,
    liveness,
    longpoll,
    numbering,
    outcome,
    privacy,
    progress,
    queue,
    refusals,
    renewal,
    requests,
    resume,
    retransmission,
    signatures,
    stream,
    unhandled,
    window,
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
    *admission.LAWS,
    *queue.LAWS,
    *cancels.LAWS,
    *approvals.LAWS,
    *progress.LAWS,
    *audits.LAWS,
    *outcome.LAWS,
    *agent2_client.LAWS,
    *numbering.LAWS,
    *window.LAWS,
    *retransmission.LAWS,
    *resume.LAWS,
    *renewal.LAWS,
    *liveness.LAWS,
    *frames.LAWS,
    *endings.LAWS,
    *handshake.LAWS,
    *refusals.LAWS,
    *unhandled.LAWS,
    *signatures.LAWS,
    *capabilities.LAWS,
    *gateway_sockets.LAWS,
    *gateway_jobs.LAWS,
    *gateway_reading.LAWS,
    *fallback.LAWS,
    *content.LAWS,
    *privacy.LAWS,
    *leftovers.LAWS,
)
"""Every law; all are judged in every run."""


def judge_all(entries: Sequence[Entry], laws: Sequence[Law] = ALL_LAWS) -> list[Judged]:
    """Each law's judgement of a journal, in the order of `laws`."""
    return law.judge_all(entries, laws)


__all__ = ["ALL_LAWS", "JournalView", "Judged", "Judgement", "Law", "Status", "Violation", "judge_all"]
