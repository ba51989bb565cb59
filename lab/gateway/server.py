"""The WebSocket shell of a gateway double: messages move between sockets, tap, frame faults and core."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from lab.bearer import bears
from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.faults.plan import Fault
from lab.gateway.core import GatewayCore
from lab.gateway.frame_faults import FrameFaults, Passage, tampered
from lab.gateway.jobs import CallRefused
from lab.gateway.news import ContentNews, News
from lab.gateway.relay import Answer
from lab.gateway.socket import PARTING_SECONDS, Behind, CountingConnection, GatewaySocket, RawMessage
from lab.gateway.witness import GatewayWitness
from lab.journal.events import (
    Frame,
    LoopLag,
)
from lab.protocol.connection import PING, PONG
from lab.protocol.events import Close, Output, Transmit
from lab.tap.content import ContentTap
from lab.tap.frames import FrameTap

MAX_MESSAGE_BYTES = 1 << 20
"""Largest WebSocket message that is read at all, so that one above the frame limit can be answered by its code."""

LAG_NOTED = 0.05
"""Seconds by which a timer must be late to be noted in the journal."""

LinkStrike = Callable[[Fault, int, int | None], None]
"""Carries out a link fault behind a frame: the fault, the link's upstream-side port, and the offset in the stream
towards the agent, None for a frame that came from it."""


@dataclass(frozen=True)
class ContentReading:
    """Content on its way to a caller. `answer` comes at its end, without a body for a caller that reads chunks."""

    answer: asyncio.Future[Answer]
    read: Callable[[], bytes | None]
    """Takes the next chunk that waits; None when there is none."""


class GatewayServer:
    """A gateway double on a loopback port. `tokens` maps each agent's id to its Bearer token."""

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        core: GatewayCore,
        tap: FrameTap,
        content_tap: ContentTap,
        agents: Mapping[str, str],
        tokens: Mapping[str, str],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.name = name
        self.core = core
        self.faults = FrameFaults()
        self.strike_link: LinkStrike | None = None
        self._ctx = ctx
        self._agent_names = dict(agents)
        self._witness = GatewayWitness(ctx, name, tap, content_tap, self._agent_names, tokens)
        self._tokens = dict(tokens)
        self._host, self._port = host, port
        self._server: Server | None = None
        self._closed = False
        self._accepted: dict[CountingConnection, None] = {}
        self._held: dict[object, asyncio.TimerHandle] = {}
        self._sockets: dict[str, GatewaySocket] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._answers: dict[str, asyncio.Future[Answer]] = {}

    async def start(self) -> None:
        """Listen. A port that is taken raises `EnvironmentFault`."""
        self._witness.watch_log()
        quiet = logging.getLogger("lab.gateway.websockets")
        quiet.disabled = True
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                process_request=self._authenticate,
                create_connection=self._accept,  # type: ignore[arg-type]  # a class is only called
                compression=None,
                ping_interval=None,
                max_size=MAX_MESSAGE_BYTES,
                close_timeout=2,
                server_header=None,
                logger=quiet,
            )
        except OSError as error:
            raise EnvironmentFault(
                f"{self.name}: cannot listen on {self._host}:{self._port}: {error.strerror}. "
                "Choose another port with --port, or end what uses it."
            ) from error

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        if self._server is None:
            raise EnvironmentFault(f"{self.name} is not started")
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        return str(host), int(port)

    async def close(self) -> None:
        """Stop listening, end every socket, and answer who still waits for content with agent_offline.

        Safe to call again. A peer that does not read, or never finished its upgrade, does not hold it up.
        """
        self._closed = True
        self._witness.close(self.core)
        self._disarm()
        for held in self._held.values():
            held.cancel()
        self._held.clear()
        if self._server is not None:
            await self._end_sockets(self._server)
        answers, self._answers = self._answers, {}
        for request_id, future in answers.items():
            if not future.done():
                future.set_result(Answer(request_id, "error", code="agent_offline"))

    async def _end_sockets(self, server: Server) -> None:
        server.close()
        for connection in self._accepted:
            if connection.state is State.CONNECTING:
                connection.transport.abort()
        parting = asyncio.get_running_loop().call_later(PARTING_SECONDS, self._abort_all)
        try:
            await server.wait_closed()
        finally:
            parting.cancel()

    def _abort_all(self) -> None:
        for connection in self._accepted:
            connection.transport.abort()

    def _accept(self, protocol: ServerProtocol, server: Server, **settings: Any) -> CountingConnection:
        connection = CountingConnection(protocol, server, **settings)
        self._accepted[connection] = None
        connection.connection_lost_waiter.add_done_callback(lambda _: self._accepted.pop(connection, None))
        return connection

    # The upgrade

    def _authenticate(self, connection: ServerConnection, request: Request) -> Response | None:
        # HS-002, WS-054: HTTP 401 without an upgrade.
        given = request.headers.get_all("Authorization")
        agent_id = self._agent_of(given)
        if agent_id is None:
            reason = "no credential" if not given else "an unknown credential"
            self._witness.refused(HTTPStatus.UNAUTHORIZED, reason)
            return connection.respond(HTTPStatus.UNAUTHORIZED, "A valid Bearer credential is required.\n")
        connection.username = agent_id
        return None

    def _agent_of(self, headers: Sequence[str]) -> str | None:
        found = None
        for agent_id, token in self._tokens.items():
            # All are compared, so that the time tells nothing.
            if bears(headers, token):
                found = agent_id
        return found

    # Messages

    async def _serve(self, websocket: ServerConnection) -> None:
        agent_id = websocket.username or ""
        conn = self.core.connect(agent_id, self._ctx.now())
        assert isinstance(websocket, CountingConnection)
        socket = self._sockets[conn] = GatewaySocket(conn, agent_id, websocket, self._ctx.fail)
        self._guard(lambda: self._open(conn, agent_id, websocket.request))
        try:
            async for message in websocket:
                self._guard(lambda message=message: self._on_message(socket, message))  # type: ignore[misc]
        except ConnectionClosed:
            pass
        finally:
            # Before anything is waited for: nothing is written any more to a socket that is gone.
            del self._sockets[conn]
            self._guard(lambda: self._witness.closed(socket))
            self._guard(lambda: self._after(lambda now: self.core.closed(conn, now)))
            await socket.end()

    def _open(self, conn: str, agent_id: str, request: Request | None) -> None:
        self._witness.opened(conn, agent_id, request)
        self._rearm()

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run as one
            self._ctx.fail(defect)

    def _on_message(self, socket: GatewaySocket, message: str | bytes) -> None:
        if message in (PING, PONG):
            self._witness.text(socket.conn, "la-to-cp", str(message))
            self._receive(socket.conn, message)
            return
        frame = self._witness.judge(socket.conn, "la-to-cp", message)
        passage = self.faults.pass_frame(frame, self._agent_names[socket.agent_id])
        cause = self._witness.frame(frame, passage)
        if passage.fate == "passed":
            self._witness.body(frame, message, cause)
        self._deliver(socket, message, frame, passage)
        for fault in passage.link_faults:
            self._strike(fault, socket.peer_port, None)

    def _deliver(self, socket: GatewaySocket, message: str | bytes, frame: Frame, passage: Passage) -> None:
        if passage.fate == "dropped":
            return
        if passage.fault is not None and passage.fate == "delayed":
            self._later(passage.fault, lambda fault: self._receive_held(socket.conn, message, frame, fault))
            return
        self._receive(socket.conn, message)
        if passage.fault is not None and passage.copies:
            self._witness.copy(frame, passage.fault)
            self._receive(socket.conn, message)

    def _receive(self, conn: str, message: str | bytes) -> None:
        if conn in self._sockets:
            self._after(lambda now: self.core.receive_untrusted(conn, message, now))

    def _receive_held(self, conn: str, message: str | bytes, frame: Frame, fault: Fault) -> None:
        if conn in self._sockets:
            self._witness.body(frame, message, self._witness.released(frame, fault))
            self._receive(conn, message)

    def _later(self, fault: Fault, action: Callable[[Fault], None]) -> None:
        key = object()

        def act() -> None:
            del self._held[key]
            self._guard(lambda: action(fault))

        self._held[key] = asyncio.get_running_loop().call_later(fault.seconds or 0.0, act)

    # What the core wants

    def after(self, action: Callable[[float], None]) -> None:
        """Let a caller act on the core at lab time, then carry out what follows from it."""
        self._after(action)

    def _after(self, action: Callable[[float], None]) -> None:
        try:
            action(self._ctx.now())
        finally:
            for conn, output in self.core.take_output():
                socket = self._sockets.get(conn)
                if socket is not None:
                    self._write(socket, output)
            for news in self.core.take_news():
                self._tell(news)
            self._rearm()

    def _write(self, socket: GatewaySocket, output: Output) -> None:
        if isinstance(output, Close):
            socket.put(output)
        elif output.text in (PING, PONG):
            self._witness.text(socket.conn, "cp-to-la", output.text)
            socket.put(output)
        else:
            self._write_frame(socket, output)

    def _write_frame(self, socket: GatewaySocket, output: Transmit) -> None:
        frame = self._witness.judge(socket.conn, "cp-to-la", output.text)
        passage = self.faults.pass_frame(frame, self.name)
        if passage.tampers:
            output = Transmit(tampered(output.text))
            frame = self._witness.judge(socket.conn, "cp-to-la", output.text)
        cause = self._witness.frame(frame, passage)
        behind = self._striker(socket, passage.link_faults)
        if passage.fate == "dropped":
            # What strikes behind a lost frame strikes where it would have ended.
            socket.put(None, behind)
            return
        self._witness.body(frame, output.text, cause)
        if passage.fault is not None and passage.fate == "delayed":
            self._later(passage.fault, lambda fault: self._put_held(socket, output, behind, frame, fault))
            return
        socket.put(output, behind)
        if passage.fault is not None and passage.copies:
            self._witness.copy(frame, passage.fault)
            socket.put(output)

    def _put_held(
        self, socket: GatewaySocket, output: Transmit, behind: Behind | None, frame: Frame, fault: Fault
    ) -> None:
        if socket.conn in self._sockets:
            self._witness.released(frame, fault)
            socket.put(output, behind)

    def inject(self, agent_id: str, message: str | bytes, fault: Fault) -> None:
        """Write a message of nobody's making to an agent's newest socket. Raises `CallRefused` AGENT_OFFLINE."""
        sockets = [socket for socket in self._sockets.values() if socket.agent_id == agent_id]
        if not sockets:
            raise CallRefused("AGENT_OFFLINE", "the agent has no connection")
        frame = self._witness.judge(sockets[-1].conn, "cp-to-la", message)
        self._witness.frame(frame, Passage(fault=fault))
        sockets[-1].put(RawMessage(message))

    def _striker(self, socket: GatewaySocket, faults: tuple[Fault, ...]) -> Behind | None:
        if not faults:
            return None
        port = socket.peer_port

        def strike(offset: int) -> None:
            for fault in faults:
                self._guard(lambda fault=fault: self._strike(fault, port, offset))  # type: ignore[misc]

        return strike

    def _strike(self, fault: Fault, port: int, offset: int | None) -> None:
        if self.strike_link is not None:
            self.strike_link(fault, port, offset)

    def _rearm(self) -> None:
        due = self.core.next_timeout()
        if due is None or self._closed:
            self._disarm()
            return
        # Every message moves a limit back; a timer that comes early finds nothing due and is set anew.
        if self._timer is not None and self._timer_due <= due:
            return
        self._disarm()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(self._ctx.clock.loop_time(due), self._on_timer, due)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self, due: float) -> None:
        self._timer = None
        lag = self._ctx.now() - due
        if lag > LAG_NOTED:
            self._ctx.journal.record(self.name, LoopLag(round(lag, 6)))
        # A clock that reads a hair less than what was asked for would find nothing due, for ever.
        self._guard(lambda: self._after(lambda now: self.core.handle_timeout(max(now, due))))

    def _tell(self, news: News) -> None:
        self._witness.news(news)
        if isinstance(news, ContentNews):
            future = self._answers.pop(news.answer.request_id, None)
            if future is not None and not future.done():
                future.set_result(news.answer)

    async def content(self, agent_id: str, kind: str, ref: str) -> Answer:
        """Ask an agent for content and wait for its answer or its failure. Raises `CallRefused`."""
        return await self._ask(agent_id, kind, ref, in_chunks=False).answer

    def open_content(self, agent_id: str, kind: str, ref: str) -> ContentReading:
        """Ask an agent for content that the caller reads chunk by chunk (CH-026). Raises `CallRefused`."""
        return self._ask(agent_id, kind, ref, in_chunks=True)

    def _ask(self, agent_id: str, kind: str, ref: str, in_chunks: bool) -> ContentReading:
        if self._closed:
            raise CallRefused("AGENT_OFFLINE", "the gateway has ended")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        readings: list[ContentReading] = []

        def ask(now: float) -> None:
            request_id = self.core.request_content(agent_id, kind, ref, now, in_chunks=in_chunks)
            self._answers[request_id] = answer
            readings.append(ContentReading(answer, lambda: self._read(request_id)))

        self._after(ask)
        return readings[0]

    def _read(self, request_id: str) -> bytes | None:
        chunks: list[bytes | None] = []
        self._after(lambda _now: chunks.append(self.core.read_content(request_id)))
        return chunks[0]
