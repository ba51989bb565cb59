"""Revisions of the contract as laws read them: who has which, and how an older side has to take a frame."""

from __future__ import annotations

from dataclasses import replace

from lab.journal.events import Frame, ParticipantDeclared


def declared_revision(declared: ParticipantDeclared | None) -> str | None:
    """The revision of the contract that a participant was declared with; None where the lab does not know it."""
    value = declared.facts.get("revision") if declared is not None else None
    return value if isinstance(value, str) else None


def newer(revision: str, than: str) -> bool:
    """Whether a revision came after another."""
    return _order(revision) > _order(than)


def as_read_by(frame: Frame, revision: str | None) -> Frame:
    """A frame with the verdicts of a reader of `revision`; None is one that is not known to differ.

    The witness judges by the contract of the gateway that it stands at. That is the reader of an agent's frames; what
    the gateway sends is read by an agent that may be of an older revision (CP-018).
    """
    since, known = frame.facts.get("since"), frame.facts.get("typeSince")
    if revision is None or since is None or not newer(since, revision):
        return frame
    if known is not None and newer(known, revision):
        return replace(frame, facts={**frame.facts, "type": "unknown_type", "direction": None})
    return replace(frame, facts={**frame.facts, "schema": {"keyword": f"since {since}", "path": ""}})


def _order(revision: str) -> tuple[int, ...]:
    return tuple(int(part) for part in revision.split(".") if part.isdecimal())
