"""The numbers of a run."""

from __future__ import annotations

from dataclasses import replace

from lab.journal.events import FaultFired, SessionChanged, StreamPage
from lab.journal.partner_events import IssuerRequest, PartnerCall, PartnerEvent, PartnerStream, StoreRequest
from lab.run.figures import FIGURE_NAMES, Figures, figures_of
from tests.run.made import entries, frame


def test_an_empty_journal_has_zeros() -> None:
    """Nothing happened."""
    assert figures_of([]) == Figures()
    assert tuple(Figures().as_json()) == FIGURE_NAMES


def test_frames_copies_and_repetitions_are_told_apart() -> None:
    """A copy made by a fault was not sent; the same msgId in one direction was sent again."""
    figures = figures_of(
        entries(
            frame(type="job.event", seq=1, msg_id="a"),
            frame(type="job.event", seq=1, msg_id="a", fate="copied"),
            frame(type="job.event", seq=1, msg_id="a"),
            frame(type="job.assign", seq=1, msg_id="a", direction="cp-to-la"),
            frame(type="job.assign", seq=1, msg_id="a", direction="cp-to-la"),
            frame(type="ack", seq=0, msg_id="k", payload={"status": "duplicate"}),
            frame(type="ack", seq=0, msg_id="k", payload={"status": "accepted"}),
        )
    )
    assert (figures.frames, figures.retransmissions, figures.gateway_retransmissions, figures.duplicates) == (
        6,
        1,
        1,
        1,
    )


def test_pages_and_events() -> None:
    """Only events that were new are counted."""
    figures = figures_of(entries(StreamPage("j", 1, 40, 40, False), StreamPage("j", 2, 0, 40, True)))
    assert (figures.events, figures.pages) == (40, 2)


def test_the_longest_time_to_a_resume() -> None:
    """From the fault, not from the socket's end that followed it; the worst of several."""
    figures = figures_of(
        entries(
            SessionChanged("c1", "ready", "local_agent"),
            FaultFired("f", "cut", "link gateway"),  # 0.5
            SessionChanged("c1", "ended", "local_agent"),
            SessionChanged("c2", "resumed", "local_agent"),  # 1.5
            SessionChanged("c2", "ended", "local_agent"),  # 2.0
            SessionChanged("c3", "resumed", "local_agent"),  # 2.5
            FaultFired("g", "drop", "ack #1 from gateway"),
            SessionChanged("c4", "resumed", "local_agent"),
        )
    )
    assert (figures.resumes, figures.resume_seconds, figures.faults) == (3, 1.0, 2)


def test_figures_of_the_partner_leg() -> None:
    """Tries of calls, streams that were opened, events that were new, and what the store did of what it was asked."""
    event = PartnerEvent(1, "r1", "r1:1", 1, "text", "text", "0" * 64)
    figures = figures_of(
        entries(
            PartnerCall("c1", "PUT /memberships", 0, error="reset"),
            PartnerCall("c1", "PUT /memberships", 200, attempt=2),
            PartnerStream(1, "r1", "opened"),
            event,
            replace(event, applied=False),
            PartnerStream(1, "r1", "broken", events=2),
            PartnerStream(2, "r1", "refused", status=410),
            StoreRequest("POST", "2025", "initialize", 200),
            StoreRequest("POST", "2025", "tools/call", 200, tool="t", executed=True),
            StoreRequest("POST", "2025", "tools/call", 403, tool="t", refused="grant-expired"),
            IssuerRequest("conversations", 200),
            IssuerRequest("grants", 200, grant="abc"),
        )
    )
    assert figures == Figures(events=1, calls=2, call_retries=1, streams=1, store_executed=1, store_refused=1, grants=1)
