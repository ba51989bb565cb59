from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp
import pytest

from lab.partner.model import bodies
from lab.partner.model.answers import FilePart, JsonBody, Upload
from lab.partner.model.bodies import JSON_BYTES, body_digest
from lab.partner.model.words import ATTACHMENT_BYTES
from lab.sim.run import run_virtual
from tests.partner.model.calls import TEAM, USER, Api, Reply, actor, running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as held:
        yield held


Part = tuple[str, bytes | str | BytesIO, str | None, str | None]
"""Name, content, content type, filename."""
ACTOR: tuple[Part, ...] = (("externalUserId", USER, None, None), ("externalTeamId", TEAM, None, None))
FILE: Part = ("file", b"hello", "text/plain", "note.txt")


def form(*parts: Part) -> aiohttp.FormData:
    data = aiohttp.FormData(default_to_multipart=True)
    for name, content, content_type, filename in parts:
        data.add_field(name, content, content_type=content_type, filename=filename)
    return data


async def upload(api: Api, conversation_id: str, *parts: Part, key: str | None = None) -> Reply:
    return await api.call("POST", f"/conversations/{conversation_id}/attachments", data=form(*parts), key=key)


def stored(api: Api) -> int:
    return api.server.controls.counts()["attachments"]


@pytest.mark.req("AT-001", "AT-002")
@pytest.mark.parametrize("order", [(FILE, *ACTOR), (*ACTOR, FILE), (ACTOR[0], FILE, ACTOR[1])])
async def test_the_parts_come_in_any_order(api: Api, order: tuple[Part, ...]) -> None:
    reply = await upload(api, await api.opened(), *order)
    assert reply.status == 201
    assert (reply.data["name"], reply.data["size"], reply.data["mimeType"]) == ("note.txt", 5, "text/plain")


@pytest.mark.req("AT-001", "AT-039", "PA-041")
@pytest.mark.parametrize(
    "parts",
    [
        (FILE,),
        (FILE, ACTOR[0]),
        ACTOR,
        (*ACTOR, FILE, FILE),
        (*ACTOR, ACTOR[0], FILE),
        (*ACTOR, FILE, ("stray", "x", None, None)),
        (("externalUserId", "x" * 5000, None, None), ACTOR[1], FILE),
        (("externalUserId", b"\xff", "text/plain", "x"), ACTOR[1], FILE),
        (*ACTOR, ("file", b"", "text/plain", "empty.txt")),
    ],
)
async def test_an_upload_that_is_not_the_due_parts_is_refused(api: Api, parts: tuple[Part, ...]) -> None:
    assert (await upload(api, await api.opened(), *parts)).refusal == (400, "CHAT_INVALID")
    assert stored(api) == 0


@pytest.mark.req("PA-061", "AT-039")
@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"nothing of the kind"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno name\r\n--b--\r\n"),
        ("multipart/mixed; boundary=b", b"--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="file"\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n'
            b"--c\r\n\r\nx\r\n--c--\r\n--b--\r\n",
        ),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\ncut'),
    ],
)
async def test_what_is_no_multipart_form_is_refused(api: Api, content_type: str, content: bytes) -> None:
    path = f"/conversations/{await api.opened()}/attachments"
    reply = await api.call("POST", path, data=content, headers={"Content-Type": content_type})
    assert reply.refusal == (400, "CHAT_INVALID")
    assert (await api.member()).status == 200


