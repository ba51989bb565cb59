"""The server that carries a run's links: the lab's own engine, or a Toxiproxy server, and what that cannot do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from lab.context import RunContext
from lab.errors import UsageError
from lab.faults.address import Address, from_text
from lab.faults.fault_link import FaultLink
from lab.faults.link import Link
from lab.faults.plan import FAULT_KINDS, Acts, Fault
from lab.faults.specs import ToxicSpec
from lab.scenario.model import FaultStep, LinkSpec, Scenario

if TYPE_CHECKING:
    from lab.faults.toxiproxy import ToxiproxyServer

EMBEDDED = "embedded"
"""What `--faults` is for the lab's own engine."""

EMBEDDED_ONLY = {
    "reset": "an RST on a live connection",
    "move": "another upstream under the same connections' port",
}
"""Kinds of faults of links that no Toxiproxy server has a word for."""


class Carrier(Protocol):
    """What carries a run's links."""

    def link(self, spec: LinkSpec, target: Address) -> FaultLink:
        """A link, not started yet, that leads to an address."""

    async def close(self) -> None:
        """The run's links are closed. Raises `EnvironmentFault` where something of them could not be removed."""


class OwnEngine:
    """The lab's own engine carries them."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx

    def link(self, spec: LinkSpec, target: Address) -> FaultLink:
        """See `Carrier.link`."""
        return Link(self._ctx, spec.name, target, delay=spec.delay, to=spec.to)

    async def close(self) -> None:
        """Each link ends whole by itself."""


class OnServer:
    """A Toxiproxy server carries them, and is watched from the first link to the last."""

    def __init__(self, ctx: RunContext, server: Address) -> None:
        # Only here: whoever needs no such server need not have its client.
        from lab.faults.toxiproxy import ToxiproxyServer
        from lab.faults.toxiproxy_link import ServerCalls
        from lab.faults.toxiproxy_watch import ServerWatch

        self._ctx = ctx
        self._calls = ServerCalls(ctx, ToxiproxyServer(server))
        self._watch = ServerWatch(ctx, self._calls)

    def link(self, spec: LinkSpec, target: Address) -> FaultLink:
        """See `Carrier.link`."""
        from lab.faults.toxiproxy_link import ToxiproxyLink

        return ToxiproxyLink(self._ctx, self._calls, spec.name, target, delay=spec.delay, to=spec.to)

    async def close(self) -> None:
        """See `Carrier.close`."""
        await self._watch.close()
        self._calls.check_removed()


def server_address(text: str) -> Address | None:
    """The address that `--faults` names; None for the lab's own engine. Raises `UsageError`."""
    if text == EMBEDDED:
        return None
    from lab.faults.address import is_loopback

    address = from_text(text)
    if address is None or not address[0] or not address[1]:
        raise UsageError(f"--faults {text}: due is `{EMBEDDED}`, or HOST:PORT of a Toxiproxy server.")
    if not is_loopback(address[0]):
        raise UsageError(
            f"--faults {text}: the doubles listen on this machine's loopback alone, so the server has to run here too, "
            "as at 127.0.0.1:8474."
        )
    return address


def carrier_of(ctx: RunContext, server: Address | None) -> Carrier:
    """What carries the links of a run, from now until its `close`."""
    return OwnEngine(ctx) if server is None else OnServer(ctx, server)


def check_faults(scenario: Scenario, server: Address) -> None:
    """Raises `UsageError` with the name of a fault that the Toxiproxy server at `server` cannot do.

    The server itself is asked about toxics. Raises `EnvironmentFault` where it is not there, or is none.
    """
    faults = [step for step in scenario.steps if isinstance(step, FaultStep) and _is_of_link(step.fault)]
    for step in faults:
        reason = _beyond(step.fault)
        if reason is not None:
            raise _refusal(scenario, step, reason)
    from lab.faults.toxiproxy import ToxicRefused, ToxiproxyServer

    asked = ToxiproxyServer(server)
    asked.version()
    for step in faults:
        for toxic in _toxics(step.fault):
            try:
                _try(asked, toxic)
            except ToxicRefused as error:
                raise _refusal(scenario, step, f"toxic {toxic.type}: {error.reason}") from None


def _try(server: ToxiproxyServer, toxic: ToxicSpec) -> None:
    """Put a toxic into a proxy that nobody can connect to, and take the proxy away again."""
    name = f"lab-{secrets.token_hex(6)}-asked"
    try:
        server.create(name, ("127.0.0.1", 1), enabled=False)
        server.add_toxic(name, ToxicSpec(toxic.type, "asked", toxic.stream, toxic.toxicity, toxic.attributes))
    finally:
        server.delete(name)


def _is_of_link(fault: Fault) -> bool:
    return FAULT_KINDS[fault.kind].acts is Acts.LINK


def _beyond(fault: Fault) -> str | None:
    """Why no Toxiproxy server can do this; None where it may."""
    if fault.kind in EMBEDDED_ONLY:
        return EMBEDDED_ONLY[fault.kind]
    if fault.anchor is not None:
        return f"`after` {fault.anchor.words()}, at the byte where that frame ends"
    return None


def _toxics(fault: Fault) -> Iterator[ToxicSpec]:
    for phase in fault.course:
        yield from phase.toxics


def _refusal(scenario: Scenario, step: FaultStep, reason: str) -> UsageError:
    fault = step.fault
    return UsageError(
        f"{scenario.file}:{step.line}: the Toxiproxy server cannot do fault `{fault.id}` "
        f"({fault.weather or fault.kind}): {reason}. Leave --faults away: the embedded engine can."
    )
