from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.partner.model.control_routes import CHANGES, VIEWS
from lab.partner.model.words import Scope
from tests.partner.model.calls import DESTINATION, TEAM, USER, Api, running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as held:
        yield held


@pytest.mark.req("PA-055")
async def test_no_key_of_the_contract_opens_a_control(api: Api) -> None:
    every = api.server.controls.seed_key("all", list(Scope))
    for key in (api.server.keys.chat, api.server.keys.provisioning, every, "unknown"):
        for name in CHANGES:
            assert (await api.control(f"/{name}", {}, key=key)).refusal == (401, "CREDENTIAL_REJECTED")
        for name in VIEWS:
            assert (await api.control(f"/{name}", method="GET", key=key)).refusal == (401, "CREDENTIAL_REJECTED")
    assert (await api.call("PUT", "/memberships", {}, key=api.server.keys.control)).status == 401


async def test_each_control_does_over_http_what_it_does_in_the_process(api: Api) -> None:
    conversation = await api.opened("agent-plain")
    bound = await api.opened()
    await api.bind(bound)
    run_id = None
    steps: list[tuple[str, dict[str, object]]] = [
        ("clock", {"advanceMs": 1000}),
        ("keys", {"role": "reader", "scopes": ["chat:read"], "namespace": "other"}),
        ("keys/rotate", {"role": "reader"}),
        ("keys/revoke", {"role": "reader"}),
        ("bindings/revoke", {"conversationId": bound}),
        ("budget", {"spent": True}),
        ("budget", {"spent": False}),
        ("agents", {"agentId": "agent-none", "mcp": [{"serverId": "s", "destination": DESTINATION}], "profile": True}),
        ("agents", {"agentId": "agent-two", "mcp": None, "profile": True}),
        ("guest", {"conversationId": conversation, "guest": True, "closed": False}),
        ("history", {"conversationId": conversation, "turns": 3}),
        ("queue", {"held": True}),
    ]
    for name, body in steps:
        reply = await api.control(f"/{name}", body)
        assert reply.status == 200, (name, reply.body)
    assert (await api.conversation("agent-none")).data["mcp"]["serverId"] == "s"
    assert (await api.conversation("agent-two")).data["mcp"] is None
    assert (await api.bind(bound, 1)).refusal == (403, "MCP_CONTEXT_DENIED")
    run_id = (await api.message(conversation)).data["runId"]
    assert (await api.control("/cancel", {"runId": run_id})).status == 200
    assert (await api.control("/queue", {"held": False})).status == 200
    counts = (await api.control("/counts", method="GET")).data
    assert (counts["runs"], counts["items"]) == (4, 7)
    assert isinstance((await api.control("/timings", method="GET")).data["lines"], list)
    reset = await api.control("/identities", {"change": "reset", "externalUserId": USER})
    assert reset.data == {"subjectVersion": 2}
    assert (await api.control("/remove", {"kind": "thread", "id": conversation})).status == 200
    await api.member("second")
    assert (await api.control("/identities", {"change": "revoke", "externalUserId": "second"})).status == 200
    assert (await api.control("/identities", {"change": "delete", "externalUserId": USER})).status == 200
    assert (await api.member()).refusal == (404, "CHAT_UNAVAILABLE")


async def test_a_rotation_over_http_gives_the_key_that_counts_now(api: Api) -> None:
    old = api.server.keys.chat
    key = (await api.control("/keys/rotate", {"role": "chat"})).data["key"]
    assert (await api.member(key=old)).status == 401
    assert (await api.member(key=key)).status == 200


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("clock", {}, "advanceMs is missing"),
        ("clock", {"advanceMs": 1.5}, "advanceMs"),
        ("clock", {"advanceMs": 10**15}, "advanceMs"),
        ("clock", {"advanceMs": 1, "stray": 1}, "unknown field beside advanceMs"),
        ("identities", {"change": "bless", "externalUserId": USER}, "change"),
        ("agents", {"agentId": "agent-mcp", "mcp": {}, "profile": True}, "mcp"),
        ("agents", {"agentId": "agent-mcp", "mcp": [{"serverId": "s"}], "profile": True}, "mcp"),
        ("history", {"conversationId": "c", "turns": 1001}, "turns"),
        ("queue", [], "not an object"),
    ],
)
async def test_a_body_that_is_not_the_due_one_is_refused(api: Api, name: str, body: object, why: str) -> None:
    """And says which member is wrong, as no route of the contract does."""
    reply = await api.control(f"/{name}", body)
    assert reply.refusal == (400, "CHAT_INVALID")
    assert reply.body["error"]["why"] == why


@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        ("POST", "nothing", {}),
        ("GET", "clock", None),
        ("POST", "counts", {}),
        ("POST", "remove", {"kind": "team", "id": TEAM}),
        ("POST", "cancel", {"runId": "r"}),
    ],
)
async def test_what_is_not_there_is_told(api: Api, method: str, name: str, body: object) -> None:
    reply = await api.control(f"/{name}", body, method=method)
    assert reply.refusal == (404, "CHAT_UNAVAILABLE")
    assert "no such" in reply.body["error"]["why"]
