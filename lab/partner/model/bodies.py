"""Reading the bodies of requests within bounds: what is over is drained and not kept (PA-050, AT-043)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import BodyPartReader, web

from lab.http_shell import BODY_SECONDS
from lab.partner.model.answers import FilePart, JsonBody, Upload
from lab.partner.model.words import ATTACHMENT_BYTES

JSON_BYTES: Final = 1 << 20
"""A message of 32 000 characters, each escaped, is well below."""
FIELD_BYTES: Final = 4096
DRAINED_BYTES: Final = 256 << 20
"""Nobody needs to send more to be told that it is too much; then the connection closes."""
_FILE: Final = "file"
_FIELDS: Final = ("externalUserId", "externalTeamId")


async def read_json_body(request: web.Request) -> JsonBody:
    """The body of a request that is no upload."""
    content = bytearray()
    surplus = False
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in _chunks(request):
                room = JSON_BYTES - len(content)
                content += chunk[:room]
                surplus = surplus or len(chunk) > room
    except (web.RequestPayloadError, TimeoutError):
        surplus = True  # its framing or compression is broken: nothing of it counts
    return JsonBody(bytes(content), tuple(request.headers.getall("Content-Type", [])), surplus)


async def read_upload(request: web.Request) -> Upload:
    """A multipart body: one file, the two actor fields, nothing else."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            upload = await _read_parts(request)
            async for _ in _chunks(request):
                pass
    except (web.RequestPayloadError, TimeoutError):
        return Upload(fault="broken body")
    return upload


def body_digest(body: JsonBody | Upload) -> str:
    """SHA-256 of what identifies the input; empty for none."""
    file = body.file if isinstance(body, Upload) else None
    content = body.content if isinstance(body, JsonBody) else b"" if file is None else file.content
    return hashlib.sha256(content).hexdigest() if content else ""


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    drained = 0
    async for chunk in request.content.iter_any():
        drained += len(chunk)
        if drained > DRAINED_BYTES:
            raise web.RequestPayloadError("endless body")
        yield chunk


async def _read_parts(request: web.Request) -> Upload:
    if request.content_type != "multipart/form-data":
        return Upload(fault="content type")
    file: FilePart | None = None
    fields: dict[str, str] = {}
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                return Upload(fault="a part of parts")
            name = part.name
            if name == _FILE and file is None:
                file = await _read_file(part)
            elif name in _FIELDS and name not in fields:
                fields[name] = await _read_field(part)
            else:
                return Upload(fault="unknown or repeated part")
    except (ValueError, RuntimeError):
        return Upload(fault="not multipart")
    return Upload(file, fields)


async def _read_file(part: BodyPartReader) -> FilePart:
    content = bytearray()
    size = 0
    while chunk := await part.read_chunk():
        content += chunk[: ATTACHMENT_BYTES - len(content)]
        size += len(chunk)
        if size > DRAINED_BYTES:
            raise web.RequestPayloadError("endless file")
    return FilePart(bytes(content), min(size, ATTACHMENT_BYTES + 1), part.headers.get("Content-Type"), part.filename)


async def _read_field(part: BodyPartReader) -> str:
    content = bytearray()
    while chunk := await part.read_chunk():
        content += chunk
        if len(content) > FIELD_BYTES:
            raise ValueError("a field too long")
    return content.decode("utf-8")
