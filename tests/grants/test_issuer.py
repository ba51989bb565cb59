"""The issuer's rules, asked without a socket."""

from __future__ import annotations

import json

import pytest

from lab.errors import MisuseError
from lab.grants.issuer import MAX_TEXT, MAX_TTL_S, IssuerCore, Route
from lab.grants.seal import Seal
from lab.journal.events import digest
from lab.journal.partner_events import IssuerRequest, fingerprint
from tests.grants.made import (
    CONTROL_KEY,
    CONVERSATION,
    DESTINATION,
    ISSUER_KEY,
    NOW_MS,
    REGISTER_KEY,
    SEAL_KEY,
    WANTED,
    Hand,
)

LONG = "x" * (MAX_TEXT + 1)


@pytest.mark.req("GR-001", "GR-003", "GR-008", "GR-011", "GR-019")
def test_a_grant_is_minted_for_three_members() -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.GRANTS, WANTED)
    assert (answer.status, set(answer.body)) == (200, {"grant", "expiresAt"})
    assert answer.body["expiresAt"] == "2023-11-14T22:18:20.000Z", "300 s after now"
    assert hand.opened(answer.body["grant"]).expires_at_ms == NOW_MS + 300_000


@pytest.mark.req("GR-012")
def test_the_rest_of_the_binding_is_the_conversations() -> None:
    hand = Hand()
    assert hand.ask(Route.GRANTS, WANTED).status == 404
    assert hand.register().status == 200
    told = hand.opened(hand.mint()).told()
    assert told == CONVERSATION | {"grantId": "g-1", "organizationId": "org-1", "environment": "test"}


@pytest.mark.req("GR-006", "PRIV-015")
def test_the_journal_has_ids_and_no_grant() -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.GRANTS, WANTED)
    grant = str(answer.body["grant"])
    facts = {"agentId": "agent-1", "destination": DESTINATION, "expiresAtMs": NOW_MS + 300_000}
    assert answer.event == IssuerRequest("grants", 200, None, "c-1", fingerprint(grant), "g-1", facts)
    assert grant not in repr(answer.event)


def test_what_is_no_id_stands_in_no_journal() -> None:
    """It is minted all the same: an id may be any text, and only its digest is told."""
    hand = Hand()
    text = "What does product 9001 cost?"
    ids = dict.fromkeys(CONVERSATION, text)
    registered = hand.register(**ids)
    minted = hand.ask(Route.GRANTS, dict.fromkeys(WANTED, text))
    wrong = hand.ask(Route.LAB_GRANTS, {"conversationId": text, "claims": {"actorId": text}})
    binding = hand.opened(minted.body["grant"])
    assert [answer.status for answer in (registered, minted, wrong)] == [200, 200, 200]
    assert (binding.conversation_id, binding.actor_id) == (text, text)
    for told in (registered.event, minted.event, wrong.event, binding.told()):
        assert text not in repr(told)
    assert registered.event.facts["actorId"] == {**digest("id", text)}
    assert hand.ask(Route.LAB_REVOCATIONS, {"conversationId": text}).body["revoked"] == ["g-1", "g-3"]


@pytest.mark.req("GR-002", "GR-013")
@pytest.mark.parametrize("route", list(Route))
@pytest.mark.parametrize("key", ["", "x", ISSUER_KEY, REGISTER_KEY, CONTROL_KEY])
def test_each_route_has_a_key_of_its_own(route: Route, key: str) -> None:
    hand = Hand()
    refused = hand.ask(route, WANTED, key)
    own = {Route.GRANTS: ISSUER_KEY, Route.CONVERSATIONS: REGISTER_KEY}.get(route, CONTROL_KEY)
    assert (refused.status == 401) == (key != own)
    assert (refused.event.code == "unauthorized") == (key != own)


@pytest.mark.req("GR-002")
@pytest.mark.parametrize("headers", [[], [ISSUER_KEY], [f"bearer {ISSUER_KEY}x"], [f"Bearer {ISSUER_KEY}"] * 2])
def test_a_key_comes_as_one_bearer(headers: list[str]) -> None:
    hand = Hand()
    hand.register()
    assert hand.core.answer_untrusted(Route.GRANTS, headers, json.dumps(WANTED).encode()).status == 401


