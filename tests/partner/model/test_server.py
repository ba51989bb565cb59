from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from yarl import URL

from lab.errors import EnvironmentFault, MisuseError, ScenarioError, StateFault
from lab.journal.partner_events import PartnerDelivery, fingerprint
from lab.journal.writer import entry_to_json
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import GivenKeys
from lab.partner.model.state import State, Value
from lab.sim.run import run_virtual
from tests.partner.model.calls import AGENTS, DESTINATION, ORG, SETTINGS, Api, actor, context_of, running

SLOW = """
script: slow
about: a long look, then an answer
iterations:
  - model: synthetic-1
    steps: [ { text: "so " }, { wait: 10s }, { text: "slow" } ]
"""


def slow_settings(folder: Path, state: Path | None = None) -> dict[str, Any]:
    script = folder / "slow.yaml"
    script.write_text(SLOW)
    agents = tuple(replace(agent, script=script) if agent.agent_id == "agent-plain" else agent for agent in AGENTS)
    return {"agents": agents, "state_path": state}


@pytest.mark.req("PA-007")
async def test_a_member_opens_a_conversation_and_binds_a_grant() -> None:
    async with running() as api:
        member = await api.member()
        assert member.status == 200
        opened = await api.conversation()
        assert opened.status == 201
        assert opened.data["mcp"] == {"serverId": "srv-1", "destination": DESTINATION}
        assert opened.data["actorId"] == member.data["actorId"]
        conversation = opened.data["conversationId"]
        before = await api.context(conversation)
        assert before.data == {"version": 0, "expiresAt": None, "active": False}
        assert (await api.bind(conversation)).data == {"version": 1}
        after = await api.context(conversation)
        assert (after.data["version"], after.data["active"]) == (1, True)


@pytest.mark.req("PA-004", "PA-055", "PA-056")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/memberships", 405),
        ("DELETE", "/conversations", 405),
        ("PUT", "/conversations/c/messages", 405),
        ("POST", "/nowhere", 404),
        ("GET", "/conversations/c/attachments/a", 404),
        ("GET", "/conversations//context", 404),
        ("POST", "/__lab/clock", 404),
        ("POST", "/login", 404),
    ],
)
async def test_what_is_no_route_is_told_in_the_envelope_to_who_has_a_key(method: str, path: str, status: int) -> None:
    async with running() as api:
        assert (await api.call(method, path)).refusal == (status, "CHAT_UNAVAILABLE")
        assert (await api.call(method, path, key="unknown")).refusal == (401, "CREDENTIAL_REJECTED")
        assert (await api.call(method, f"{api.server.url}/elsewhere", key="x")).refusal == (401, "CREDENTIAL_REJECTED")


async def test_a_method_that_is_not_allowed_names_those_that_are() -> None:
    async with running() as api:
        assert (await api.call("GET", "/memberships")).headers["Allow"] == "PUT"


@pytest.mark.req("PA-039", "PA-047")
@pytest.mark.parametrize("id_", ["%00", "%ED%A0%80", "%FF", "%2F", "%F0%9F%98%80", "x" * 4000, "a%20b", "'--"])
async def test_an_odd_id_is_an_unknown_one(id_: str) -> None:
    async with running() as api:
        await api.member()
        query = "externalUserId=employee-1&externalTeamId=team-ext"
        url = URL(f"{api.base}/conversations/{id_}/context?{query}", encoded=True)
        headers = {"Authorization": f"Bearer {api.server.keys.chat}"}
        async with api.http.get(url, headers=headers) as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "CHAT_UNAVAILABLE"
        assert not api.ctx.defects


@pytest.mark.req("PA-041", "PA-045")
@pytest.mark.parametrize("query", ["externalUserId=%ED%A0%80&externalTeamId=t", "externalUserId=%00", "=", "%", ""])
async def test_an_odd_query_is_refused(query: str) -> None:
    async with running() as api:
        url = URL(f"{api.base}/conversations/c/context?{query}", encoded=True)
        headers = {"Authorization": f"Bearer {api.server.keys.chat}"}
        async with api.http.get(url, headers=headers) as response:
            assert response.status in (400, 404)
            assert (await response.json())["success"] is False
        assert not api.ctx.defects


@pytest.mark.req("PA-009", "PA-055")
async def test_the_document_lies_outside_of_the_contract_and_names_ten_operations() -> None:
    async with running() as api:
        document = (await api.call("GET", f"{api.server.url}/openapi.json", key="none")).body
        operations = [
            (method, path)
            for path, item in document["paths"].items()
            for method in item
            if method in ("get", "put", "post")
        ]
        assert len(operations) == 10
        assert not any("__lab" in path for _, path in operations)


