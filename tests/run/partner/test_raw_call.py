"""The `call` step: every key word, places of labels, and what it says when something else came."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.journal.partner_events import PartnerCall
from lab.run.verdict import Outcome
from tests.run.partner.played import ASKED, BOUND, OPENED, events_of, last_step, notes, passed, play, told

READ = "call: { method: GET, path: '/conversations/{c1}/context', actor: anna, "


def test_each_key_opens_what_it_may(tmp_path: Path) -> None:
    """PA-002: and a key of one scope, made on the way, opens that alone."""
    due = {
        "chat": "200",
        "provisioning": "403 EXECUTION_DENIED",
        "store": "401 CREDENTIAL_REJECTED",
        "issuer": "401 CREDENTIAL_REJECTED",
        "unknown": "401 CREDENTIAL_REJECTED",
        "none": "401 CREDENTIAL_REJECTED",
        "only:chat:read": "403 EXECUTION_DENIED",
        "only:chat:context": "200",
    }
    calls = "".join(f"  - {READ}key: '{key}', status: {told_[:3]} }}\n" for key, told_ in due.items())
    result = passed(play(tmp_path, f"{BOUND}{calls}  - {READ}key: 'only:chat:context', status: 200 }}\n"))
    assert notes(result)[4:] == [*due.values(), "200"]


def test_paths_take_the_ids_of_labels(tmp_path: Path) -> None:
    """Conversations, runs and files; a call stands in the journal under its route, and as the scenario's own."""
    result = play(
        tmp_path,
        f"{ASKED}  - attach: {{ file: f1, conversation: c1, text: x }}\n"
        "  - call: { method: GET, path: '/conversations/{c1}/runs/{r1}', actor: anna, status: 200 }\n"
        "  - call: { method: GET, path: '/conversations/{c1}/attachments/{f1}/content', actor: anna, status: 200 }\n"
        "  - call: { method: POST, path: /conversations, status: 400, idempotency_key: k1,"
        " headers: { X-Agent-Turn-Id: forged }, body: '{}', fails: CHAT_INVALID }\n"
        "  - call: { method: GET, path: /nothing, status: 404, fails: CHAT_UNAVAILABLE }\n",
    )
    passed(result)
    calls = [event for event in events_of(result, PartnerCall) if event.facts.get("byOrder")]
    assert [call.route for call in calls] == [
        "GET /conversations/{conversationId}/runs/{runId}",
        "GET /conversations/{conversationId}/attachments/{attachmentId}/content",
        "POST /conversations",
    ]
    assert calls[2].idempotency_key is not None


@pytest.mark.parametrize(
    ("step", "note"),
    [
        (f"{READ}key: none, status: 200 }}", "401 CREDENTIAL_REJECTED came; 200 was due"),
        (
            f"{READ}key: none, status: 401, fails: CHAT_INVALID }}",
            "401 CREDENTIAL_REJECTED came; 401 CHAT_INVALID was due",
        ),
        (f"{READ}status: 404 }}", "200 came; 404 was due"),
        (
            "call: { method: GET, path: '/conversations/{zz}/context', actor: anna, status: 200 }",
            "the path names zz, and no earlier step got it",
        ),
    ],
)
def test_another_answer_than_was_due(step: str, note: str, tmp_path: Path) -> None:
    result = play(tmp_path, f"{OPENED}  - {step}\n")
    assert last_step(result) == ("failed", note)
    assert result.verdict.outcome is Outcome.FAIL


@pytest.mark.parametrize("path", ["/conversations/{c1}/context", "/nothing"])
def test_no_answer(path: str, tmp_path: Path) -> None:
    """A step that failed, also on a path that the contract does not know; it is not sent again."""
    result = play(
        tmp_path,
        f"{OPENED}  - fault: {{ link: partner_api, cut: true }}\n"
        f"  - call: {{ method: GET, path: '{path}', actor: anna, status: 200 }}\n",
    )
    assert last_step(result) == ("failed", "no usable answer: refused"), told(result)
    assert (result.verdict.outcome, result.defects) == (Outcome.FAIL, ())
