"""A turn's access to the store: discovery with the static credential, each call with the newest grant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from lab.journal.partner_events import fingerprint
from lab.partner.model.authority import Conversation
from lab.partner.model.context import target_of, usable_grant
from lab.partner.model.mcp_client import McpClient, McpLimits, transport_url
from lab.partner.model.mcp_wire import CallContext, Era, McpFault
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal
from lab.partner.model.runs import Run

CONTEXT_DENIED: Final = "context-denied"
"""Why a call was not sent that no grant allows (CX-026)."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended. `why` is a plain word for the journal; the partner learns only whether it is `ok` (MSG-046)."""

    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class StoreHttp:
    """What all turns of a model share for their store calls."""

    http: aiohttp.ClientSession
    limits: McpLimits


class _ContextDenied(Exception):
    """There is no grant that may be used now."""


class StoreCalls:
    """The store of one turn; a conversation without one has no tools. Call `close` at the end."""

    def __init__(self, parts: Parts, run: Run, conversation: Conversation, shared: StoreHttp) -> None:
        self._parts = parts
        self._run = run
        self._conversation = conversation
        self._shared = shared
        self._client: McpClient | None = None
        self.tools: tuple[str, ...] = ()

    async def discover(self) -> None:
        """Learn the store's tools. What goes wrong raises `McpFault`, and the turn ends with it (MCP-023)."""
        target = target_of(self._conversation)
        if target is None:
            return
        settings = self._parts.settings
        url = transport_url(settings.destinations, target[1])
        if url is None:
            raise McpFault("unreachable")
        self._client = McpClient(
            self._shared.http,
            url,
            settings.static_credential,
            Era(settings.mcp_era),
            self._run.turn_id,
            self._shared.limits,
        )
        self.tools = await self._client.discover()

    def grant(self) -> str | Refusal:
        """The newest grant, if it may be used now (CX-026, CX-029)."""
        usable = usable_grant(self._parts, self._conversation)
        return usable if isinstance(usable, Refusal) else usable.grant

    async def call(
        self, tool: str, arguments: Mapping[str, object], call_id: str, check: Callable[[], None]
    ) -> CallOutcome:
        """Call a tool of the store. Its headers are the partner API's own (MCP-003, CX-018).

        Before each sending, `check` may raise what forbids the effect, and the newest grant is taken (MB-037, CX-029).
        """
        if self._client is None:
            return CallOutcome(False, "no-store")

        def context() -> CallContext:
            check()
            grant = self.grant()
            if isinstance(grant, Refusal):
                raise _ContextDenied
            return CallContext(self._run.turn_id, call_id, self._run.conversation_id, grant)

        try:
            ok = await self._client.call(tool, arguments, context)
        except _ContextDenied:
            return CallOutcome(False, CONTEXT_DENIED)
        except McpFault as fault:
            return CallOutcome(False, fault.kind)
        return CallOutcome(ok, "" if ok else "is-error")

    async def close(self) -> None:
        """End the session with the store."""
        if self._client is not None:
            await self._client.close()


def told_grant(grant: str | Refusal) -> str | None:
    """The grant as it may stand in the journal (PRIV-015)."""
    return None if isinstance(grant, Refusal) else fingerprint(grant)
