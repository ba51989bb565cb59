"""Listening by aiohttp, the same way in every double that serves HTTP."""

from __future__ import annotations

import asyncio
import ssl

from aiohttp import web, web_app

from lab.errors import EnvironmentFault

SHUTDOWN_SECONDS = 0.1
"""What a handler has to end in once its connection was torn; not 0, which would mean no limit."""
BODY_SECONDS = 600.0
"""Of a request's body, in seconds: a slow link may take its time, but not for ever."""


async def listen(
    app: web.Application, host: str, port: int, name: str, tls: ssl.SSLContext | None = None
) -> web.AppRunner:
    """Serve `app`, by HTTPS with `tls`; the port that was taken stands in `addresses[0][1]` of what is returned.

    `name` is who listens, in the message of the `EnvironmentFault` that a port raises which cannot be had. To end it
    call `cleanup()` of the runner, then `let_go_of_handlers()`.
    """
    app.on_response_prepare.append(_close_after_broken_body)
    # Cancelled handlers are how a caller that went away is noticed at once.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
    except OSError as error:
        await runner.cleanup()
        raise EnvironmentFault(
            f"{name} cannot listen on {host}:{port}: {error.strerror}. End the program that "
            "holds this port, or give another one; port 0 takes any that is free."
        ) from error
    return runner


def let_go_of_handlers() -> None:
    """aiohttp remembers the handlers of its last thousand routes with middlewares, and with them all of a run."""
    remembered = getattr(web_app, "_cached_build_middleware", None)
    if remembered is not None:
        remembered.cache_clear()


async def read_within(request: web.Request, limit: int) -> bytes | None:
    """The request's body, of which no more than `limit` bytes are kept.

    None for one that is longer, whose framing or compression is broken, or that takes more than `BODY_SECONDS`.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > limit:
                    return None
    except (web.RequestPayloadError, TimeoutError):
        return None
    return bytes(body)


async def _close_after_broken_body(request: web.Request, response: web.StreamResponse) -> None:
    """The answer is the connection's last: what is left of the body cannot be told from a next request."""
    if request.content.exception() is not None:
        # aiohttp would drain the rest, and fail.
        request.content.feed_eof()
        response.headers["Connection"] = "close"
        response.force_close()