@pytest.mark.req("AT-008", "AT-043", "AT-045", "PA-050")
async def test_a_file_over_the_limit_is_drained_and_told_at_its_place(api: Api) -> None:
    conversation = await api.opened()
    await api.member("second")
    exact: Part = ("file", BytesIO(b"x" * ATTACHMENT_BYTES), "text/plain", "big.txt")
    assert (await upload(api, conversation, *ACTOR, exact)).data["size"] == ATTACHMENT_BYTES

    def over(by: int = 1) -> Part:
        return "file", BytesIO(b"x" * (ATTACHMENT_BYTES + by)), "application/pdf", "big.txt"

    for by in (1, ATTACHMENT_BYTES * 4):
        refused = await upload(api, conversation, *ACTOR, over(by))
        assert refused.refusal == (413, "CHAT_ATTACHMENT_TOO_LARGE")
    assert (await upload(api, conversation, *ACTOR, over(), key="unknown")).refusal == (401, "CREDENTIAL_REJECTED")
    other: Part = ("externalUserId", "second", None, None)
    assert (await upload(api, conversation, other, ACTOR[1], over())).refusal == (404, "CHAT_UNAVAILABLE")
    assert stored(api) == 1


@pytest.mark.req("PA-050")
async def test_a_json_body_over_the_bound_is_drained_before_the_key_is_judged(api: Api) -> None:
    whole = {**actor(), "sourceRevision": 1, "role": "member", "active": False, "validUntil": None}
    # What lies within the bound would be a confirmation.
    body = json.dumps(whole).encode() + b" " * (JSON_BYTES * 3)
    headers = {"Content-Type": "application/json"}
    assert (await api.call("PUT", "/memberships", data=BytesIO(body), headers=headers)).refusal == (400, "CHAT_INVALID")
    refused = await api.call("PUT", "/memberships", data=BytesIO(body), headers=headers, key="unknown")
    assert refused.refusal == (401, "CREDENTIAL_REJECTED")
    assert api.server.controls.counts()["identities"] == 0


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_whose_compression_is_broken_is_refused_without_a_trace(
    api: Api, coding: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    for key, status in (("unknown", 401), (api.server.keys.chat, 400)):
        assert (
            await api.call("PUT", "/memberships", data=b"no such stream", headers=headers, key=key)
        ).status == status
    assert not caplog.records


async def test_an_endless_body_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DRAINED_BYTES", 1 << 20)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    headers = {"Authorization": f"Bearer {api.server.keys.chat}", "Content-Type": "application/json"}
    try:
        async with api.http.put(f"{api.base}/memberships", data=endless(), headers=headers) as response:
            assert response.status == 400
    except aiohttp.ClientError:
        pass  # it went on to write into a connection that is closed
    await api.until(lambda: [event.status for event in api.journalled()] == [400])


async def test_an_endless_file_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DRAINED_BYTES", 1 << 20)
    path = f"/conversations/{await api.opened()}/attachments"
    big: Part = ("file", BytesIO(b"x" * (2 << 20)), "text/plain", "big.txt")
    assert (await api.call("POST", path, data=form(*ACTOR, big))).refusal == (400, "CHAT_INVALID")


def test_a_body_that_never_ends_is_given_up_in_time() -> None:
    async def scene() -> None:
        async with running() as api:
            address = urlsplit(api.server.url)
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            head = f"PUT {urlsplit(api.base).path}/memberships HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
            writer.write(head.encode())
            assert b" 401 " in await reader.readline()
            assert api.ctx.now() >= 600
            writer.close()

    run_virtual(scene, seed=1)


@pytest.mark.req("AT-047")
async def test_an_upload_that_is_cut_stores_nothing(api: Api) -> None:
    conversation = await api.opened()
    address = urlsplit(api.server.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    head = (
        f"POST {urlsplit(api.base).path}/conversations/{conversation}/attachments HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {api.server.keys.chat}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        "Content-Length: 9999\r\n\r\n--b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\nhalf"
    )
    writer.write(head.encode())
    await writer.drain()
    writer.transport.abort()
    assert (await upload(api, conversation, *ACTOR, FILE)).status == 201
    assert stored(api) == 1


def test_the_digest_is_of_what_identifies_the_input() -> None:
    sha = hashlib.sha256(b"abc").hexdigest()
    assert body_digest(JsonBody(b"abc")) == body_digest(Upload(FilePart(b"abc", 3, None, None))) == sha
    assert body_digest(JsonBody()) == body_digest(Upload()) == ""
