"""The laws of tool calls between stream and store: the same ids, one effect each, and a result that is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import StoreAt, ToolCall
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API


def _by_id(calls: Sequence[StoreAt]) -> Mapping[str, list[StoreAt]]:
    found: dict[str, list[StoreAt]] = {}
    for call in calls:
        if call.event.method == "tools/call" and call.event.call_id is not None:
            found.setdefault(call.event.call_id, []).append(call)
    return found


def _public_ids(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        events = run.whole()
        tools = {tool.id: tool for tool in run.tool_calls(run.events())}
        for call_id, calls in _by_id(run.store_calls).items():
            tool = tools.get(call_id)
            at = calls[0]
            if tool is None and events is None:
                bench.unsure()
            elif tool is None:
                bench.odd("a call header that no tool_call has", "the id of the tool_call", at.n)
            else:
                seen = f"tool {at.event.tool} at the store for tool_call {tool.name}"
                bench.case(tool.name == at.event.tool, seen, "one name for both", tool.call.n, at.n)
    _ids_unique(view, bench)


def _ids_unique(view: PartnerView, bench: Bench) -> None:
    """SSE-042: unique in the organization."""
    first: dict[object, tuple[str, int, int]] = {}
    for run in view.runs.values():
        for place, tool in enumerate(run.tool_calls(run.events())):
            if tool.id is None:
                continue
            run_id, where, n = first.setdefault(tool.id, (run.run_id, place, tool.call.n))
            if (run_id, where) != (run.run_id, place):
                bench.odd("one id for two tool calls", "an id for each", n, tool.call.n)


def _no_retry(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        for calls in _by_id(run.store_calls).values():
            ran = [call for call in calls if call.reached_a_tool]
            seen = f"{len(ran)} store calls with one call id"
            if len(ran) > 1 and (view.journal.faulted or not view.quiet(ran[0].t, ran[-1].t)):
                # What came twice may have been sent once, or again because no answer came.
                bench.unsure()
            elif ran:
                bench.case(len(ran) == 1, seen, "a tool call is sent once", *(call.n for call in ran))


def _result_is_true(view: PartnerView, bench: Bench) -> None:
    if not view.store:
        return
    served = {one.event.tool for one in view.store if one.event.tool is not None}
    for run in view.runs.values():
        at_store = _by_id(run.store_calls)
        for tool in run.tool_calls(run.events()):
            calls = at_store.get(str(tool.id), [])
            if tool.result is not None and (calls or tool.name in served):
                _judge_result(view, bench, tool, calls)


def _judge_result(view: PartnerView, bench: Bench, tool: ToolCall, calls: Sequence[StoreAt]) -> None:
    if tool.result is None:
        return
    # A torn answer may be read on from another request.
    well = [one for one in calls if one.reached_a_tool and not one.event.is_error and one.event.status in (0, 200)]
    if tool.ok is True:
        bench.case(
            bool(well),
            f"tool_result ok for {tool.name} that the store did not do",
            "ok false with TOOL_FAILED",
            *(one.n for one in calls[-1:]),
            tool.result.n,
        )
    elif well and well[-1].event.misbehaved is None and _undisturbed(view, well[-1], tool):
        bench.odd(f"a failed tool_result for {tool.name} that the store did", "ok true", well[-1].n, tool.result.n)
    elif well:
        bench.unsure()
    else:
        bench.held()


def _undisturbed(view: PartnerView, call: StoreAt, tool: ToolCall) -> bool:
    """Whether the store's answer surely came back."""
    return view.quiet(min(tool.call.t, call.t), call.t) and not view.journal.faulted


LAWS = (
    promise(
        "store-call-id-is-public-id",
        "The store is told of a tool call under the id and the name that its tool_call has, and no id comes twice",
        PARTNER_API,
        ("MCP-021", "SSE-042", "SSE-043"),
        _public_ids,
    ),
    promise(
        "no-retry-of-tool",
        "A tool call reaches its tool once",
        PARTNER_API,
        ("MCP-021",),
        _no_retry,
    ),
    promise(
        "tool-result-is-true",
        "A tool_result is ok where the store did what was asked, and nowhere else",
        PARTNER_API,
        ("MCP-009", "MCP-014", "MSG-041", "MSG-046"),
        _result_is_true,
    ),
)
