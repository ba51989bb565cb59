"""Whoever lost authority gets no answer, no effect and no event."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PartnerTale, ready, running

SERVICE = "no-service-after-denial"
EFFECT = "no-effect-after-denial"
DELIVERY = "no-delivery-after-denial"
LONG = 250.0
"""Seconds after which the lease of `ready` has run out by any clock."""


def deny(t: PartnerTale, how: str) -> None:
    """Revoke the employee, or let the lease run out."""
    if how == "revoked":
        t.membership(2, active=False)
        t.wait(1.0)
    else:
        t.wait(LONG)


def shown_by(t: PartnerTale, how: str) -> int:
    """The entry of the confirmation that shows the denial."""
    found = [entry.n for entry in t.entries if "PUT /memberships" in str(entry.event)]
    return found[-1] if how == "revoked" else found[0]


HOWS = pytest.mark.parametrize("how", ["revoked", "lapsed"])


@pytest.mark.req("PA-049", "PA-021")
@HOWS
def test_an_answer_after_a_denial(how: str) -> None:
    t = ready()
    deny(t, how)
    n = t.poll()
    found = t.violation(SERVICE)
    assert (found.due, found.entries) == ("403 EXECUTION_DENIED", (shown_by(t, how), n))


@HOWS
def test_a_refusal_after_a_denial(how: str) -> None:
    t = ready()
    deny(t, how)
    t.refused("message", 403, "EXECUTION_DENIED")
    assert t.status(SERVICE) is Status.HELD


def test_another_employee_is_served() -> None:
    t = ready()
    deny(t, "revoked")
    t.actor = {"externalUserId": "other", "externalTeamId": "team"}
    t.poll()
    assert t.status(SERVICE) is Status.NOTHING


@pytest.mark.req("MB-035")
def test_a_newer_confirmation_gives_authority_back() -> None:
    t = ready()
    t.wait(LONG).membership(2)
    t.poll()
    assert t.status(SERVICE) is Status.NOTHING


def test_a_call_that_began_before_the_denial() -> None:
    t = ready()
    began = len(t.entries)
    t.membership(2, active=False)
    t.poll(began=began)
    assert t.status(SERVICE) is Status.NOTHING


def test_a_moved_clock_tells_nothing_of_a_lease() -> None:
    t = ready()
    t.request("clock")
    t.wait(LONG).poll()
    assert t.status(SERVICE) is Status.NOTHING


@pytest.mark.req("MB-037", "PA-021")
@HOWS
@pytest.mark.parametrize("effect", ["store", "tool", "model"])
def test_an_effect_after_a_denial(how: str, effect: str) -> None:
    t = running()
    deny(t, how)
    n = t.tool() if effect == "store" else t.turn(effect, status="running")
    assert t.violation(EFFECT).entries == (shown_by(t, how), n)


def test_effects_before_a_denial_and_what_was_on_its_way() -> None:
    t = running()
    t.turn("tool", status="running")
    t.tool()
    t.membership(2, active=False)
    assert t.status(EFFECT) is Status.HELD
    t.wait(0.1).tool("call_2")
    judged = t.judged(EFFECT)
    assert (judged.status, judged.judgement.unsure) == (Status.HELD, 1)


@pytest.mark.req("PA-021", "SSE-026", "SSE-037")
@HOWS
def test_an_event_after_a_denial(how: str) -> None:
    t = running()
    t.tell(ANSWER[:2])
    deny(t, how)
    n = t.event(3, "text")
    assert t.violation(DELIVERY).entries == (shown_by(t, how), n)


def test_no_event_after_a_denial() -> None:
    t = running()
    t.tell(ANSWER[:2])
    deny(t, "revoked")
    t.close()
    assert t.status(DELIVERY) is Status.HELD


def changed(t: PartnerTale, change: str, actor_id: str = "actor") -> int:
    """A control changed an identity."""
    return t.request("clock", route="/__lab/identities", facts={"change": change, "actorId": actor_id})


@pytest.mark.req("PA-021")
@pytest.mark.parametrize("change", ["revoke", "delete"])
def test_an_answer_to_an_identity_that_is_gone(change: str) -> None:
    t = ready()
    order = changed(t, change)
    n = t.poll()
    assert t.violation(SERVICE).entries == (order, n)
    t = ready()
    changed(t, change)
    t.refused("history", 404, "CHAT_UNAVAILABLE")
    assert t.status(SERVICE) is Status.HELD
    t = ready()
    changed(t, change, "another")
    t.poll()
    assert t.status(SERVICE) is Status.NOTHING


@pytest.mark.req("PA-021")
def test_a_reset_takes_nothing_from_what_comes_later() -> None:
    t = ready()
    changed(t, "reset")
    t.poll()
    assert t.status(SERVICE) is Status.NOTHING
    t.message()
    t.turn("accepted")
    t.wait(5).turn("model")
    assert t.status(EFFECT) is Status.NOTHING


@pytest.mark.req("MB-037", "PA-021")
@pytest.mark.parametrize("change", ["revoke", "delete", "reset"])
def test_an_effect_and_an_event_after_a_change_of_the_identity(change: str) -> None:
    t = running()
    order = changed(t, change)
    n = t.wait(5).turn("model")
    assert t.violation(EFFECT).entries == (order, n)
    n = t.event(1, "turn")
    assert t.violation(DELIVERY).entries == (order, n)
