"""A frame as a reader of an older revision has to take it."""

from __future__ import annotations

import pytest

from lab.journal.events import Frame, ParticipantDeclared
from lab.laws.revisions import as_read_by, declared_revision, newer

GOOD = {"type": "ok", "schema": "ok", "direction": True}


def frame(**facts: object) -> Frame:
    return Frame("c1", "cp-to-la", 1, "0" * 64, type="job.assign", facts={**GOOD, **facts})


@pytest.mark.parametrize(("revision", "than", "is_newer"), [("2.3", "2.2", True), ("2.2", "2.2", False)])
def test_newer(revision: str, than: str, is_newer: bool) -> None:
    assert newer(revision, than) is is_newer


def test_a_revision_is_a_number_and_no_text() -> None:
    assert newer("2.10", "2.9")


def test_what_was_declared() -> None:
    assert declared_revision(ParticipantDeclared("la", "local_agent", "reference", {"revision": "2.2"})) == "2.2"
    assert declared_revision(ParticipantDeclared("la", "local_agent", "attach")) is None
    assert declared_revision(None) is None


@pytest.mark.req("CP-019")
@pytest.mark.parametrize(
    ("facts", "reader", "told"),
    [
        ({}, "2.0", GOOD),
        ({"since": "2.3"}, None, GOOD),
        ({"since": "2.3"}, "2.3", GOOD),
        ({"since": "2.3"}, "2.2", {**GOOD, "schema": {"keyword": "since 2.3", "path": ""}}),
        ({"since": "2.2", "typeSince": "2.2"}, "2.1", {**GOOD, "type": "unknown_type", "direction": None}),
        ({"since": "2.3", "typeSince": "2.1"}, "2.1", {**GOOD, "schema": {"keyword": "since 2.3", "path": ""}}),
    ],
)
def test_as_read(facts: dict[str, str], reader: str | None, told: dict[str, object]) -> None:
    assert as_read_by(frame(**facts), reader).facts == {**facts, **told}
