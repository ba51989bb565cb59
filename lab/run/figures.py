"""The numbers of a run, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from lab.journal.events import Event, FaultFired, Frame, SessionChanged, StreamPage
from lab.journal.partner_events import IssuerRequest, PartnerCall, PartnerEvent, PartnerStream, StoreRequest
from lab.journal.writer import Entry


@dataclass
class Figures:
    """What the end of a run's report counts; the names are those of `figures.<name>` in a scenario."""

    frames: int = 0
    """Frames that either side sent, copies made by faults aside."""
    events: int = 0
    """Events of streams that the driver took."""
    pages: int = 0
    retransmissions: int = 0
    """Data frames that a local agent sent again."""
    gateway_retransmissions: int = 0
    duplicates: int = 0
    """Acks that say duplicate."""
    resumes: int = 0
    resume_seconds: float = 0.0
    """The longest time from a fault on a link, or a lost connection, to the session that was resumed."""
    faults: int = 0
    calls: int = 0
    """Tries of calls that the driver made of a partner API and of the issuer."""
    call_retries: int = 0
    streams: int = 0
    """Streams of a run's events that the driver opened."""
    store_executed: int = 0
    """Calls for which a tool of the store ran."""
    store_refused: int = 0
    grants: int = 0

    def as_json(self) -> Mapping[str, float]:
        """Names and numbers."""
        return asdict(self)


FIGURE_NAMES = tuple(Figures.__dataclass_fields__)


def figures_of(entries: Iterable[Entry]) -> Figures:
    """Count a journal."""
    figures = Figures()
    seen: dict[tuple[str, str], None] = {}
    broken_at: float | None = None
    for entry in entries:
        event = entry.event
        match event:
            case Frame() if not event.by_lab:
                figures.frames += 1
                _count_frame(figures, event, seen)
            case StreamPage():
                figures.pages += 1
                figures.events += event.fresh
            case FaultFired():
                figures.faults += 1
                broken_at = entry.t if broken_at is None and event.target.startswith("link ") else broken_at
            case SessionChanged() if event.state == "ended":
                broken_at = entry.t if broken_at is None else broken_at
            case SessionChanged() if event.state == "resumed":
                figures.resumes += 1
                if broken_at is not None:
                    figures.resume_seconds = round(max(figures.resume_seconds, entry.t - broken_at), 3)
                    broken_at = None
            case _:
                _count_partner(figures, event)
    return figures


def _count_partner(figures: Figures, event: Event) -> None:
    match event:
        case PartnerCall():
            figures.calls += 1
            figures.call_retries += event.attempt > 1
        case PartnerStream():
            figures.streams += event.change == "opened"
        case PartnerEvent():
            figures.events += event.applied
        case StoreRequest():
            figures.store_executed += event.executed
            figures.store_refused += event.refused is not None
        case IssuerRequest():
            figures.grants += event.grant is not None
        case _:
            pass


def _count_frame(figures: Figures, frame: Frame, seen: dict[tuple[str, str], None]) -> None:
    if frame.type == "ack" and frame.payload.get("status") == "duplicate":
        figures.duplicates += 1
    if not frame.seq or frame.msg_id is None:
        return
    key = (frame.direction, frame.msg_id)
    if key not in seen:
        seen[key] = None
    elif frame.direction == "la-to-cp":
        figures.retransmissions += 1
    else:
        figures.gateway_retransmissions += 1
