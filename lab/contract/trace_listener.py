"""Where somebody's Local Agent connects to: the lab as a gateway that plays traces, one connection at a time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from lab.bearer import bears
from lab.contract.trace_line import MAX_MESSAGE_BYTES, Line, Unreachable, quiet
from lab.errors import EnvironmentFault

CONNECTS_SECONDS = 60.0
"""How long an agent may take to connect, its back-off included; a person may have to start it first."""

CLOSING_SECONDS = 2


class AgentListener:
    """A gateway's door on a loopback port; `token` is the agent's credential. `start` it, then `close` it."""

    def __init__(self, token: str, patience: float, port: int = 0, connects: float = CONNECTS_SECONDS) -> None:
        self._token = token
        self._patience = patience
        self._port = port
        self._connects = connects
        self._server: Server | None = None
        self._arrived: asyncio.Queue[ServerConnection] = asyncio.Queue()

    @property
    def url(self) -> str:
        """Where the agent connects to. Valid after `start`."""
        if self._server is None:
            raise EnvironmentFault("the listener for agents is not started")
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        return f"ws://{host}:{port}/agent"

    async def start(self) -> None:
        """Listen. A port that is taken raises `EnvironmentFault`."""
        try:
            self._server = await serve(
                self._hold,
                "127.0.0.1",
                self._port,
                process_request=self._authenticate,
                compression=None,
                ping_interval=None,
                max_size=MAX_MESSAGE_BYTES,
                close_timeout=CLOSING_SECONDS,
                server_header=None,
                logger=quiet,
            )
        except OSError as error:
            raise EnvironmentFault(
                f"cannot listen on 127.0.0.1:{self._port}: {error.strerror}. "
                "Choose another port with --listen, or end what uses it."
            ) from error

    def _authenticate(self, connection: ServerConnection, request: Request) -> Response | None:
        # HS-002: no upgrade without the credential.
        if bears(request.headers.get_all("Authorization"), self._token):
            return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, "A valid Bearer credential is required.\n")

    async def _hold(self, websocket: ServerConnection) -> None:
        self._arrived.put_nowait(websocket)
        await websocket.wait_closed()

    async def open(self) -> Line:
        """The agent's next connection that is still open. Raises `Unreachable` when it does not come."""
        try:
            async with asyncio.timeout(self._connects):
                while not (line := Line(await self._arrived.get(), self._patience)).is_open:
                    pass
        except TimeoutError:
            raise Unreachable(f"no agent connected within {self._connects:g} s") from None
        return line

    async def close(self) -> None:
        """Stop listening, and drop every connection. Safe to call again."""
        server, self._server = self._server, None
        if server is not None:
            for connection in server.connections:
                connection.transport.abort()
            server.close()
            await server.wait_closed()
