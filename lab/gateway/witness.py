"""The gateway's witness: what its sockets carry and what its core tells, written into the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from websockets.http11 import Request

from lab.context import RunContext
from lab.faults.plan import Fault
from lab.gateway.core import GatewayCore
from lab.gateway.frame_faults import Passage
from lab.gateway.jobs import job_state
from lab.gateway.news import ContentNews, JobNews, News, SessionNews
from lab.gateway.socket import GatewaySocket
from lab.journal.events import (
    CallFailed,
    FaultFired,
    Frame,
    GatewayKept,
    GatewayLogged,
    JobMoved,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    TextMessage,
    Undelivered,
)
from lab.tap.content import ContentTap
from lab.tap.frames import FrameTap
from lab.tap.log import LogTap
from lab.tap.memory import canaries_held
from lab.tap.upgrade import credential, shown_path

GATEWAY_LOGGER = "lab.gateway"
"""The logger of all that belongs to gateways."""


class GatewayWitness:
    """Records for one gateway. `agents` are the names and `tokens` the credentials of its agents, by their ids."""

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        tap: FrameTap,
        content_tap: ContentTap,
        agents: Mapping[str, str],
        tokens: Mapping[str, str],
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._tap = tap
        self._content_tap = content_tap
        self._agents = agents
        self._tokens = dict(tokens)
        self._log = LogTap(GATEWAY_LOGGER, tap.canaries)

    # Sockets

    def refused(self, status: int, reason: str) -> None:
        """An upgrade was refused."""
        self._ctx.journal.record(self._name, SocketRefused(status, reason))

    def opened(self, conn: str, agent_id: str, request: Request | None) -> None:
        """An upgrade was accepted as that of an agent."""
        target = request.path if request is not None else ""
        credential = self._credential(agent_id, request)
        path, canaries = shown_path(target), self._tap.canaries_in(target)
        self._ctx.journal.record(self._name, SocketOpened(conn, path, self._agents[agent_id], canaries, credential))

    def _credential(self, agent_id: str, request: Request | None) -> str:
        """What came with an upgrade, looked at once more by whoever did not let it in."""
        given = request.headers.get_all("Authorization") if request is not None else []
        return credential(given, self._tokens[agent_id])

    def closed(self, socket: GatewaySocket) -> None:
        """A socket is gone."""
        code, by = socket.closing()
        self._ctx.journal.record(self._name, SocketClosed(socket.conn, code, by))

    # What it keeps and logs

    def watch_log(self) -> None:
        """From now on what gateways log is written down, until `close`."""
        self._log.watch(lambda line, found: self._ctx.journal.record(self._name, GatewayLogged(line, found)))

    def close(self, core: GatewayCore) -> None:
        """The gateway ends: tell what it has kept. Called again, it tells nothing."""
        if self._log.forget():
            canaries = None if core.in_flight else canaries_held(core, self._tap.canaries)
            self._ctx.journal.record(self._name, GatewayKept(canaries))

    # Messages

    def judge(self, conn: str, direction: str, message: str | bytes) -> Frame:
        """The event of a message, not written yet."""
        return self._tap.judge(conn, direction, message, self._ctx.now())

    def frame(self, frame: Frame, passage: Passage) -> int:
        """Write a frame with what became of it; the number of its entry."""
        fault = passage.fault
        event = frame if fault is None else replace(frame, fate=passage.fate, fault=fault.id)
        entry = self._ctx.journal.record(self._name, event)
        if fault is not None:
            self._ctx.journal.record(
                self._name, FaultFired(fault.id, fault.kind, fault.target, {"frame": entry.n}), entry.n
            )
        return entry.n

    def copy(self, frame: Frame, fault: Fault) -> None:
        """A fault delivered a frame once more."""
        self._ctx.journal.record(self._name, replace(frame, fate="copied", fault=fault.id))

    def released(self, frame: Frame, fault: Fault) -> int:
        """A fault let go of a frame that it had held; the number of its entry."""
        return self._ctx.journal.record(self._name, replace(frame, fate="released", fault=fault.id)).n

    def body(self, frame: Frame, message: str | bytes, cause: int) -> None:
        """A frame that was passed on may complete the body of an answer."""
        body = self._content_tap.see(frame, message)
        if body is not None:
            self._ctx.journal.record(self._name, body, cause)

    def text(self, conn: str, direction: str, text: str) -> None:
        """A message that is no frame."""
        self._ctx.journal.record(self._name, TextMessage(conn, direction, text, len(text)))

    # News

    def news(self, news: News) -> None:
        """What the core tells."""
        journal = self._ctx.journal
        match news:
            case SessionNews():
                name = self._agents[news.agent_id]
                journal.record(self._name, SessionChanged(news.conn, news.state, name, news.session_id, news.detail))
            case ContentNews():
                answer = news.answer
                if answer.code is not None:
                    journal.record(self._name, CallFailed("content", answer.code, request_id=answer.request_id))
            case JobNews():
                # The frames that moved the job are in the journal already; this wakes whoever waits for it.
                job = news.job
                journal.record(self._name, JobMoved(job.job_id, job_state(job), job.events, job.results))
            case _:
                journal.record(self._name, Undelivered(news.conn, news.seq, news.type, news.code))
