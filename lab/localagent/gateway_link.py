"""The reference agent's way to the gateway: one session over as many WebSockets as it takes.

It keeps the session, its outbox and unfinished bodies while there is no connection, connects again with a growing
wait, and repeats what a lost session took with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

from lab.context import RunContext
from lab.localagent.config import AgentConfig
from lab.protocol.agent_side import AgentConnection, ContentSource, Registration
from lab.protocol.contract import Contract
from lab.protocol.events import (
    BecameReady,
    Close,
    ContentFailed,
    Ended,
    Event,
    HeartbeatDue,
    Overdue,
    Received,
    Settled,
    SignatureWarning,
    TurnedV1,
)
from lab.protocol.frames import Draft, Frame, FrameBuilder, RefusedDraft
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Delivery
from lab.protocol.session import AGENT_SENDER, RENEWED_TYPES, SenderLimits, Session
from lab.protocol.signing import Verifier

FIRST_WAIT, LONGEST_WAIT = 0.25, 2.0
"""Wait before connecting again, doubling (decision 27)."""

V1_SECONDS = 600.0
"""After a fallback v2 is not offered again for this long (HS-021)."""

MAX_MESSAGE_BYTES = 1 << 20
OPEN_SECONDS = 10.0

PARTING_SECONDS = 5.0
"""How long a gateway has to read what was written, and to answer a close; then the socket is aborted."""

STOOD_STILL_SECONDS = 1.0
"""A timer that comes so late tells that the whole process stood still."""

READ_FIRST_SECONDS = 0.05
"""What it then has to read what came meanwhile, before it calls anything late."""

_log = logging.getLogger("lab.localagent")

_quiet = logging.getLogger("lab.localagent.websockets")
"""Takes what the WebSocket library would say: frames and credentials, at its most talkative."""
_quiet.disabled = True

_CONNECT_FAILURES = (OSError, TimeoutError, InvalidHandshake, InvalidMessage, EOFError, ConnectionClosed)


@dataclass(frozen=True)
class _Failure:
    """A content.request that is to be answered with a failure."""

    request_id: str
    workspace_id: str
    status: str
    code: str


class GatewayLink:
    """Connects, registers and stays connected until `close`. Hand frames in at any time.

    `on_frame` acts on a data frame, which is acked at once: accepted for None, else rejected with the wire code.
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        config: AgentConfig,
        contract: Contract,
        registration: Callable[[], Registration],
        on_frame: Callable[[Frame], str | None],
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._contract = contract
        self._registration = registration
        self._on_frame = on_frame
        self._ids = ctx.draws(name, "msgId")
        self._dice = ctx.draws(name, "reconnect")
        sender = SenderLimits(config.max_in_flight, AGENT_SENDER.queue)
        self._epoch_ms = ctx.clock.epoch_ms + round(config.clock_ahead * 1000)
        builder = FrameBuilder(contract, config.tenant_id, config.agent_id, self._epoch_ms)
        session = Session(contract.limits, sender)
        self._outbox = Outbox(session, contract, builder, self._ids.uuid, signs_anew=False)
        self._verifier = Verifier(config.trusted_keys, contract.limits.clock_skew_seconds)
        self._connection: AgentConnection | None = None
        self._websocket: ClientConnection | None = None
        self._unfinished: tuple[ContentSource, ...] = ()
        self._failures: list[_Failure] = []
        self._bodies: dict[str, str] = {}
        """Workspaces of the bodies on their way, by requestId."""
        self._timer: asyncio.TimerHandle | None = None
        self._read_first = 0.0
        """The time limit for which reading went first."""
        self._parting: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self._v1_until: float | None = None
        self._audits: list[Delivery] = []
        self._audits_settled = asyncio.Event()
        self._audits_settled.set()
        self._task: asyncio.Task[None] | None = None
        self.heartbeat: Callable[[], Mapping[str, Any]] = dict
        self.before_connect: Callable[[], Awaitable[None]] | None = None

    # Life

    def start(self) -> None:
        """Begin to connect."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="local agent gateway link")

    async def close(self) -> None:
        """Say goodbye and stop. Safe to call again."""
        if self._task is None:
            return
        task, self._task = self._task, None
        if self._websocket is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(PARTING_SECONDS):
                    await self._websocket.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self._disarm()

    async def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            if await self._telling(self._one_connection()):
                wait = FIRST_WAIT
            # Decision 27: jitter from the run's dice.
            await asyncio.sleep(wait * (0.5 + self._dice.fraction() / 2))
            wait = min(wait * 2, LONGEST_WAIT)
            if self.before_connect is not None:
                await self._telling(self.before_connect())

    async def _telling(self, step: Awaitable[bool | None]) -> bool | None:
        try:
            return await step
        except Exception as defect:  # noqa: BLE001  a defect must be told, not end the agent in silence
            self._ctx.fail(defect)
            return None

    async def _one_connection(self) -> bool:
        """Connect once and serve until the socket is gone; whether the handshake was completed."""
        try:
            async with connect(
                self._config.gateway_ws_url,
                additional_headers={"Authorization": f"Bearer {self._config.gateway_token}"},
                compression=None,
                ping_interval=None,
                open_timeout=OPEN_SECONDS,
                close_timeout=2,
                max_size=MAX_MESSAGE_BYTES,
                user_agent_header=None,
                proxy=None,
                logger=_quiet,
            ) as websocket:
                return await self._serve(websocket)
        except _CONNECT_FAILURES as failure:
            _log.info("connection failed: %s", type(failure).__name__)
            return False

    async def _serve(self, websocket: ClientConnection) -> bool:
        connection = AgentConnection(
            self._contract,
            self._config.tenant_id,
            self._config.agent_id,
            self._outbox,
            self._epoch_ms,
            self._registration(),
            self._verifier,
            self._config.handshake_ms / 1000,
        )
        self._connection, self._websocket = connection, websocket
        writer = asyncio.get_running_loop().create_task(self._write(connection, websocket), name="local agent writer")
        try:
            self._begin(connection)
            async for message in websocket:
                self._handle(connection.receive_untrusted(message, self._ctx.now()))
        except ConnectionClosed:
            pass
        finally:
            reached = connection.session.owner is connection
            self._websocket = self._connection = None
            if self._parting is not None:
                self._parting.cancel()
                self._parting = None
            self._handle(connection.closed(self._ctx.now()))
            self._unfinished = (*connection.unfinished_content(), *self._unfinished)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return reached

    def _begin(self, connection: AgentConnection) -> None:
        connection.go_on_with(self._unfinished)
        self._unfinished = ()
        now = self._ctx.now()
        if self._v1_until is not None and now >= self._v1_until:
            self._v1_until = None
        # HS-021, V1-012: v1 from the first message on, while v2 is suspended.
        self._handle(connection.start_v1(now) if self._v1_until is not None else connection.start(now, self._hello()))
        failures, self._failures = self._failures, []
        # Should the session be lost, they go with it: none of its chunks outlives it (RS-014).
        for failure in failures:
            self._send_failure(connection, failure)

    async def _write(self, connection: AgentConnection, websocket: ClientConnection) -> None:
        try:
            while True:
                self._wake.clear()
                for output in connection.take_output():
                    if isinstance(output, Close):
                        await websocket.close(output.code)
                        return
                    await websocket.send(output.text)
                await self._wake.wait()
        except ConnectionClosed:
            return
        except Exception as defect:  # noqa: BLE001  a writer that ended unseen would leave the agent mute
            self._ctx.fail(defect)
            websocket.transport.abort()

    def _hello(self) -> dict[str, Any]:
        depth = self.heartbeat().get("queueDepth", 0)
        return {"queue": {"depth": depth}}

    # Events

    def _handle(self, events: list[Event]) -> None:
        try:
            for event in events:
                self._on_event(event)
        finally:
            self._rearm()
            self._wake.set()

    def _on_event(self, event: Event) -> None:
        match event:
            case Received():
                self._on_received(event.frame)
            case Settled():
                self._on_settled(event.delivery)
            case BecameReady():
                _log.info("ready resumed=%s", event.resumed)
            case HeartbeatDue():
                self.send("heartbeat", self.heartbeat(), self._config.workspaces[0].workspace_id)
            case ContentFailed():
                self._on_content_failed(event)
            case Ended():
                self._part()
            case TurnedV1():
                # HS-021: the ten minutes count from the fallback, not from a later v1 connection.
                self._v1_until = self._v1_until or self._ctx.now() + V1_SECONDS
                _log.info("went on in v1")
            case SignatureWarning():
                _log.warning("signature of %s does not hold: %s", event.type, event.code)
            case Overdue():
                _log.info("no ack in time: %s", event.delivery.draft.type)
            case _:
                pass

    def _on_received(self, frame: Frame) -> None:
        connection = self._connection
        try:
            code = self._on_frame(frame)
        except Exception as defect:  # noqa: BLE001  a defect costs this frame, not the connection, and is told
            self._ctx.fail(defect)
            code = "internal"
        if connection is None:
            return
        # CHAT-038, SQ-027: at once, whatever the work behind it takes.
        if code is None:
            connection.accept(frame, self._ctx.now())
        else:
            connection.reject(frame, code, self._ctx.now())

    def _on_content_failed(self, failed: ContentFailed) -> None:
        workspace_id = self._bodies.pop(failed.request_id, None)
        # A body that went with its session needs no answer: its caller was told there (RS-014).
        if workspace_id is not None and failed.code != "agent_offline":
            self.send_failure(failed.request_id, workspace_id, "error", failed.code)

    def _part(self) -> None:
        # A gateway that does not read never answers the close either.
        if self._websocket is not None and self._parting is None:
            abort = self._websocket.transport.abort
            self._parting = asyncio.get_running_loop().call_later(PARTING_SECONDS, abort)

    def _on_settled(self, delivery: Delivery) -> None:
        draft = delivery.draft
        if draft.chunk is not None and draft.chunk.last:
            self._bodies.pop(draft.request_id or "", None)
        # Decision 23: the caller of these says them again as new frames.
        if delivery.state == "failed" and draft.type in RENEWED_TYPES:
            self.send(draft.type, draft.payload, draft.workspace_id)
        if draft.type == "audit.event":
            self._audits = [audit for audit in self._audits if not audit.over]
            if not self._audits:
                self._audits_settled.set()

    def _rearm(self) -> None:
        self._disarm()
        due = self._connection.next_timeout() if self._connection is not None else None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(self._ctx.clock.loop_time(due), self._on_timer, due)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self, due: float) -> None:
        self._timer = None
        if self._connection is None:
            return
        if self._ctx.now() - due > STOOD_STILL_SECONDS and self._read_first != due:
            self._read_first = due
            self._timer = asyncio.get_running_loop().call_later(READ_FIRST_SECONDS, self._on_timer, due)
            return
        try:
            # A clock that reads a hair less than what was asked for would find nothing due, for ever.
            self._handle(self._connection.handle_timeout(max(self._ctx.now(), due)))
        except Exception as defect:  # noqa: BLE001  the loop would only log it
            self._ctx.fail(defect)

    # Frames out

    def send(self, type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
        """Queue a data frame; it leaves when there is a session and room. One that may not leave is logged."""
        draft = Draft(type_name, payload, workspace_id)
        try:
            delivery = self._outbox.enqueue(draft, self._ctx.now())
        except RefusedDraft as refused:
            _log.error("%s was not sent: %s", type_name, refused.code)
            return
        if type_name == "audit.event":
            self._audits.append(delivery)
            self._audits_settled.clear()
        self._flush()

    async def settled(self) -> None:
        """Return when all audit.event frames handed over so far are acked or given up (LA-026)."""
        await self._audits_settled.wait()

    def _flush(self) -> None:
        if self._connection is not None:
            self._connection.flush(self._ctx.now())
            self._rearm()
        self._wake.set()

    def send_content(self, request_id: str, workspace_id: str, content_type: str, body: bytes) -> None:
        """Answer a content.request with a body, now or after a resume. One that may not leave becomes a failure."""
        self._bodies[request_id] = workspace_id
        try:
            if self._connection is not None:
                self._connection.send_content(request_id, workspace_id, content_type, body, self._ctx.now())
            else:
                self._unfinished += (ContentSource(request_id, workspace_id, content_type, body),)
        except RefusedDraft as refused:
            del self._bodies[request_id]
            self.send_failure(request_id, workspace_id, "error", refused.code)
        self._flush()

    def send_failure(self, request_id: str, workspace_id: str, status: str, code: str) -> None:
        """Answer a content.request with a failure, now or after a resume."""
        failure = _Failure(request_id, workspace_id, status, code)
        if self._connection is None:
            self._failures.append(failure)
            return
        self._send_failure(self._connection, failure)
        self._flush()

    def _send_failure(self, connection: AgentConnection, failure: _Failure) -> None:
        try:
            connection.send_content_failure(
                failure.request_id, failure.workspace_id, failure.status, failure.code, self._ctx.now()
            )
        except RefusedDraft as refused:
            # The gateway's time limit tells its caller.
            _log.error("content.response was not sent: %s", refused.code)
