"""Slips of a partner API in what it does at the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lab.partner.model import mcp_client
from lab.partner.model.mcp_client import McpClient
from lab.partner.model.mcp_wire import CallContext, McpFault
from lab.partner.model.store_calls import CallOutcome, StoreCalls
from lab.partner.model.turn import Turn
from lab.partner.model.turn_record import TurnRecord
from lab.partner.model.words import CONVERSATION_HEADER, GRANT_HEADER, TURN_HEADER
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch


def called(patch: Patch, change: Callable[[CallContext], CallContext]) -> None:
    """Let `change` make another context of each sending of a call."""

    def make(original: Function) -> Function:
        async def call(self: McpClient, tool: str, arguments: Any, context: Callable[[], CallContext]) -> Any:
            def other() -> CallContext:
                patch.slipped()
                return change(context())

            return await original(self, tool, arguments, other)

        return call

    patch.wrap(McpClient, "call", make)


def headers(patch: Patch, name: str, value: Any) -> None:
    """Leave a header off the calls of tools, or give it another value."""

    def change(told: dict[str, str]) -> dict[str, str] | None:
        rest = {header: text for header, text in told.items() if header != name}
        return rest if value is None else {**rest, name: value(told)}

    patching.changed(patch, CallContext, "headers", change)


@plant("api-call-header-is-own", scenario="partner-chat", law="store-call-id-is-public-id")
def call_header_is_own(patch: Patch) -> None:
    """The store is told a number of its own."""
    called(patch, lambda context: replace(context, call_id=f"call_{patch.reached}"))


@plant("api-turn-header-missing", scenario="partner-chat", law="store-calls-named")
def turn_header_missing(patch: Patch) -> None:
    """The store need not know which turn it is."""
    patch.set(mcp_client, "TURN_HEADER", "X-Nothing")
    headers(patch, TURN_HEADER, None)


@plant("api-conversation-header-is-thread", scenario="partner-chat", law="store-calls-named")
def conversation_header_is_thread(patch: Patch) -> None:
    """The conversation of a call is its turn."""
    headers(patch, CONVERSATION_HEADER, lambda told: told[TURN_HEADER])


@plant("api-store-without-grant", scenario="partner-chat", law="newest-grant")
def store_without_grant(patch: Patch) -> None:
    """The credential is enough."""
    headers(patch, GRANT_HEADER, None)


@plant("api-store-call-repeated", scenario="store-is-error", law="store-call-id-is-public-id")
def store_call_repeated(patch: Patch) -> None:
    """A call that failed is made once more, under an id of its own."""

    def make(original: Function) -> Function:
        async def call(self: StoreCalls, tool: str, arguments: Any, call_id: str, check: Any) -> CallOutcome:
            first: CallOutcome = await original(self, tool, arguments, call_id, check)
            if first.ok:
                return first
            patch.slipped()
            again: CallOutcome = await original(self, tool, arguments, f"{call_id}0", check)
            return again

        return call

    patch.wrap(StoreCalls, "call", make)


@plant("api-discovery-failure-is-tool-error", scenario="store-dies", law="only-listed-tools")
def discovery_failure_is_tool_error(patch: Patch) -> None:
    """A store that cannot be asked has no tools."""

    def make(original: Function) -> Function:
        async def discover(self: StoreCalls) -> None:
            try:
                await original(self)
            except McpFault:
                patch.slipped()

        return discover

    patch.wrap(StoreCalls, "discover", make)


@plant("api-unlisted-tool-called", scenario="unlisted-tool", law="only-listed-tools")
def unlisted_tool_called(patch: Patch) -> None:
    """The store will know whether it has the tool."""

    def make(original: Function) -> Function:
        async def outcome(self: Turn, call: Any, call_id: str) -> CallOutcome:
            store = self._store
            if store is None or call.name in store.tools:
                return await original(self, call, call_id)  # type: ignore[no-any-return]
            patch.slipped()
            store.tools = (*store.tools, call.name)
            return await original(self, call, call_id)  # type: ignore[no-any-return]

        return outcome

    patch.wrap(Turn, "_outcome", make)


@plant("api-refused-call-not-counted", scenario="grant-revoked", law="tool-errors")
def refused_call_not_counted(patch: Patch) -> None:
    """What the store refused did not fail."""

    def make(original: Function) -> Function:
        def ended(self: TurnRecord, name: str, call_id: str, ok: bool) -> None:
            if ok:
                original(self, name, call_id, ok)
                return
            patch.slipped()
            self._content("tool_result", {"name": name, "ok": False, "error": "TOOL_FAILED"})

        return ended

    patch.wrap(TurnRecord, "tool_result", make)


@plant("api-error-result-is-ok", scenario="store-is-error", law="tool-result-is-true")
def error_result_is_ok(patch: Patch) -> None:
    """An answer that came is a success."""
    patching.changed(patch, mcp_client, "succeeded_untrusted", lambda ok: None if ok else True)
