"""A gateway link between its gateway, written by hand, and a test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lab.context import RunContext
from lab.localagent import gateway_link
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import Registration
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.frames import Frame
from lab.protocol.signing import SignatureMode
from tests.localagent.doubles import JOB, WORKSPACE, config
from tests.localagent.hand_gateway import (
    TRUSTED,
    HandGateway,
    Line,
    hand_gateway,
    running_context,
)

PATH = "/home/dev/shop"
CANARY = "canary-of-content"
EVENT = {"jobId": JOB, "state": "running"}
RESULT = {"jobId": JOB, "outcome": "no_change"}
AUDIT = {"code": "a_note", "at": "2026-01-02T03:04:05.000Z"}
V1_REGISTER = {
    "type": "register",
    "tenantId": "11111111-1111-1111-1111-111111111111",
    "port": 5055,
    "workspacePath": PATH,
}


class Bench:
    """A link, its gateway, and what the link handed in."""

    def __init__(
        self, ctx: RunContext, gateway: HandGateway, contract: Contract, url: str | None, **changes: Any
    ) -> None:
        self.ctx = ctx
        self.gateway = gateway
        self.handed: list[Frame] = []
        self.answer: Callable[[Frame], str | None] = lambda _frame: None
        self.registration = Registration(
            "9.9.9", ("job.assign",), SignatureMode.ENFORCE, ((WORKSPACE, "5e" * 32),), 5055, PATH
        )
        changes = {"trusted_keys": TRUSTED, **changes}
        settings = config(Path("/nowhere"), gateway_ws_url=url or gateway.url, **changes)
        self.link = GatewayLink(ctx, "agent", settings, contract, lambda: self.registration, self._take)

    def _take(self, frame: Frame) -> str | None:
        self.handed.append(frame)
        return self.answer(frame)

    def send(self, type_name: str, payload: dict[str, Any]) -> None:
        self.link.send(type_name, payload, WORKSPACE)

    async def ready(self, **limits: Any) -> Line:
        line = await self.gateway.line()
        await line.handshake(**limits)
        return line


@contextlib.asynccontextmanager
async def linked(
    clock: Callable[[], float] | None = None,
    contract: Contract | None = None,
    url: str | None = None,
    start: bool = True,
    **changes: Any,
) -> AsyncIterator[Bench]:
    ctx = running_context(clock)
    async with hand_gateway(ctx) as gateway:
        bench = Bench(ctx, gateway, contract or Contract.load(default_contract_folder()), url, **changes)
        if start:
            bench.link.start()
        try:
            yield bench
        finally:
            await bench.link.close()
    assert ctx.defects == []


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect again at once."""
    monkeypatch.setattr(gateway_link, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(gateway_link, "LONGEST_WAIT", 0.002)


class Gate:
    """Holds the agent between two connections."""

    def __init__(self, bench: Bench) -> None:
        self.entered, self.release = asyncio.Event(), asyncio.Event()
        bench.link.before_connect = self._wait

    async def _wait(self) -> None:
        self.entered.set()
        await self.release.wait()
