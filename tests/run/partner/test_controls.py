"""Each control of the lab's model and issuer, by its effect on what a partner sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import ExitStatus
from lab.journal.partner_events import IssuerRequest, StoreRequest
from lab.run.partner.controls import CLAIMS
from tests.run.partner.played import (
    ASKED,
    BOUND,
    LONG_AGENT,
    OPENED,
    STORE_AGENT,
    events_of,
    last_step,
    notes,
    play,
    told,
)

TALKED = f"{ASKED}  - follow: {{ run: r1 }}\n"
LATER = "message: { run: r2, conversation: c1, text: x, fails: %s }"


@pytest.mark.parametrize(
    ("before", "control", "note", "then"),
    [
        (TALKED, "clock: 6m", "360 s ahead", "history: { conversation: c1, fails: EXECUTION_DENIED }"),
        (TALKED, "rotate: chat", "the driver has the new one", "history: { conversation: c1 }"),
        (TALKED, "revoke: anna", "", "history: { conversation: c1, fails: EXECUTION_DENIED }"),
        (TALKED, "reset: anna", "subject version 2", "history: { conversation: c1 }"),
        (TALKED, "delete: anna", "", "history: { conversation: c1, fails: CHAT_UNAVAILABLE }"),
        (TALKED, "unbind: c1", "", LATER % "MCP_CONTEXT_DENIED"),
        (TALKED, "remove: c1", "", "history: { conversation: c1, fails: CHAT_UNAVAILABLE }"),
        (TALKED, "remove_agent: store", "", "history: { conversation: c1, fails: CHAT_UNAVAILABLE }"),
        (TALKED, "remove_team: shop", "", "history: { conversation: c1, fails: CHAT_UNAVAILABLE }"),
        (TALKED, "budget: spent", "", LATER % "QUOTA_EXCEEDED"),
        (
            OPENED,
            "guest: c1",
            "",
            "attach: { file: f1, conversation: c1, text: x, fails: CHAT_ATTACHMENT_NOT_ALLOWED }",
        ),
    ],
)
def test_what_a_control_changes(before: str, control: str, note: str, then: str, tmp_path: Path) -> None:
    """The next call meets it."""
    result = play(tmp_path, f"{before}  - {then.partition(', fails')[0].rstrip(' }')} }}\n")
    without = last_step(result)
    assert without[0] == "done", told(result)
    result = play(tmp_path, f"{before}  - control: {{ {control} }}\n  - {then}\n")
    assert last_step(result)[0] == "done", told(result)
    assert notes(result)[-2] == note
    assert ("as it must be" in last_step(result)[1]) is ("fails" in then)


def test_a_budget_that_is_open_again(tmp_path: Path) -> None:
    spent = "  - control: { budget: spent }\n"
    refused = "  - message: { run: r1, conversation: c1, text: x, fails: QUOTA_EXCEEDED }\n"
    more = "  - control: { budget: open }\n  - message: { run: r2, conversation: c1, text: x }\n"
    result = play(tmp_path, BOUND + spent + refused + more)
    assert last_step(result) == ("done", "accepted"), told(result)


def test_a_run_that_is_cancelled(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        f"{ASKED}  - follow: {{ run: r1, until: {{ events: 3 }} }}\n  - control: {{ cancel: r1 }}\n"
        "  - follow: { run: r1 }\n",
        LONG_AGENT,
    )
    assert last_step(result) == ("done", "4 events · cancelled"), told(result)


def test_a_run_that_has_ended_is_not_cancelled(tmp_path: Path) -> None:
    """The scenario is wrong; nobody is accused."""
    result = play(tmp_path, f"{TALKED}  - control: {{ cancel: r1 }}\n")
    assert result.verdict.outcome.exit_status is ExitStatus.USAGE
    assert last_step(result) == ("failed", "The model has no such active run. Name one that exists now.")


def test_a_queue_that_is_held(tmp_path: Path) -> None:
    """The run waits, and goes on once the queue is open."""
    result = play(
        tmp_path,
        f"{BOUND}  - control: {{ queue: held }}\n  - message: {{ run: r1, conversation: c1, text: x }}\n"
        "  - idle: 3s\n  - poll: { run: r1, until: now }\n  - control: { queue: open }\n  - poll: { run: r1 }\n",
    )
    assert notes(result)[-3] == "accepted"
    assert last_step(result) == ("done", "completed")


def test_a_team_whose_id_nobody_told(tmp_path: Path) -> None:
    result = play(tmp_path, "  - control: { remove_team: shop }\n")
    assert last_step(result) == ("failed", "no membership told the id of the team shop")


def test_a_grant_that_is_revoked(tmp_path: Path) -> None:
    """The store refuses it from then on."""
    asked = "  - message: { run: r1, conversation: c1, text: x }\n  - follow: { run: r1 }\n"
    result = play(tmp_path, f"{BOUND}  - control: {{ revoke_grant: c1 }}\n{asked}")
    assert notes(result)[4] == "1 grants"
    refused = [event.refused for event in events_of(result, StoreRequest) if event.tool == "catalog_get"]
    assert refused
    assert None not in refused
    result = play(tmp_path, f"{BOUND}{asked}")
    assert [event.refused for event in events_of(result, StoreRequest) if event.tool == "catalog_get"] == [None]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_grant_with_another_claim(claim: str, tmp_path: Path) -> None:
    """A partner API that opens grants refuses to bind it."""
    api = f"{{ checks_claims: true, {STORE_AGENT[2:]}"
    result = play(
        tmp_path,
        f"{OPENED}  - grant: {{ conversation: c1, wrong: {{ {claim}: other }} }}\n"
        "  - bind: { conversation: c1, fails: MCP_CONTEXT_DENIED }\n"
        "  - grant: { conversation: c1 }\n  - bind: { conversation: c1 }\n",
        api,
    )
    assert notes(result)[2] == f"with another {claim}"
    assert last_step(result) == ("done", "version 1"), told(result)


def test_a_claim_names_things_by_their_labels(tmp_path: Path) -> None:
    """A grant for the conversation `c2`, under the id that this has."""
    api = f"{{ checks_claims: true, {STORE_AGENT[2:]}"
    result = play(
        tmp_path,
        f"{OPENED}  - conversation: {{ conversation: c2, user: anna }}\n"
        "  - grant: { conversation: c1, wrong: { conversation: c2 } }\n"
        "  - bind: { conversation: c1, fails: MCP_CONTEXT_DENIED }\n"
        "  - grant: { conversation: c1, wrong: { agent: store, conversation: c1 } }\n  - bind: { conversation: c1 }\n",
        api,
    )
    assert notes(result)[-2] == "with another agent and conversation"
    assert last_step(result) == ("done", "version 1"), told(result)


def test_what_the_issuer_is_told_stands_in_the_journal(tmp_path: Path) -> None:
    """Without the grant itself."""
    result = play(tmp_path, f"{OPENED}  - grant: {{ conversation: c1, wrong: {{ actor: other }} }}\n")
    (event,) = [one for one in events_of(result, IssuerRequest) if one.route == "lab-grants"]
    assert (event.status, event.grant is not None) == (200, True)
    assert "tg1." not in (result.folder / "journal.jsonl").read_text("utf-8")
