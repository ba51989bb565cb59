"""The issuer on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
import pytest
from aiohttp import web

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.grants.issuer import Route
from lab.grants.server import MAX_BODY_BYTES, PATHS, IssuerServer
from lab.http_shell import let_go_of_handlers, listen
from lab.journal.partner_events import IssuerRequest
from tests.grants.made import CONVERSATION, KEYS, WANTED, Hand
from tests.run.made import context


@asynccontextmanager
async def running() -> AsyncIterator[tuple[IssuerServer, aiohttp.ClientSession, RunContext]]:
    ctx = context(asyncio.get_running_loop().time)
    server = IssuerServer(ctx, "issuer", Hand().core)
    await server.start()
    try:
        async with aiohttp.ClientSession(server.base) as http:
            yield server, http, ctx
    finally:
        await server.close()


def bearer(route: Route) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[route]}"}


@pytest.mark.req("GR-001", "GR-009", "GR-012")
async def test_a_driver_registers_and_asks() -> None:
    async with running() as (_, http, ctx):
        for route, body in ((Route.CONVERSATIONS, CONVERSATION), (Route.GRANTS, WANTED)):
            async with http.post(PATHS[route], json=body, headers=bearer(route)) as response:
                answer = await response.json()
                assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
        assert set(answer) == {"grant", "expiresAt"}
        entries = ctx.journal.entries
        assert [entry.by for entry in entries] == ["issuer", "issuer"]
        assert all(isinstance(entry.event, IssuerRequest) and entry.event.status == 200 for entry in entries)
        assert answer["grant"] not in repr(entries)


@pytest.mark.parametrize("body", [b"x" * (MAX_BODY_BYTES + 1), b"{"])
async def test_a_body_that_is_none_is_refused(body: bytes) -> None:
    async with (
        running() as (_, http, _),
        http.post(PATHS[Route.GRANTS], data=BytesIO(body), headers=bearer(Route.GRANTS)) as response,
    ):
        assert response.status == 400


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_whose_compression_is_broken_is_refused_and_told(coding: str) -> None:
    async with running() as (_, http, ctx):
        for route in Route:
            for bearing, status in (({}, 401), (bearer(route), 400)):
                headers = {**bearing, "Content-Encoding": coding}
                async with http.post(PATHS[route], data=b"no such stream", headers=headers) as response:
                    assert response.status == status
                event = ctx.journal.entries[-1].event
                assert isinstance(event, IssuerRequest)
                assert event.status == status


async def test_only_posts_are_served() -> None:
    async with running() as (_, http, _), http.get(PATHS[Route.GRANTS]) as response:
        assert response.status == 405


@pytest.mark.req("GR-018")
async def test_it_can_share_the_port_of_another() -> None:
    app = web.Application()
    ctx = context(asyncio.get_running_loop().time)
    IssuerServer(ctx, "issuer", Hand().core).mount(app)
    runner = await listen(app, "127.0.0.1", 0, "another")
    try:
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(base) as http, http.post(PATHS[Route.GRANTS], json=WANTED) as response:
            assert response.status == 401
    finally:
        await runner.cleanup()
        let_go_of_handlers()


async def test_a_port_that_is_taken_is_told() -> None:
    async with running() as (server, _, ctx):
        port = int(server.base.rpartition(":")[2])
        with pytest.raises(EnvironmentFault, match=f"issuer cannot listen on 127.0.0.1:{port}"):
            await IssuerServer(ctx, "issuer", Hand().core, port=port).start()


async def test_an_address_has_who_listens() -> None:
    server = IssuerServer(context(), "issuer", Hand().core)
    with pytest.raises(MisuseError):
        _ = server.base
    await server.close()
