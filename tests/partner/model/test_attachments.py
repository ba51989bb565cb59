from __future__ import annotations

import io
import json
from pathlib import Path

import aiohttp
import pytest

from lab.journal.partner_events import PartnerTurn
from lab.partner.model.words import ACCEPTED_TYPES, IMAGE_TYPES
from tests.partner.model.calls import USER, Reply, actor
from tests.partner.model.played import FIXTURES, Play, playing, virtually

HELLO = FIXTURES / "hello.yaml"
MOST = 3_145_728


async def uploaded(
    play: Play, content: bytes = b"x", kind: str | None = "text/plain", name: str = "a.txt", user: str = USER
) -> Reply:
    form = aiohttp.FormData(quote_fields=False)
    for field, value in actor(user).items():
        form.add_field(field, value)
    form.add_field("file", io.BytesIO(content), filename=name, content_type=kind)
    return await play.api.call("POST", f"{play.path}/attachments", data=form)


async def file_of(play: Play, content: bytes = b"x", kind: str = "text/plain") -> str:
    reply = await uploaded(play, content, kind)
    assert reply.status == 201, reply.body
    attachment_id: str = reply.data["id"]
    return attachment_id


async def content(play: Play, attachment_id: str, key: str | None = None, *, query: bool = True) -> Reply:
    path = f"{play.path}/attachments/{attachment_id}/content"
    return await play.api.call("GET", path, query=actor() if query else None, key=key)


