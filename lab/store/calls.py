"""Running tools, each call once: a call id that comes again is answered from its first result (MCP-021)."""

from __future__ import annotations

from lab.journal.events import digest
from lab.store.exchange import Seen
from lab.store.rpc import JsonObject, encode
from lab.store.tools import ToolResult, ToolSet, failed

KEPT_RESULTS = 1024
"""Of older calls the results are forgotten, and a repetition runs again."""


class Calls:
    """The results of the calls so far, by conversation and call id."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools
        self._results: dict[tuple[object, str], ToolResult] = {}

    def run(self, name: str, arguments: JsonObject, seen: Seen) -> ToolResult | None:
        """The tool's result; None for a tool that is not listed. What happened is noted in `seen`."""
        tool = self._tools.find(name)
        if tool is None:
            return None
        seen.facts["arguments"] = digest("arguments", encode(arguments).decode())
        # A call id is good within its conversation: another's first result is nobody else's to see.
        key = None if seen.call_id is None else ((seen.binding or {}).get("conversationId"), seen.call_id)
        result = None if key is None else self._results.get(key)
        if result is not None:
            seen.duplicate = True
        elif not tool.approved:
            # MCP-017
            result = failed("The tool is not approved.")
        else:
            seen.executed = True
            result = tool.call(arguments)
            self._keep(key, result)
        seen.facts["result"] = digest("result", encode(result.to_json()).decode())
        seen.facts["data"] = not result.is_error
        return result

    def _keep(self, key: tuple[object, str] | None, result: ToolResult) -> None:
        if key is None:
            return
        self._results[key] = result
        while len(self._results) > KEPT_RESULTS:
            del self._results[next(iter(self._results))]
