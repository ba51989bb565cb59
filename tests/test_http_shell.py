from __future__ import annotations

from io import BytesIO

import aiohttp
import pytest
from aiohttp import web, web_app

from lab.errors import EnvironmentFault
from lab.http_shell import let_go_of_handlers, listen, read_within

LIMIT = 100


async def measure(request: web.Request) -> web.Response:
    body = await read_within(request, LIMIT)
    return web.Response(text="too long" if body is None else str(len(body)))


async def start() -> web.AppRunner:
    app = web.Application()
    app.router.add_post("/", measure)
    return await listen(app, "127.0.0.1", 0, "somebody")


@pytest.mark.parametrize(("size", "said"), [(0, "0"), (LIMIT, "100"), (LIMIT + 1, "too long"), (300_000, "too long")])
async def test_no_more_than_the_limit_is_read(size: int, said: str) -> None:
    runner = await start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        async with aiohttp.ClientSession() as http, http.post(url, data=BytesIO(b"x" * size)) as response:
            assert await response.text() == said
    finally:
        await runner.cleanup()


async def test_a_port_that_is_taken_is_told() -> None:
    runner = await start()
    try:
        port = runner.addresses[0][1]
        with pytest.raises(EnvironmentFault, match=f"another cannot listen on 127.0.0.1:{port}: .* port 0"):
            await listen(web.Application(), "127.0.0.1", port, "another")
    finally:
        await runner.cleanup()


def test_a_cache_that_aiohttp_has_is_cleared() -> None:
    let_go_of_handlers()
    assert web_app._cached_build_middleware.cache_info().currsize == 0
