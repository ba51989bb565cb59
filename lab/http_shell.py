"""Listening by aiohttp, the same way in every double that serves HTTP."""

from __future__ import annotations

from aiohttp import web, web_app

from lab.errors import EnvironmentFault

SHUTDOWN_SECONDS = 0.1
"""What a handler has to end in once its connection was torn; not 0, which would mean no limit."""


async def listen(app: web.Application, host: str, port: int, name: str) -> web.AppRunner:
    """Serve `app`; the port that was taken stands in `addresses[0][1]` of what is returned.

    `name` is who listens, in the message of the `EnvironmentFault` that a port raises which cannot be had. To end it
    call `cleanup()` of the runner, then `let_go_of_handlers()`.
    """
    # Cancelled handlers are how a caller that went away is noticed at once.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
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
    """The request's body, or None for one of more than `limit` bytes, of which no more than that is kept."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)