@pytest.mark.req("GR-001", "GR-013", "GR-015")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        {},
        {**WANTED, "actorId": "actor-1"},
        {**WANTED, "destination": None},
        {**WANTED, "agentId": 1},
        {**WANTED, "conversationId": ""},
        {**WANTED, "conversationId": LONG},
        {"conversationId": "c-1", "agentId": "agent-1"},
    ],
)
def test_other_members_are_refused(body: object) -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.GRANTS, body)
    assert (answer.status, answer.event.code) == (400, "invalid")
    assert set(answer.body) == {"error"}
    assert answer.event.grant is None


@pytest.mark.req("GR-013")
@pytest.mark.parametrize(
    ("other", "status", "code"),
    [
        ({"conversationId": "c-2"}, 404, "not_found"),
        ({"agentId": "agent-2"}, 403, "forbidden"),
        ({"destination": "https://93.184.216.34/mcp/"}, 403, "forbidden"),
        ({"destination": "http://127.0.0.1/mcp"}, 403, "forbidden"),
    ],
)
def test_what_does_not_belong_together_is_refused(other: dict[str, str], status: int, code: str) -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.GRANTS, {**WANTED, **other})
    assert (answer.status, answer.event.code) == (status, code)
    error = answer.body["error"]
    assert isinstance(error, dict)
    assert set(error) == {"code", "message"}
    assert not any(value in str(error["message"]) for value in other.values()), "no caller's input is repeated"


@pytest.mark.req("GR-017")
def test_a_conversation_without_a_store_has_no_grants() -> None:
    hand = Hand()
    assert hand.register(destination=None).status == 200
    assert hand.ask(Route.GRANTS, WANTED).status == 404


@pytest.mark.req("GR-007", "GR-014")
def test_each_grant_is_a_fresh_one() -> None:
    hand = Hand()
    hand.register()
    one, other = hand.mint(), hand.mint()
    assert one != other
    assert hand.opened(one).grant_id != hand.opened(other).grant_id
    assert not hand.core.is_revoked("g-1")


@pytest.mark.req("GR-012")
def test_a_registration_may_be_repeated_and_not_changed() -> None:
    hand = Hand()
    assert hand.register().status == 200
    assert hand.register().status == 200
    assert hand.register(actorId="actor-2").status == 409
    assert hand.opened(hand.mint()).actor_id == "actor-1"


@pytest.mark.parametrize(
    "other", [{"destination": 5}, {"actorId": None}, {"teamId": ""}, {"agentId": LONG}, {"extra": "x"}]
)
def test_a_registration_of_another_shape_is_refused(other: dict[str, object]) -> None:
    assert Hand().register(**other).status == 400


@pytest.mark.req("GR-011")
@pytest.mark.parametrize("ttl_s", [0, 1801])
def test_a_life_that_cannot_be_is_a_defect(ttl_s: int) -> None:
    with pytest.raises(MisuseError):
        Hand(ttl_s=ttl_s)


@pytest.mark.req("GR-011")
def test_no_grant_outlives_the_fixture() -> None:
    hand = Hand(ttl_s=1800, ends_at_ms=NOW_MS + 5000)
    hand.register()
    assert hand.opened(hand.mint()).expires_at_ms == NOW_MS + 5000
    hand.now_ms = NOW_MS + 5000
    assert hand.ask(Route.GRANTS, WANTED).event.code == "ended"


@pytest.mark.req("GR-020")
def test_equal_keys_are_a_defect() -> None:
    def core(issuer: str, register: str, control: str) -> IssuerCore:
        seal = Seal(SEAL_KEY)
        return IssuerCore(seal, issuer, register, control, "o", "e", ids=str, nonce=bytes, now_ms=lambda: NOW_MS)

    core("a", "b", "c")
    for keys in (("a", "a", "c"), ("a", "b", "a"), ("a", "b", "b")):
        with pytest.raises(MisuseError):
            core(*keys)


# The control


@pytest.mark.req("GR-015")
@pytest.mark.parametrize(
    "word",
    ["organizationId", "environment", "teamId", "actorId", "agentId", "conversationId", "destination"],
)
def test_the_control_mints_one_wrong_claim(word: str) -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.LAB_GRANTS, {"conversationId": "c-1", "claims": {word: "another"}})
    due = hand.opened(hand.mint()).told() | {word: "another", "grantId": answer.body["grantId"]}
    assert hand.opened(answer.body["grant"]).told() == due
    assert (answer.event.route, answer.event.conversation_id) == ("lab-grants", "c-1")


