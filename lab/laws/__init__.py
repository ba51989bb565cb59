"""The promises of both legs, each a sentence and a pure function from a journal to what broke it.

Nothing of lab.protocol stands behind them: they judge what that core does.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.journal.events import ParticipantDeclared
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
    peer_revision,
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
from lab.laws.partner.registry import PARTNER_LAWS
from lab.laws.view import JournalView

PARTNER_ROLE = "partner_api"
"""The role of the participant that makes a run one of the partner leg."""

CHAT_LAWS: tuple[Law, ...] = (
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
    *peer_revision.LAWS,
    *gateway_sockets.LAWS,
    *gateway_jobs.LAWS,
    *gateway_reading.LAWS,
    *fallback.LAWS,
    *content.LAWS,
    *privacy.LAWS,
    *leftovers.LAWS,
)
"""Every law of the chat leg; all are judged in every run of it."""

ALL_LAWS: tuple[Law, ...] = (*CHAT_LAWS, *PARTNER_LAWS)


def judge_all(entries: Sequence[Entry], laws: Sequence[Law] | None = None) -> list[Judged]:
    """Each law's judgement of a journal, in the order of `laws`; None: all laws of the journal's leg."""
    if laws is None:
        roles = {entry.event.role for entry in entries if isinstance(entry.event, ParticipantDeclared)}
        laws = PARTNER_LAWS if PARTNER_ROLE in roles else CHAT_LAWS
    return law.judge_all(entries, laws)


__all__ = [
    "ALL_LAWS",
    "CHAT_LAWS",
    "PARTNER_LAWS",
    "JournalView",
    "Judged",
    "Judgement",
    "Law",
    "Status",
    "Violation",
    "judge_all",
]
