"""What a control ordered holds: a budget, a removal, a rotation, a cancel."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready, running


def order(t: PartnerTale, control: str, **facts: object) -> int:
    """A control of the model was used."""
    return t.request("clock", route=f"/__lab/{control}", facts=facts)


@pytest.mark.req("PA-019", "PA-051")
def test_a_message_on_a_spent_budget() -> None:
    t = ready()
    order(t, "budget", spent=True)
    t.refused("message", 429, "QUOTA_EXCEEDED")
    assert t.status("spent-budget-refuses") is Status.HELD
    t.message()
    assert t.status("spent-budget-refuses") is Status.BROKEN


@pytest.mark.req("PA-026", "PRIV-012")
def test_what_was_removed_is_gone() -> None:
    t = ready()
    order(t, "removals", kind="thread", id=t.made.conversation)
    t.refused("history", 404, "CHAT_UNAVAILABLE")
    assert t.status("removed-is-gone") is Status.HELD
    t.history()
    assert t.status("removed-is-gone") is Status.BROKEN


@pytest.mark.req("MSG-036", "PA-054")
def test_a_rotated_key_opens_nothing_and_its_streams_close() -> None:
    t = running()
    order(t, "keys/rotate", role="chat")
    t.wait(5).event(1, "turn")
    assert t.violation("rotated-key-is-dead").seen == "an event on a stream of a rotated key"
    t = ready()
    order(t, "keys/rotate", role="chat")
    t.history()
    assert t.violation("rotated-key-is-dead").seen == "a rotated key was served"


@pytest.mark.req("MSG-009", "MSG-037")
def test_a_run_is_cancelled_by_order_alone() -> None:
    t = running()
    t.poll("cancelled")
    assert t.status("cancelled-by-order") is Status.BROKEN
    t = running()
    order(t, "runs/cancel", runId=t.made.run)
    t.poll("cancelled")
    assert t.status("cancelled-by-order") is Status.HELD


@pytest.mark.req("PA-021", "PA-036")
def test_a_revoked_key_opens_nothing_and_its_runs_do_nothing() -> None:
    law = "rotated-key-is-dead"
    t = running()
    revoked = order(t, "keys/revoke", role="chat")
    t.refused("history", 401, "CREDENTIAL_REJECTED")
    assert t.status(law) is Status.HELD
    n = t.turn("tool")
    assert t.violation(law).entries == (revoked, n)
    t = ready()
    revoked = order(t, "keys/revoke", role="chat")
    n = t.history()
    assert t.violation(law).entries == (revoked, n)
    t = running()
    order(t, "keys/revoke", role="provisioning")
    t.history()
    t.turn("tool")
    assert t.status(law) is Status.NOTHING
