"""The control of a living environment: `lab fault` breaks and heals its links by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from lab.bearer import bears
from lab.context import RunContext
from lab.errors import MisuseError, UsageError
from lab.faults.plan import Fault
from lab.http_shell import let_go_of_handlers, listen, read_within
from lab.run.partner.world import PartnerWorld
from lab.run.strike import plan_fault, strike
from lab.scenario.one_fault import Participants, read_fault_untrusted

MAX_BODY_BYTES = 16_384


class UpControl:
    """Serves `GET /` (what there is) and `POST /faults` (a fault in the words of a `fault:` step) on the loopback."""

    def __init__(
        self, ctx: RunContext, world: PartnerWorld, participants: Participants, key: str, left: Callable[[], float]
    ) -> None:
        self._ctx = ctx
        self._world = world
        self._participants = participants
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
        told: dict[str, Any] = {"fault": fault.kind, "target": fault.target, "seconds": fault.seconds}
        if fault.toxics:
            told["toxics"] = [toxic.type for toxic in fault.toxics]
        return web.json_response(told)

    def _fault(self, raw: bytes) -> Fault:
        """The fault that a body orders. Raises `UsageError` for what is none."""
        try:
            return read_fault_untrusted(self._participants, _members(raw), f"up-{self._count + 1}")
        except RecursionError:
            raise UsageError("the body is nested too deep") from None

    async def _carry_out(self, fault: Fault) -> None:
        plan_fault(self._ctx, fault)
        await strike(fault, self._world.services, self._world.faults)

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