@pytest.mark.req("PRIV-015", "PRIV-021")
async def test_the_journal_has_fingerprints_and_digests_and_an_error_repeats_nothing() -> None:
    markers = ("m4rk-user", "m4rk-team", "m4rk-agent", "m4rk-once", "m4rk-grant", "m4rk-stray", "m4rk-key")
    async with running() as api:
        conversation = await api.opened()
        await api.bind(conversation, grant="tg1.m4rk-grant")
        body = {"externalUserId": "m4rk-user", "externalTeamId": "m4rk-team", "agentId": "m4rk-agent"}
        replies = [
            await api.call("POST", "/conversations", body, idempotency_key="m4rk-once"),
            await api.call("POST", "/conversations", {**body, "m4rk-stray": 1}, idempotency_key="m4rk-once"),
            await api.call("POST", "/conversations", body, key="m4rk-key"),
            await api.bind(conversation, 9, grant="tg1.m4rk-grant", serverId="m4rk-agent"),
            await api.call("GET", "/conversations/m4rk-stray/context", query=actor()),
            await api.call("GET", "/m4rk-stray"),
        ]
        for reply in replies:
            assert not any(marker in json.dumps(reply.body) for marker in markers)
        lines = "\n".join(entry_to_json(entry) for entry in api.ctx.journal.entries)
        secrets = (api.server.keys.chat, "m4rk-once", "m4rk-grant", "m4rk-key", "m4rk-user")
        assert not any(secret in lines for secret in secrets)
        told = api.journalled()
        assert told[0].key == fingerprint(api.server.keys.chat)
        assert told[0].key_role == "chat"
        assert told[-4].key_role is None
        assert {event.route for event in told} == {
            "PUT /memberships",
            "POST /conversations",
            "PUT /conversations/{conversationId}/context",
            "GET /conversations/{conversationId}/context",
            "unknown",
        }
        assert len(told) == 9
        assert told[2].facts["grant"] == fingerprint("tg1.m4rk-grant")


@pytest.mark.req("PRIV-018")
async def test_there_is_no_address_before_start_nor_after_close() -> None:
    server = PartnerServer(context_of(), "partner", SETTINGS)
    for name in ("url", "core", "keys", "controls"):
        with pytest.raises(MisuseError):
            getattr(server, name)
    await server.start()
    assert server.url.startswith("http://127.0.0.1:")
    await server.close()
    await server.close()
    with pytest.raises(MisuseError):
        _ = server.url


async def test_a_port_that_is_taken_is_named_and_leaves_nothing_behind() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = PartnerServer(context_of(), "partner", SETTINGS, port=port)
        with pytest.raises(EnvironmentFault, match=str(port)):
            await server.start()
        with pytest.raises(MisuseError):
            _ = server.core


async def test_a_script_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    agents = (replace(AGENTS[0], script=tmp_path / "none.yaml"),)
    with pytest.raises(ScenarioError, match="cannot be read"):
        await PartnerServer(context_of(), "partner", replace(SETTINGS, agents=agents)).start()


@pytest.mark.req("FX-026")
async def test_a_start_without_a_state_is_a_new_instance() -> None:
    given = GivenKeys("chat", "provisioning", "control")
    async with running(keys=given) as api:
        assert api.server.keys.chat == "chat"
        url, instance = api.server.url, api.server.instance_id
        await api.opened()
        await api.server.crash()
        await api.server.start()
        assert api.server.url == url
        assert api.server.instance_id != instance
        assert api.server.keys.chat != "chat"
        assert (await api.member(key="chat")).refusal == (401, "CREDENTIAL_REJECTED")
        assert api.server.controls.counts()["conversations"] == 0


@pytest.mark.req("FX-026", "CV-012", "MB-018", "MSG-010", "MSG-011", "MSG-035", "MSG-036", "TM-053")
def test_a_restart_on_a_state_keeps_all_and_runs_only_what_nobody_had_claimed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(**slow_settings(tmp_path, tmp_path / "state.db")) as api:
            keys, instance = api.server.keys, api.server.instance_id
            member = (await api.member()).data
            first = (await api.conversation("agent-plain", once="k")).data["conversationId"]
            second = (await api.conversation("agent-plain")).data["conversationId"]
            claimed = (await api.message(first, once="m")).data["runId"]
            await api.until(lambda: bool(api.turns("model")))
            api.server.controls.hold_queue(True)
            accepted = (await api.message(second)).data["runId"]
            await api.server.crash()
            await api.server.start()
            assert (api.server.keys, api.server.instance_id) == (keys, instance)
            assert (await api.member()).data["actorId"] == member["actorId"]
            assert (await api.conversation("agent-plain", once="k")).data["conversationId"] == first
            await api.until(lambda: bool(api.turns("ended")))
            await api.until(lambda: any(event.run_id == accepted for event in api.turns("ended")))
            stopped = (await api.run(first, claimed)).data
            assert (stopped["status"], stopped["reason"], stopped["usage"]) == ("interrupted", None, None)
            assert stopped["timings"]["complete"] is False
            assert (await api.message(first, once="m")).data["runId"] == claimed
            assert (await api.run(second, accepted)).data["status"] == "completed"
            assert [event.run_id for event in api.turns("model")] == [claimed, accepted]

    run_virtual(scene, seed=1)


