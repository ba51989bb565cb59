"""Which files are taken, and which a message may name."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import ready

TEXT = {"bytes": 4, "mimeType": "text/csv"}
TOLD = {"id": "f1", "size": 4, "kind": "text", "mimeType": "text/csv"}


@pytest.mark.req("AT-002", "AT-006", "AT-008", "AT-026")
@pytest.mark.parametrize(
    ("sent", "answer", "word"),
    [
        (TEXT, TOLD, Status.HELD),
        (TEXT, {**TOLD, "size": 3}, Status.BROKEN),
        (TEXT, {**TOLD, "kind": "file"}, Status.BROKEN),
        ({**TEXT, "mimeType": "image/svg+xml"}, TOLD, Status.BROKEN),
        ({**TEXT, "bytes": 3 * 1024 * 1024 + 1}, TOLD, Status.BROKEN),
    ],
)
def test_a_file_is_taken_by_type_and_size(sent: dict[str, object], answer: dict[str, object], word: Status) -> None:
    t = ready()
    t.call("upload", 201, sent, answer)
    assert t.status("uploads-judged") is word


@pytest.mark.req("AT-008")
def test_a_file_within_the_bound_is_not_too_large() -> None:
    t = ready()
    t.refused("upload", 413, "CHAT_ATTACHMENT_TOO_LARGE", {**TEXT, "bytes": 3 * 1024 * 1024})
    assert t.status("uploads-judged") is Status.BROKEN


@pytest.mark.req("AT-009", "AT-016", "AT-029")
def test_a_message_names_five_files_of_its_own_conversation() -> None:
    law = "named-files-known"
    t = ready()
    t.message(sent={"attachmentIds": [f"f{n}" for n in range(6)]})
    assert t.violation(law).due == "400 CHAT_ATTACHMENT_TOO_MANY"
    t = ready()
    t.call("upload", 201, TEXT, TOLD, conversation_id="another")
    t.refused("message", 400, "CHAT_INVALID", {"attachmentIds": ["f1"]})
    assert t.violation(law).due == "404 CHAT_ATTACHMENT_NOT_FOUND"
