"""The order of the checks and the scope of each route, over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.errors import EnvironmentFault
from lab.partner.model.core import OPERATIONS, STREAM_PATH, PartnerCore
from lab.partner.model.words import BASE, Scope
from tests.partner.model.calls import ORG, SETTINGS, Api, Reply, context_of, running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as held:
        yield held


@dataclass(frozen=True)
class Route:
    method: str
    below: str
    scopes: tuple[Scope, ...]


C = "/conversations/c1"
ROUTES = (
    Route("PUT", "/memberships", (Scope.MEMBERSHIP,)),
    Route("POST", "/conversations", (Scope.CREATE,)),
    Route("GET", f"{C}/context", (Scope.CONTEXT,)),
    Route("PUT", f"{C}/context", (Scope.CONTEXT,)),
    Route("POST", f"{C}/attachments", (Scope.RUN,)),
    Route("POST", f"{C}/messages", (Scope.RUN,)),
    Route("GET", f"{C}/runs/r1", (Scope.READ,)),
    Route("GET", f"{C}/runs/r1/events", (Scope.READ,)),
    Route("GET", f"{C}/messages", (Scope.READ,)),
    Route("GET", f"{C}/attachments/a1/content", (Scope.READ, Scope.CONVERSATION_READ)),
)


@pytest.mark.req("PA-006", "PA-009")
def test_there_are_ten_operations_below_one_base() -> None:
    served = [(operation.method, operation.path) for operation in OPERATIONS] + [("GET", STREAM_PATH)]
    named = [
        (
            route.method,
            BASE
            + route.below.replace("c1", "{conversationId}").replace("r1", "{runId}").replace("a1", "{attachmentId}"),
        )
        for route in ROUTES
    ]
    assert sorted(served) == sorted(named)


@pytest.mark.req("PA-001", "PA-003", "PA-010", "PA-037", "MB-003", "CV-001", "CX-001", "CX-003")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.below}")
async def test_a_key_opens_the_routes_of_its_scope_alone(api: Api, route: Route) -> None:
    for scope in Scope:
        key = api.server.controls.seed_key(scope, [scope])
        reply = await api.call(route.method, route.below, key=key)
        denied = reply.status == 403 and reply.refusal == (403, "EXECUTION_DENIED")
        assert denied is (scope not in route.scopes), scope
    assert (await api.call(route.method, route.below, key=api.server.keys.provisioning)).refusal == (
        403,
        "EXECUTION_DENIED",
    )
    combined = api.server.controls.seed_key("combined", [*Scope, "provisioning:agents"])
    assert (await api.call(route.method, route.below, key=combined)).status != 403


@pytest.mark.req("PA-001")
async def test_a_key_without_any_scope_is_refused_everywhere(api: Api) -> None:
    key = api.server.controls.seed_key("empty", [])
    for route in ROUTES:
        assert (await api.call(route.method, route.below, key=key)).refusal == (403, "EXECUTION_DENIED")


@pytest.mark.req("PA-004", "PA-005", "PA-011", "PA-036", "PA-050")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.below}")
async def test_without_a_key_of_this_organization_nothing_else_is_told(api: Api, route: Route) -> None:
    async def refused(reply: Reply) -> None:
        assert reply.refusal == (401, "CREDENTIAL_REJECTED")
        assert "Set-Cookie" not in reply.headers

    for authorization in ("", "Bearer", "Bearer unknown", f"Basic {api.server.keys.chat}"):
        await refused(await api.call(route.method, route.below, headers={"Authorization": authorization}))
    elsewhere = f"{api.server.url}/v1/orgs/org-2/chat{route.below}"
    await refused(await api.call(route.method, elsewhere))
    old = api.server.keys.chat
    api.server.controls.rotate_key("chat")
    await refused(await api.call(route.method, route.below, key=old, headers={"Cookie": f"session={old}"}))
    api.server.controls.revoke_key("chat")
    await refused(await api.call(route.method, route.below))


@pytest.mark.req("PA-050")
async def test_of_two_faults_the_earlier_is_told(api: Api) -> None:
    await api.member()
    reader = api.server.controls.seed_key("reader", [Scope.READ])
    # scope before shape
    assert (await api.call("PUT", "/memberships", [], key=reader)).refusal == (403, "EXECUTION_DENIED")
    # shape before actor
    body = {"externalUserId": "nobody", "externalTeamId": "nowhere"}
    assert (await api.call("POST", "/conversations", body, idempotency_key="k")).refusal == (400, "CHAT_INVALID")
    # actor before ownership
    assert (await api.context("unknown", "nobody")).refusal == (403, "EXECUTION_DENIED")
    # ownership before the receipt
    await api.conversation(once="k")
    assert (await api.conversation("nobody", once="k")).refusal == (404, "CHAT_UNAVAILABLE")
    # the receipt before the state
    assert (await api.conversation("agent-none", once="k")).refusal == (409, "CHAT_CONFLICT")


@pytest.mark.req("PA-047")
async def test_ids_are_lower_case_uuids(api: Api) -> None:
    opened = (await api.member()).data | (await api.conversation()).data
    for name in ("actorId", "teamId", "conversationId"):
        assert len(opened[name]) == 36
        assert opened[name] == opened[name].lower()


async def test_a_state_that_is_none_leaves_nothing_open(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_text("this is not a database " * 100)
    with pytest.raises(EnvironmentFault):
        PartnerCore(context_of(), "partner", SETTINGS.__class__(ORG, (), (), state_path=file))


@pytest.mark.req("FX-026", "PA-047")
async def test_a_second_life_on_a_state_draws_no_id_again(tmp_path: Path) -> None:
    settings = SETTINGS.__class__(ORG, (), (), state_path=tmp_path / "state.db")
    drawn, instances = [], []
    for _ in range(2):
        core = PartnerCore(context_of(), "partner", settings)
        drawn.append(core.parts.ids.uuid())
        instances.append(core.parts.instance_id)
        core.close()
    assert drawn[0] != drawn[1]
    assert instances[0] == instances[1]
