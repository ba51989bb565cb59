"""The control of a living environment: `lab fault` breaks and heals its links by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from lab.bearer import bears
from lab.context import RunContext
from lab.errors import MisuseError, UsageError
from lab.faults.plan import FAULT_KINDS, Acts, Fault
from lab.http_shell import let_go_of_handlers, listen, read_within
from lab.journal.events import FaultPlanned
from lab.run.partner.world import PartnerWorld
from lab.scenario.one_fault import read_fault_untrusted

MAX_BODY_BYTES = 16_384


class UpControl:
    """Serves `GET /` (what there is) and `POST /faults` (a fault in the words of a `fault:` step) on the loopback."""

    def __init__(
        self, ctx: RunContext, world: PartnerWorld, scenario: Path, key: str, left: Callable[[], float]
    ) -> None:
        self._ctx = ctx
        self._world = world
        self._scenario = scenario
        self._key = key
        self._left = left
        self._count = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Valid after `start`."""
        if self._runner is None:
            raise MisuseError("the control has no address before start() and after close()")
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_get("/", self._tell)
        app.router.add_post("/faults", self._strike)
        self._runner = await listen(app, "127.0.0.1", 0, "the control")

    async def close(self) -> None:
        """Stop listening. Safe to call again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            let_go_of_handlers()

    async def _tell(self, request: web.Request) -> web.Response:
        if not self._may(request):
            return _refused(401, "the key is not this environment's")
        links = {name: f"http://{link.address[0]}:{link.address[1]}" for name, link in self._world.links.items()}
        return web.json_response({"links": links, "secondsLeft": round(self._left())})

    async def _strike(self, request: web.Request) -> web.Response:
        if not self._may(request):
            return _refused(401, "the key is not this environment's")
        raw = await read_within(request, MAX_BODY_BYTES)
        try:
            fault = self._fault(raw or b"")
        except UsageError as error:
            return _refused(400, str(error))
        self._count += 1
        known = len(self._ctx.defects)
        await self._carry_out(fault)
        if len(self._ctx.defects) > known:
            return _refused(500, str(self._ctx.defects[known]))
        return web.json_response({"fault": fault.kind, "target": fault.target, "seconds": fault.seconds})

    def _fault(self, raw: bytes) -> Fault:
        """The fault that a body orders. Raises `UsageError`, also for a scenario that was changed or removed since."""
        try:
            fault = read_fault_untrusted(self._scenario, _members(raw), f"up-{self._count + 1}")
        except RecursionError:
            raise UsageError("the body is nested too deep") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self._scenario} cannot be read any more, and says who takes part: put it back"
            ) from error
        if fault.link is not None and fault.link not in self._world.links:
            there = ", ".join(self._world.links)
            raise UsageError(f"{self._scenario} was changed since the start: no link {fault.link}; there are {there}")
        return fault

    async def _carry_out(self, fault: Fault) -> None:
        planned = FaultPlanned(fault.id, fault.kind, fault.target, fault.line, (), fault.least)
        self._ctx.journal.record("faults", planned)
        if FAULT_KINDS[fault.kind].acts is Acts.SERVICE:
            await self._world.services.strike(fault)
            return
        self._world.faults.strike(fault)
        await self._world.faults.settled(fault)

    def _may(self, request: web.Request) -> bool:
        return bears(request.headers.getall("Authorization", []), self._key)


def _members(raw: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError("the body is no JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the body is no JSON object")
    return value


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
