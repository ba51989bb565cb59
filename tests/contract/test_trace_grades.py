"""Grades of codes, and the manner of closing in words."""

from __future__ import annotations

import pytest

from lab.contract.trace_grades import CaseResult, Closing, Grade, closing_words, exit_status, grade_code
from lab.contract.traces import Due, Side
from lab.errors import ExitStatus
from lab.protocol.errors import ERROR_CODES


@pytest.mark.parametrize("code", ERROR_CODES)
def test_the_code_that_is_due_passes(code: str) -> None:
    assert grade_code(Due(code, Side.CP), code) is Grade.PASS
    assert grade_code(Due("internal", Side.CP, (code,)), code) is Grade.PASS


@pytest.mark.parametrize(
    ("due", "code", "grade"),
    [
        ("seq_gap", "seq_replayed", Grade.NON_STRICT),
        ("chunk_out_of_order", "chunk_inconsistent", Grade.NON_STRICT),
        ("wrong_direction", "unknown_type", Grade.NON_STRICT),
        ("wrong_direction", "handshake_violation", Grade.NON_STRICT),
        ("unknown_type", "handshake_violation", Grade.FAIL),
        ("tenant_mismatch", "unauthorized", Grade.NON_STRICT),
        ("signature_mode_insufficient", "unauthorized", Grade.NON_STRICT),
        ("signature_mode_insufficient", "tenant_mismatch", Grade.FAIL),
        ("clock_skew", "unauthorized", Grade.FAIL),
        ("seq_gap", "internal", Grade.FAIL),
        ("seq_gap", "timeout", Grade.FAIL),
    ],
)
def test_another_code_is_not_strict_only_within_its_class(due: str, code: str, grade: Grade) -> None:
    assert grade_code(Due(due, Side.CP), code) is grade


@pytest.mark.parametrize(
    ("closing", "due", "words", "right"),
    [
        (Closing(4408, "peer", clean=True), 4408, "4408 by peer", True),
        (Closing(4409, "peer", clean=True), 4408, "4409 by peer, due is 4408", False),
        (Closing(4408, "lab", clean=True), 4408, "4408 by lab, due is 4408", False),
        (Closing(4408, "peer", clean=False), 4408, "4408 by peer, not clean, due is 4408", False),
        (Closing(None, "peer", clean=True), 4408, "no code by peer, due is 4408", False),
        (Closing(None, "nobody", clean=False), 4408, "cut without a close frame", False),
        (None, 4408, "left open", False),
        (Closing(1000, "lab", clean=True), None, "1000 by lab", True),
        (None, None, "the close was not answered", False),
    ],
)
def test_the_manner_of_closing_is_told(closing: Closing | None, due: int | None, words: str, right: bool) -> None:
    assert closing_words(closing, due) == (words, right)


def result(grade: Grade) -> CaseResult:
    return CaseResult("a", Side.CP, grade, "", "", "", close_as_due=False)


@pytest.mark.parametrize(
    ("grades", "status"),
    [
        ([Grade.PASS, Grade.NON_STRICT], ExitStatus.HELD),
        ([Grade.PASS, Grade.UNKNOWN], ExitStatus.UNKNOWN),
        ([Grade.UNKNOWN, Grade.FAIL], ExitStatus.BROKEN),
        ([], ExitStatus.UNKNOWN),
    ],
)
def test_the_exit_status_is_the_worst_and_knows_no_manner_of_closing(grades: list[Grade], status: ExitStatus) -> None:
    assert exit_status([result(grade) for grade in grades]) is status