@pytest.mark.req("MSG-036")
def test_a_rotation_closes_the_streams_of_the_old_key_and_the_run_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(**slow_settings(tmp_path)) as api:
            conversation = await api.opened("agent-plain")
            run_id = (await api.message(conversation)).data["runId"]
            await api.until(lambda: bool(api.turns("model")))
            stream = asyncio.create_task(api.events(conversation, run_id))
            await api.until(lambda: _deliveries(api) == ["opened"])
            api.server.controls.rotate_key("chat")
            cut = await stream
            assert b"event: done" not in cut.body
            assert _deliveries(api) == ["opened", "withheld"]
            await api.until(lambda: bool(api.turns("ended")))
            assert (await api.run(conversation, run_id)).data["status"] == "completed"
            assert b"event: run_status" in (await api.events(conversation, run_id)).body

    run_virtual(scene, seed=1)


@pytest.mark.req("SSE-026", "SSE-037")
def test_a_stream_ends_silently_when_the_lease_lapses(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(**slow_settings(tmp_path)) as api:
            await api.member(seconds=5)
            conversation = (await api.conversation("agent-plain")).data["conversationId"]
            run_id = (await api.message(conversation)).data["runId"]
            began = api.ctx.now()
            cut = await api.events(conversation, run_id)
            assert 4.5 <= api.ctx.now() - began <= 5.5
            assert b"event: turn" in cut.body
            assert b"event: done" not in cut.body
            assert _deliveries(api) == ["opened", "withheld"]
            assert (await api.events(conversation, run_id)).refusal == (403, "EXECUTION_DENIED")

    run_virtual(scene, seed=1)


@pytest.mark.req("MB-011", "MB-035")
def test_a_lease_lapses_by_itself_within_five_minutes() -> None:
    async def scene() -> None:
        async with running() as api:
            conversation = await api.opened()
            await api.member(seconds=305)
            await asyncio.sleep(304.9)
            assert (await api.context(conversation)).status == 200
            await asyncio.sleep(0.2)
            assert (await api.context(conversation)).refusal == (403, "EXECUTION_DENIED")

    run_virtual(scene, seed=1)


def _deliveries(api: Api) -> list[str]:
    return [entry.event.change for entry in api.ctx.journal.entries if isinstance(entry.event, PartnerDelivery)]


async def test_a_crash_tears_what_is_open() -> None:
    async with running() as api:
        api.server.controls.hold_queue(True)
        conversation = await api.opened("agent-plain")
        run_id = (await api.message(conversation)).data["runId"]
        stream = asyncio.create_task(api.events(conversation, run_id))
        await api.until(lambda: _deliveries(api) == ["opened"])
        await api.server.crash()
        with pytest.raises(aiohttp.ClientError):
            await stream


async def test_broken_framing_is_no_body() -> None:
    async with running() as api:
        address = urlsplit(api.server.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(
            f"PUT /v1/orgs/{ORG}/chat/memberships HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {api.server.keys.chat}\r\n"
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd".encode()
        )
        assert b" 400 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
        assert (await api.member()).status == 200


async def test_a_state_that_cannot_be_written_answers_nothing_more(tmp_path: Path) -> None:
    """The connection is torn, and why is noted, for whoever runs the server to end it."""
    async with running(state_path=tmp_path / "s.sqlite") as api:
        state = api.server.core.parts.state
        state.rows(f"PRAGMA max_page_count = {state.count('PRAGMA page_count')}")
        keys = [api.control("/keys", {"role": "r" * 2000 + str(number), "scopes": []}) for number in range(5)]
        answers = await asyncio.gather(*keys, return_exceptions=True)
        assert isinstance(answers[-1], aiohttp.ServerDisconnectedError)
        assert {type(defect) for defect in api.ctx.defects} == {StateFault}


@pytest.mark.parametrize("path", ["/conversations/c/context", "/nothing"])
async def test_a_state_that_cannot_be_read_answers_nothing_more(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the route is unknown: its key is looked up as well."""
    async with running() as api:

        def fail(*_: object) -> None:
            raise StateFault("The state cannot be kept.")

        monkeypatch.setattr(State, "row", fail)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await api.call("GET", path)
        monkeypatch.undo()
        assert {str(defect) for defect in api.ctx.defects} == {"The state cannot be kept."}


async def test_a_stream_whose_state_cannot_be_read_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than end as if all had been told, also behind its first events."""
    async with running() as api:
        conversation = await api.opened("agent-plain")
        run_id = (await api.message(conversation)).data["runId"]
        rows = State.rows

        def fail(state: State, sql: str, *values: Value) -> list[sqlite3.Row]:
            if "FROM events" in sql:
                raise StateFault("The state cannot be kept.")
            return rows(state, sql, *values)

        monkeypatch.setattr(State, "rows", fail)
        with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError)):
            await api.events(conversation, run_id)
        assert {str(defect) for defect in api.ctx.defects} == {"The state cannot be kept."}
