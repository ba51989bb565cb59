from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.bearer import MOST_CHARACTERS, token_of
from lab.partner.model.authority import RunAuthority, key_hash
from lab.partner.model.refusals import Refusal
from lab.partner.model.words import Code, Scope
from tests.partner.model.calls import ORG, TEAM, USER, Api, running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as held:
        yield held


@pytest.mark.req("PA-005", "PA-036")
@pytest.mark.parametrize(
    ("headers", "token"),
    [
        (("Bearer abc",), "abc"),
        (("bearer abc",), "abc"),
        ((), None),
        (("Bearer a", "Bearer a"), None),
        (("Basic abc",), None),
        (("Bearer",), None),
        (("Bearer ",), None),
        (("abc",), None),
        (("Bearer " + "x" * (MOST_CHARACTERS + 1),), None),
    ],
)
def test_one_bearer_header_is_a_key(headers: tuple[str, ...], token: str | None) -> None:
    assert token_of(headers) == token


def bearing(key: str) -> tuple[str, ...]:
    return (f"Bearer {key}",)


@pytest.mark.req("PA-036", "PA-002", "PA-053")
async def test_a_key_is_found_by_its_value_and_only_in_its_organization(api: Api) -> None:
    authority, keys = api.server.core.parts.authority, api.server.keys
    assert authority.check_key(bearing(keys.chat), ORG).role == "chat"
    assert authority.check_key(bearing(keys.provisioning), ORG).role == "provisioning"
    extra = api.server.controls.seed_key("reader", [Scope.READ, "provisioning:agents"], "elsewhere")
    caller = authority.check_key(bearing(extra), ORG)
    assert (caller.namespace, sorted(caller.scopes)) == ("elsewhere", ["chat:read", "provisioning:agents"])
    for key, organization in ((keys.chat, "org-2"), ("x", ORG), (keys.chat + " ", ORG), (keys.control, ORG)):
        with pytest.raises(Refusal) as caught:
            authority.check_key(bearing(key), organization)
        assert caught.value.code is Code.CREDENTIAL_REJECTED


@pytest.mark.req("PRIV-019")
async def test_the_state_holds_no_key(api: Api) -> None:
    extra = api.server.controls.seed_key("reader", [Scope.READ])
    dump = api.server.core.parts.state.dump()
    for key in (api.server.keys.chat, api.server.keys.provisioning, api.server.keys.control, extra):
        assert key not in dump
    assert key_hash(extra) in dump


async def run_authority(api: Api) -> RunAuthority:
    member = (await api.member()).data
    conversation = (await api.conversation()).data["conversationId"]
    return RunAuthority("chat", "lab", member["actorId"], member["teamId"], "agent-mcp", conversation, 1)


def why(refusal: Refusal | None) -> Code | None:
    return None if refusal is None else refusal.code


@pytest.mark.req("PA-021", "MB-037")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("key", Code.EXECUTION_DENIED),
        ("lapse", Code.EXECUTION_DENIED),
        ("identity", Code.EXECUTION_DENIED),
        ("deletion", Code.EXECUTION_DENIED),
        ("epoch", Code.EXECUTION_DENIED),
        ("thread", Code.CHAT_UNAVAILABLE),
        ("role", None),
        ("rotation", None),
    ],
)
async def test_what_ends_the_authority_of_a_run(api: Api, change: str, code: Code | None) -> None:
    held = await run_authority(api)
    authority, controls = api.server.core.parts.authority, api.server.controls
    assert authority.still_allowed(held) is None
    if change == "key":
        controls.revoke_key("chat")
    elif change == "lapse":
        controls.move_clock(240_000)
    elif change == "identity":
        controls.revoke_identity(USER)
    elif change == "deletion":
        controls.delete_identity(USER)
    elif change == "epoch":
        controls.reset_identity(USER)
    elif change == "thread":
        controls.remove("thread", held.conversation_id)
    elif change == "role":
        await api.member(role="admin")
    else:
        controls.rotate_key("chat")
    assert why(authority.still_allowed(held)) is code


@pytest.mark.req("MSG-036")
async def test_a_rotation_ends_deliveries_to_the_old_key_and_not_the_run(api: Api) -> None:
    held = await run_authority(api)
    authority = api.server.core.parts.authority
    caller = authority.check_key(bearing(api.server.keys.chat), ORG)
    assert authority.may_deliver(caller, held) is None
    api.server.controls.rotate_key("chat")
    assert why(authority.may_deliver(caller, held)) is Code.CREDENTIAL_REJECTED
    assert authority.still_allowed(held) is None


@pytest.mark.req("MB-035", "PA-049")
async def test_a_lapse_is_no_revocation(api: Api) -> None:
    conversation = await api.opened()
    before = (await api.member()).data
    api.server.controls.move_clock(360_000)
    assert (await api.context(conversation)).refusal == (403, "EXECUTION_DENIED")
    after = (await api.member()).data
    assert (after["actorId"], after["membershipVersion"]) == (before["actorId"], before["membershipVersion"])
    assert (await api.context(conversation)).status == 200


@pytest.mark.req("MB-032")
async def test_a_reset_raises_the_epoch_on_all_teams_and_a_role_does_not(api: Api) -> None:
    assert (await api.member(role="admin")).data["subjectVersion"] == 1
    assert api.server.controls.reset_identity(USER) == 2
    assert (await api.member(team="team-2")).data["subjectVersion"] == 2
    assert (await api.member()).data["subjectVersion"] == 2


@pytest.mark.req("PA-053")
async def test_another_namespace_has_other_employees(api: Api) -> None:
    here = (await api.member()).data["actorId"]
    scopes = [Scope.MEMBERSHIP, Scope.CREATE]
    same = api.server.controls.seed_key("same", scopes)
    other = api.server.controls.seed_key("other", scopes, "other")
    assert (await api.member(key=same)).data["actorId"] == here
    assert (await api.member(revision=1, key=other)).data["actorId"] != here


@pytest.mark.req("CV-013", "PA-039")
async def test_a_conversation_is_its_employees_own_in_its_team(api: Api) -> None:
    conversation = await api.opened()
    await api.member("second")
    await api.member(team="team-2")
    foreign = [await api.context(conversation, "second"), await api.context(conversation, team="team-2")]
    foreign.append(await api.context("no-such-conversation"))
    assert [reply.refusal for reply in foreign] == [(404, "CHAT_UNAVAILABLE")] * 3
    assert foreign[0].body == foreign[1].body == foreign[2].body
    assert (await api.context(conversation, USER, TEAM)).status == 200
