"""The reference Local Agent as a whole: its work behind its link to the gateway."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping

import lab
from lab.context import RunContext
from lab.localagent.config import AgentConfig
from lab.localagent.gateway_link import GatewayLink
from lab.localagent.work import AgentWork
from lab.protocol.agent_side import Registration
from lab.protocol.capabilities import of_revision
from lab.protocol.contract import Contract
from lab.protocol.frames import Frame
from lab.protocol.signing import SignatureMode

REQUESTS_REMEMBERED = 1024
"""Ids of content requests by which a reused one is told (decision 32)."""

V1_PORT = 5055


class LocalAgent:
    """Start it, and it connects by itself until `close`."""

    def __init__(self, ctx: RunContext, name: str, config: AgentConfig, contract: Contract) -> None:
        self._ctx = ctx
        self._config = config
        self._revision = contract.revision
        self._closed = False
        self._link = GatewayLink(ctx, name, config, contract, self._registration, self._on_frame)
        self._work = AgentWork(ctx, config, _Uplink(self._link), name)
        self._link.heartbeat = self._work.state
        self._link.before_connect = self._work.reprobe
        self._requests: OrderedDict[str, None] = OrderedDict()
        self._answers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Look at agent2, then connect."""
        await self._work.start()
        # It may have been closed meanwhile.
        if not self._closed:
            self._link.start()

    async def close(self) -> None:
        """End the connection, answers and jobs. Safe to call again."""
        self._closed = True
        # The link first, so that no frame meets work that is closed.
        await self._link.close()
        for task in self._answers:
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
        await self._work.close()

    def _registration(self) -> Registration:
        return Registration(
            version=lab.__version__,
            # CP-018: no more than its revision has.
            capabilities=of_revision(self._work.capabilities(), self._revision),
            signature_mode=SignatureMode(self._config.signature_mode),
            workspaces=tuple((space.workspace_id, space.path_sha256) for space in self._config.workspaces),
            v1_port=V1_PORT,
            v1_workspace_path=self._config.workspaces[0].path,
        )

    def _on_frame(self, frame: Frame) -> str | None:
        """Act on a data frame; the wire code it is rejected with, None when it is accepted."""
        match frame.type:
            case "job.assign":
                return self._work.assign(frame.payload, frame.workspace_id)
            case "job.cancel":
                self._work.cancel(frame.payload)
                return None
            case "approval.decision":
                return self._work.approve(frame.payload)
            case "content.request":
                return self._take_request(frame)
            case _:
                # SQ-009
                return "protocol_unsupported"

    def _take_request(self, frame: Frame) -> str | None:
        # CH-035
        if not self._work.serves(frame.payload["kind"]):
            return "protocol_unsupported"
        request_id = frame.request_id or ""
        if request_id in self._requests:
            return "chunk_out_of_order"
        self._requests[request_id] = None
        if len(self._requests) > REQUESTS_REMEMBERED:
            self._requests.popitem(last=False)
        self._answer(frame)
        return None

    def _answer(self, frame: Frame) -> None:
        task = asyncio.get_running_loop().create_task(self._send_answer(frame), name="content answer")
        self._answers.append(task)
        task.add_done_callback(self._answers.remove)

    async def _send_answer(self, frame: Frame) -> None:
        try:
            await self._say_answer(frame)
        except Exception as defect:  # noqa: BLE001  a defect costs this answer, and is told
            self._ctx.fail(defect)
            self._link.send_failure(frame.request_id or "", frame.workspace_id, "error", "internal")

    async def _say_answer(self, frame: Frame) -> None:
        request_id, payload = frame.request_id or "", frame.payload
        answer = await self._work.content(payload["kind"], payload["ref"], payload.get("maxBytes"), frame.workspace_id)
        if answer.status == "ok":
            content_type = answer.content_type or "application/octet-stream"
            self._link.send_content(request_id, frame.workspace_id, content_type, answer.body)
        else:
            self._link.send_failure(request_id, frame.workspace_id, answer.status, answer.error_code or "internal")


class _Uplink:
    """What the work may say to the gateway: metadata frames only (CHAT-028)."""

    def __init__(self, link: GatewayLink) -> None:
        self._link = link

    def send(self, type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
        self._link.send(type_name, payload, workspace_id)

    async def settled(self) -> None:
        await self._link.settled()
