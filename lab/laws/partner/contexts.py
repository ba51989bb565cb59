"""The laws of the context: versions are compared and set, and a grant serves its own conversation alone."""

from __future__ import annotations

from collections.abc import Mapping

from lab.laws.partner.endings import IN_FLIGHT
from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, Moment, Run, StoreAt
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CLOCKS_S, PARTNER_API

TARGET = ("serverId", "destination")
"""What a bind and the create call both tell of the store."""


def _version(call: CallAt) -> int | None:
    value = call.answer.get("version") if call.ok else None
    return value if isinstance(value, int) else None


def _known(calls: list[CallAt], call: CallAt) -> tuple[int, CallAt] | None:
    """The highest version that was told, surely before a call began."""
    told = [(version, one) for one in calls if (version := _version(one)) is not None and call.after(one)]
    return max(told, key=lambda pair: pair[0], default=None)


def _unsettled(conversation: Conversation, call: CallAt) -> bool:
    """Whether a bind without an answer, or at the same time, may have moved the version."""
    binds = [one for one in conversation.of("bind") if one is not call]
    return any(not (one.after(call) or (one.answered and call.after(one))) for one in binds)


def _context_cas(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        granted: dict[int, CallAt] = {}
        for call in conversation.of("bind"):
            version, expected = _version(call), call.sent.get("expectedVersion")
            if version is not None and isinstance(expected, int):
                due = expected + 1
                bench.case(version == due, f"version {version} for expectedVersion {expected}", f"{due}", call.n)
                first = granted.setdefault(version, call)
                if first is not call:
                    bench.odd(f"version {version} granted twice", "one bind a version", first.n, call.n)
            if isinstance(expected, int):
                _judge_bind(bench, conversation, call, expected)


def _judge_bind(bench: Bench, conversation: Conversation, call: CallAt, expected: int) -> None:
    known = _known([*conversation.of("bind"), *conversation.of("context")], call)
    version, shown_by = (known[0], [known[1].n]) if known is not None else (0, [])
    told = conversation.facts.get("mcp")
    if call.ok and isinstance(told, Mapping) and any(call.sent.get(name) != told.get(name) for name in TARGET):
        # CX-022, CX-034: the exact texts
        bench.odd("a bind of another target was taken", "403 MCP_CONTEXT_DENIED", conversation.created[0].n, call.n)
    if call.ok and version > expected:
        bench.odd(f"expectedVersion {expected} was taken at {version}", "409 MCP_CONTEXT_CONFLICT", *shown_by, call.n)
    elif call.event.code == "MCP_CONTEXT_CONFLICT":
        if _unsettled(conversation, call) or (known is None and not conversation.created):
            bench.unsure()
        else:
            fine = version != expected
            bench.case(fine, f"a conflict for the version {expected} that stands", f"{expected + 1}", *shown_by, call.n)


def _context_told(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        for call in conversation.of("context"):
            version = _version(call)
            if version is not None:
                _judge_told(view, bench, conversation, call, version)


def _judge_told(view: PartnerView, bench: Bench, conversation: Conversation, call: CallAt, version: int) -> None:
    known = _known([*conversation.of("bind"), *conversation.of("context")], call)
    expires = instant(call.answer.get("expiresAt"))
    active = call.answer.get("active") is True
    if known is not None and version < known[0]:
        # CX-006
        bench.odd(f"version {version} after {known[0]}", "a version that never falls", known[1].n, call.n)
    elif conversation.created and not any(one.start <= call.t for one in conversation.of("bind")):
        # CX-005, CX-014
        fine = (version, call.answer.get("expiresAt"), active) == (0, None, False)
        bench.case(fine, f"version {version} without a bind", "version 0, expiresAt null, inactive", call.n)
    elif known is not None and version > known[0] and not _unsettled(conversation, call):
        bench.odd(f"version {version} though {known[0]} was bound last", f"{known[0]}", known[1].n, call.n)
    elif active and expires is not None and view.clock_known() and expires + CLOCKS_S < _asked(view, call):
        # CX-024
        bench.odd("an active context whose grant has expired", "inactive", call.n)
    else:
        bench.held()


def _asked(view: PartnerView, call: CallAt) -> float:
    """What the API's wall clock said when a call began."""
    return view.wall(call if call.event.began is None else Moment(call.event.began, call.start), call.start)


def _bound_before_run(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        mcp = conversation.facts.get("mcp", ...)
        for call in conversation.of("bind") if mcp is None else ():
            if call.answered:
                # CX-015, CX-020
                bench.case(not call.ok, "a bind without an MCP server was taken", "403 MCP_CONTEXT_DENIED", call.n)
        for call in conversation.of("message") if mcp is None else ():
            if call.answered:
                # CV-008
                fine = call.event.code != "MCP_CONTEXT_DENIED"
                bench.case(fine, "a message without an MCP server was refused", "202", call.n)
        for call in conversation.of("message") if isinstance(mcp, Mapping) else ():
            binds = [one for one in conversation.of("bind") if one.start <= call.t and (one.ok or not one.answered)]
            if call.ok:
                bench.case(bool(binds), "a message was accepted before any bind", "403 MCP_CONTEXT_DENIED", call.n)
            elif call.event.code == "MCP_CONTEXT_DENIED" and not binds:
                bench.held()


def _revoked_stays_denied(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        revoked = next((one for one in conversation.arrived("control") if "bindings/revoke" in one.event.route), None)
        if revoked is None:
            continue
        for call in (one for one in conversation.calls if one.answered and one.after(revoked)):
            if call.operation in ("bind", "message"):
                what = f"{call.operation} under a revoked binding"
                bench.case(not call.ok, f"a {what} was taken", "403 MCP_CONTEXT_DENIED", revoked.n, call.n)
            elif call.operation == "context" and call.ok:
                told = call.answer.get("active") is not True
                bench.case(told, "a revoked binding that is active", "inactive", revoked.n, call.n)
        for run in conversation.runs:
            for call_at_store in run.store_calls:
                if call_at_store.event.executed and _surely_behind(view, revoked, call_at_store):
                    # CX-026
                    bench.odd("a store call under a revoked binding", "no call", revoked.n, call_at_store.n)


# Grants at the store


def _grant_binds(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        conversation = view.conversations.get(run.conversation_id or "")
        for call in run.store_calls:
            binding = call.event.binding
            if not call.event.executed:
                continue
            if binding is None or conversation is None:
                bench.unsure()
                continue
            name = _foreign(conversation, binding)
            seen = f"a store call under a grant of another {name}"
            bench.case(name is None, seen, f"the {name} of the run's conversation", *_accepted(run), call.n)


def _accepted(run: Run) -> list[int]:
    return [run.accepted[0].n] if run.accepted else []


def _foreign(conversation: Conversation, binding: Mapping[str, object]) -> str | None:
    due = {name: conversation.facts.get(name) for name in ("actorId", "teamId", "agentId")}
    due["conversationId"] = conversation.conversation_id
    due["destination"] = conversation.destination
    told = (name for name, value in due.items() if isinstance(value, str) and name in binding)
    return next((name for name in told if binding[name] != due[name]), None)


def _newest_grant(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        binds = conversation.of("bind")
        if not binds:
            continue
        for run in conversation.runs:
            for call in run.store_calls:
                if call.event.method != "tools/call":
                    continue
                if call.event.grant is None:
                    # CX-026: no call without one
                    bench.odd("a store call without a grant", "the grant that was bound last", binds[-1].n, call.n)
                else:
                    _judge_grant(view, bench, binds, call)


def _judge_grant(view: PartnerView, bench: Bench, binds: list[CallAt], call: StoreAt) -> None:
    sent = [one for one in binds if one.sent.get("grant") == call.event.grant]
    if not sent:
        bench.odd("a store call under a grant that was not bound here", "a grant of a bind", binds[-1].n, call.n)
        return
    newer = [one for one in binds if one.ok and one.n > sent[-1].n and one.sent.get("grant") != call.event.grant]
    behind = next((one for one in newer if _surely_behind(view, one, call)), None)
    if behind is not None:
        # CX-029
        bench.odd("a store call under an older grant", "the newest grant", behind.n, call.n)
    else:
        bench.held()


def _surely_behind(view: PartnerView, bind: Moment, call: StoreAt) -> bool:
    late = bind.t + IN_FLIGHT + view.journal.slack(bind.t, bind.t + IN_FLIGHT)
    return call.after(bind) and call.t > late


def _turns_named(view: PartnerView, bench: Bench) -> None:
    for call in view.store:
        if call.event.method != "tools/call":
            continue
        run, header = view.run_of_turn(call.event.turn_id), call.event.conversation_header
        if run is not None and header is not None:
            # MCP-013: optional, and true where it is there
            fine = header == run.conversation_id
            bench.case(fine, "a store call that names another conversation", "its run's own", call.n)
        for name, value in (("turn", call.event.turn_id), ("call", call.event.call_id)):
            bench.case(bool(value), f"a store call without its {name} header", f"the {name} of the run", call.n)


LAWS = (
    promise(
        "context-cas",
        "A bind is taken for the target that was told, at the version that stands, which rises by one",
        PARTNER_API,
        ("CX-004", "CX-013", "CX-019", "CX-022", "CX-032", "CX-034", "PA-014"),
        _context_cas,
    ),
    promise(
        "context-told",
        "A context tells the version that was bound last, however long its grant has expired, and 0 before any bind",
        PARTNER_API,
        ("CX-005", "CX-006", "CX-014", "CX-024"),
        _context_told,
    ),
    promise(
        "bound-before-run",
        "A conversation with a store takes no message before a bind, and one without a store takes and needs no bind",
        PARTNER_API,
        ("CV-008", "CX-015", "CX-020", "CX-025"),
        _bound_before_run,
    ),
    promise(
        "revoked-binding-stays-denied",
        "A binding that was revoked is never active again, takes no bind and no message, and serves no store call",
        PARTNER_API,
        ("CX-007", "CX-021", "CX-026"),
        _revoked_stays_denied,
    ),
    promise(
        "grant-binds-the-conversation",
        "A store call runs under a grant of its run's conversation, actor, team, agent and destination",
        PARTNER_API,
        ("CX-017", "MCP-002"),
        _grant_binds,
    ),
    promise(
        "newest-grant",
        "A store call runs under the grant that was bound last in its conversation",
        PARTNER_API,
        ("CX-017", "CX-026", "CX-029", "MCP-002"),
        _newest_grant,
    ),
    promise(
        "store-calls-named",
        "Every store call says of which turn and which call it is, and of no other conversation",
        PARTNER_API,
        ("CX-018", "MCP-003", "MCP-013"),
        _turns_named,
    ),
)
