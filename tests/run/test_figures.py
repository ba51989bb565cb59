"""The numbers of a run."""

from __future__ import annotations

from lab.journal.events import FaultFired, SessionChanged, StreamPage
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