@pytest.mark.req("AT-002", "AT-004", "AT-006", "AT-018", "AT-019", "AT-020", "AT-021", "AT-022", "PRIV-010", "AT-048")
@pytest.mark.req("AT-044")
def test_all_eight_types_come_back_as_they_went(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            for kind in ACCEPTED_TYPES:
                # The caller of these tests reads JSON as JSON, so each file is some.
                raw = f'"<html>{kind}"'.encode()
                reply = await uploaded(play, raw, kind, "../../n.bin")
                assert reply.status == 201
                assert set(reply.data) == {"id", "kind", "mimeType", "name", "size", "createdAt"}
                assert reply.data["kind"] == ("image" if kind in IMAGE_TYPES else "text")
                assert (reply.data["mimeType"], reply.data["name"], reply.data["size"]) == (kind, "n.bin", len(raw))
                path = f"{play.path}/attachments/{reply.data['id']}/content"
                got = await play.api.call("GET", path, query=actor(), headers={"Range": "bytes=0-1"})
                body = json.dumps(got.body).encode() if kind == "application/json" else got.body
                assert (got.status, body) == (200, raw)
                assert got.headers["Content-Type"] == kind
                assert got.headers["Content-Length"] == str(len(raw))
                assert got.headers["Cache-Control"] == "private, no-store"
                assert got.headers["X-Content-Type-Options"] == "nosniff"
                assert got.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"

    virtually(main)


@pytest.mark.req("AT-008", "AT-017", "AT-026", "AT-027", "AT-031", "AT-033", "AT-039", "AT-045")
def test_what_is_not_taken(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            assert (await uploaded(play, b"x" * MOST)).status == 201
            large = await uploaded(play, b"x" * (MOST + 1), "application/pdf")
            assert large.refusal == (413, "CHAT_ATTACHMENT_TOO_LARGE")
            assert large.body["error"]["maxBytes"] == MOST
            odd = await uploaded(play, b"x", "image/svg+xml")
            assert odd.refusal == (415, "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED")
            assert odd.body["error"]["acceptedTypes"] == list(ACCEPTED_TYPES)
            assert (await uploaded(play, b"")).refusal == (400, "CHAT_INVALID")
            await play.api.member("employee-2")
            foreign = await uploaded(play, b"x" * (MOST + 1), user="employee-2")
            assert foreign.refusal == (404, "CHAT_UNAVAILABLE")
            play.api.server.controls.set_guest(play.conversation, True, False)
            assert (await uploaded(play, b"x" * (MOST + 1))).refusal == (403, "CHAT_ATTACHMENT_NOT_ALLOWED")
            assert play.api.server.controls.counts()["attachments"] == 1

    virtually(main)


@pytest.mark.req("AT-005", "AT-007", "AT-012", "AT-014", "AT-035", "AT-046", "HIS-006")
def test_files_of_a_message_reach_the_model_and_the_history_in_their_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            image = await file_of(play, b"\x89PNG", "image/png")
            exact, long = await file_of(play, b"e" * 20_000), await file_of(play, b"l" * 20_001)
            files = [long, image, exact]
            reply = await play.say(None, once="k", attachmentIds=files)
            assert reply.status == 202
            await play.events(reply.data["runId"])
            assert (await play.say(None, once="k", attachmentIds=files)).data["runId"] == reply.data["runId"]
            question = (await play.history())["items"][1]
            assert [file["id"] for file in question["attachments"]] == files
            (facts,) = [turn.facts for turn in play.seen(PartnerTurn) if turn.change == "model"]
            assert [one["bytes"] for one in facts["images"]] == [4]
            assert facts["shortened"] == 1
            assert 40_000 < facts["prompt"]["bytes"] < 40_100
            assert (await play.say(None, attachmentIds=[exact])).status == 202

    virtually(main)


@pytest.mark.req("AT-009", "AT-013", "AT-015", "AT-016", "AT-028", "AT-029", "AT-032", "AT-045", "PRIV-011")
def test_files_that_a_message_cannot_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            files = [await file_of(play) for _ in range(6)]
            many = await play.say(None, attachmentIds=[*files[:5], "unknown"])
            assert many.refusal == (400, "CHAT_ATTACHMENT_TOO_MANY")
            unknown = await play.say(None, attachmentIds=["unknown"])
            assert unknown.refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            mine = play.conversation
            play.conversation = await play.api.opened("agent-plain")
            assert (await play.say(None, attachmentIds=files[:1])).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            assert (await content(play, files[0])).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            play.conversation = mine
            assert play.api.server.controls.counts()["runs"] == 0
            assert (await play.say(None, attachmentIds=files[:5])).status == 202

    virtually(main)


@pytest.mark.req("AT-010", "AT-041", "AT-024")
def test_a_file_that_no_message_used_is_gone_after_an_hour(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            sent, unsent = await file_of(play, b"SENT-MARKER"), await file_of(play, b"UNSENT-MARKER")
            reply = await play.say(None, attachmentIds=[sent])
            await play.events(reply.data["runId"])
            controls, state = play.api.server.controls, play.api.server.core.parts.state
            controls.move_clock(59 * 60_000)
            await play.api.member()
            assert (await content(play, unsent)).status == 200
            controls.move_clock(2 * 60_000)
            await play.api.member()
            assert (await content(play, unsent)).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            assert (await play.say(None, attachmentIds=[unsent])).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            assert (await content(play, sent)).status == 200
            assert controls.counts()["attachments"] == 1
            assert b"UNSENT-MARKER".hex().upper() not in state.dump()
            assert b"SENT-MARKER".hex().upper() in state.dump()

    virtually(main)


@pytest.mark.req("AT-041")
def test_a_file_past_its_hour_is_refused_though_the_sweep_has_not_come(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            file = await file_of(play)
            play.api.server.core.parts.state.run("UPDATE attachments SET created_ms = created_ms - 3600001")
            assert (await play.say(None, attachmentIds=[file])).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            assert (await content(play, file)).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            assert play.api.server.controls.counts()["attachments"] == 1

    virtually(main)


@pytest.mark.req("AT-010")
def test_the_sweep_comes_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain", keep_alive_seconds=1000.0) as play:
            await file_of(play)
            controls = play.api.server.controls
            controls.hold_queue(True)
            run_id = await play.accepted()
            await play.api.member(seconds=300)
            # The lease ends the stream after five minutes; each wait in it is virtual.
            for _ in range(13):
                await play.api.member(seconds=300)
                async with play.stream(run_id) as response:
                    assert await response.read() == b""
            assert controls.counts()["attachments"] == 0

    virtually(main)


@pytest.mark.req("AT-018", "AT-034", "HIS-037")
def test_the_two_scopes_of_the_content_route(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            file = await file_of(play)
            reader = play.api.server.controls.seed_key("reader", ["chat:conversation:read"])
            assert (await content(play, file, reader, query=False)).status == 200
            assert (await content(play, file, reader)).status == 200
            assert (await content(play, file, query=False)).refusal == (400, "CHAT_INVALID")
            missing = await play.api.call("GET", f"/conversations/other/attachments/{file}/content", key=reader)
            assert missing.refusal == (404, "CHAT_UNAVAILABLE")
            refused = await play.api.call("GET", f"{play.path}/messages", query=actor(), key=reader)
            assert refused.refusal == (403, "EXECUTION_DENIED")

    virtually(main)