@pytest.mark.req("GR-015")
@pytest.mark.parametrize("ttl_ms", [0, 1, 1_800_000])
def test_the_control_mints_another_life(ttl_ms: int) -> None:
    hand = Hand()
    hand.register()
    answer = hand.ask(Route.LAB_GRANTS, {"conversationId": "c-1", "ttlMs": ttl_ms})
    assert hand.opened(answer.body["grant"]).expires_at_ms == NOW_MS + ttl_ms


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"conversationId": "c-1", "claims": []},
        {"conversationId": "c-1", "claims": {"grantId": "g-9"}},
        {"conversationId": "c-1", "claims": {"actorId": 1}},
        {"conversationId": "c-1", "ttlMs": -1},
        {"conversationId": "c-1", "ttlMs": 1_800_001},
        {"conversationId": "c-1", "ttlMs": True},
        {"conversationId": "c-1", "ttlMs": "1"},
        {"conversationId": "c-1", "more": "x"},
        {"conversationId": "c-1", "claims": dict.fromkeys(("actorId", "teamId", "agentId"), "\u20ac" * MAX_TEXT)},
    ],
)
def test_the_control_refuses_what_it_cannot_mint(body: object) -> None:
    hand = Hand()
    hand.register()
    assert hand.ask(Route.LAB_GRANTS, body).status == 400


def test_the_control_knows_registered_conversations_only() -> None:
    assert Hand().ask(Route.LAB_GRANTS, {"conversationId": "c-1"}).status == 404


@pytest.mark.req("GR-015")
@pytest.mark.parametrize("by", ["grant", "grantId", "conversationId"])
def test_a_grant_is_revoked_by_any_of_its_names(by: str) -> None:
    hand = Hand()
    hand.register()
    grant = hand.mint()
    names = {"grant": grant, "grantId": hand.opened(grant).grant_id, "conversationId": "c-1"}
    answer = hand.ask(Route.LAB_REVOCATIONS, {by: names[by]})
    assert (answer.status, answer.body) == (200, {"revoked": [names["grantId"]]})
    assert answer.event.facts == {"grantIds": [names["grantId"]]}
    assert hand.core.is_revoked(names["grantId"])
    assert not hand.core.is_revoked(hand.opened(hand.mint()).grant_id), "a later grant is good"


def test_a_revocation_is_known_as_long_as_its_grant_may_live() -> None:
    """Not for ever: an issuer may be up for days."""
    hand = Hand()
    hand.register()
    for grant_id, later_ms in (("g-1", MAX_TTL_S * 1000), ("g-3", 1), ("g-5", 0)):
        hand.mint()
        hand.ask(Route.LAB_REVOCATIONS, {"grantId": grant_id})
        assert hand.core.is_revoked(grant_id)
        hand.now_ms += later_ms
    assert [hand.core.is_revoked(grant_id) for grant_id in ("g-1", "g-3", "g-5")] == [False, True, True]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"grantId": "g-9", "conversationId": "c-1"}, 400),
        ({"other": "x"}, 400),
        ({"grantId": 1}, 400),
        ({"grantId": "g-9"}, 404),
        ({"grant": "tg1.AAAA"}, 404),
        ({"conversationId": "c-9"}, 404),
    ],
)
def test_what_is_no_grant_is_not_revoked(body: object, status: int) -> None:
    hand = Hand()
    hand.register()
    hand.mint()
    assert hand.ask(Route.LAB_REVOCATIONS, body).status == status
    assert not hand.core.is_revoked("g-1")


@pytest.mark.req("PRIV-019")
def test_no_key_is_kept() -> None:
    """Neither in the core nor in anything it holds."""
    seen: list[object] = []
    left: list[object] = [Hand().core]
    while left:
        value = left.pop()
        if any(value is one for one in seen):
            continue
        seen.append(value)
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("lab."):
            left += vars(value).values()
    assert len(seen) > 10
    assert not {ISSUER_KEY, REGISTER_KEY, CONTROL_KEY} & {value for value in seen if isinstance(value, str)}
