"""What a live peer is given for a trace: a grade for what it did, and its manner of closing told apart.

As the Autobahn suite does for WebSocket itself: who refuses rightly and then hangs up badly has passed the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lab.contract.traces import Due, Side
from lab.errors import ExitStatus

TOO_BIG = 1009
"""WebSocket's own close code for a message above the receiver's limit (RFC 6455, 7.4.1)."""

_CLASSES = (
    # what may be said of a frame's form
    frozenset({"bad_frame", "unknown_type", "schema_violation", "frame_too_large", "payload_too_large"}),
    # a list of types for each direction knows a foreign one as little as an unknown one
    frozenset({"unknown_type", "wrong_direction"}),
    frozenset({"handshake_violation", "not_ready", "wrong_direction"}),
    frozenset({"seq_gap", "seq_replayed"}),
    frozenset({"chunk_out_of_order", "chunk_inconsistent"}),
    frozenset({"tenant_mismatch", "agent_mismatch", "params_mismatch", "unauthorized"}),
    frozenset({"signature_mode_insufficient", "unauthorized"}),
)


class Grade(StrEnum):
    """pass: as due. non-strict: another reaction that is allowed. unknown: the case could not be brought about."""

    PASS = "pass"  # noqa: S105
    NON_STRICT = "non-strict"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Closing:
    """How a connection ended. `code` is None without a close frame; `by` nobody is a cut, or no end at all."""

    code: int | None
    by: Literal["peer", "lab", "nobody"]
    clean: bool

    def __str__(self) -> str:
        if self.by == "nobody":
            return "cut without a close frame"
        code = "no code" if self.code is None else str(self.code)
        return f"{code} by {self.by}{'' if self.clean else ', not clean'}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One trace played against a live peer, `peer` being its side."""

    name: str
    peer: Side
    grade: Grade
    due: str
    seen: str
    close: str
    """The manner of closing, in words; empty where it does not matter."""
    close_as_due: bool = True


def grade_code(due: Due, code: str) -> Grade:
    """The grade of refusing with a wire code where `due` is."""
    if code in due.codes:
        return Grade.PASS
    related = any(code in kinds and due.error in kinds for kinds in _CLASSES)
    return Grade.NON_STRICT if related else Grade.FAIL


def closing_words(closing: Closing | None, due_code: int | None) -> tuple[str, bool]:
    """The manner of closing in words, and whether it is as due.

    `due_code` is the close code that a refusal wants, None where the lab itself closes plainly.
    """
    if closing is None:
        return ("left open" if due_code is not None else "the close was not answered"), False
    text = str(closing)
    if closing.by == "nobody":
        return text, False
    if due_code is None:
        return text, closing.clean
    right = closing.by == "peer" and closing.clean and closing.code == due_code
    return (text if right else f"{text}, due is {due_code}"), right


def exit_status(results: Sequence[CaseResult]) -> ExitStatus:
    """0 when all passed, strictly or not; 1 for a fail; 4 where something stayed unknown."""
    grades = {result.grade for result in results}
    if Grade.FAIL in grades:
        return ExitStatus.BROKEN
    return ExitStatus.UNKNOWN if Grade.UNKNOWN in grades or not results else ExitStatus.HELD
