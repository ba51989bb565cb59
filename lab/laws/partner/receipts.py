"""The laws of messages: one run for one key, one run at a time, and the door open again after it."""

from __future__ import annotations

from collections.abc import Iterable

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, Run, StoreAt, key
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API

_MADE = {"message": "runId", "create": "conversationId"}
"""What a request with an Idempotency-Key makes, by the operation."""


def _place(call: CallAt) -> tuple[object, ...]:
    """Where a key counts: among the creates, or among the messages of one conversation (CV-020, MSG-028)."""
    scope = call.event.conversation_id if call.operation == "message" else None
    return call.operation, scope, call.event.idempotency_key


def _keyed(view: PartnerView) -> dict[tuple[object, ...], list[CallAt]]:
    """The calls with an Idempotency-Key that made something, by the key and where it counts."""
    groups: dict[tuple[object, ...], list[CallAt]] = {}
    for call in view.calls:
        if call.operation in _MADE and call.ok and call.event.idempotency_key is not None:
            groups.setdefault(_place(call), []).append(call)
    return groups


def _made(call: CallAt) -> object:
    name = _MADE[call.operation]
    return call.answer.get(name, call.event.run_id if name == "runId" else call.event.conversation_id)


def _one_per_key(view: PartnerView, bench: Bench) -> None:
    made = _keyed(view)
    for call in view.calls:
        if call.operation in _MADE and call.event.code == "CHAT_CONFLICT":
            first = next((one for one in made.get(_place(call), ()) if call.after(one)), None)
            if first is not None and first.event.request == call.event.request:
                # MSG-026: the receipt comes before the active run
                bench.odd("CHAT_CONFLICT for a repeat", f"the first {_MADE[call.operation]}", first.n, call.n)
    _judge_other_keys(bench, made)
    for calls in made.values():
        first = calls[0]
        for call in calls[1:]:
            if call.event.request == first.event.request:
                name = _MADE[call.operation]
                fine = _made(call) == _made(first)
                bench.case(fine, f"another {name} for one key", f"the first {name}", first.n, call.n)


def _judge_other_keys(bench: Bench, made: dict[tuple[object, ...], list[CallAt]]) -> None:
    """CV-021: another key makes another thing."""
    owners: dict[tuple[str, object], CallAt] = {}
    for calls in made.values():
        first = calls[0]
        owner = owners.setdefault((first.operation, key(_made(first))), first)
        if owner is not first and owner.event.idempotency_key != first.event.idempotency_key:
            name = _MADE[first.operation]
            bench.odd(f"one {name} for two keys", f"a {name} for each key", owner.n, first.n)


def _one_turn_per_message(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        keys = {call.event.idempotency_key for call in conversation.of("message")}
        if not keys:
            continue
        turns = {one.event.turn_id: one.n for one in view.store if _of(view, conversation, one)}
        seen = f"{len(turns)} turns at the store for {len(keys)} messages"
        bench.case(len(turns) <= len(keys), seen, "one turn for one message", *turns.values())
        for page in conversation.of("history"):
            if page.ok and conversation.created:
                _judge_page(bench, conversation, page)
            elif page.ok:
                # HIS-038: one that was there before may hold turns that no message of this journal made.
                bench.unsure()


def _judge_page(bench: Bench, conversation: Conversation, page: CallAt) -> None:
    turns = {key(item.get("turnId")) for item in _items(page) if item.get("role") == "user"}
    keys = {call.event.idempotency_key for call in conversation.of("message") if call.start <= page.t}
    seen = f"{len(turns)} user turns in history for {len(keys)} messages"
    bench.case(len(turns) <= len(keys), seen, "one turn for one message", page.n)


def _of(view: PartnerView, conversation: Conversation, call: StoreAt) -> bool:
    """Whether a store call is of a conversation: as its turn tells, else as its grant does."""
    run = view.run_of_turn(call.event.turn_id)
    if run is not None:
        return run.conversation_id == conversation.conversation_id
    return call.event.binding is not None and call.event.binding.get("conversationId") == conversation.conversation_id


def _items(page: CallAt) -> list[dict[str, object]]:
    items = page.answer.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list | tuple) else []


def _changed_input(view: PartnerView, bench: Bench) -> None:
    made = _keyed(view)
    for call in view.calls:
        if call.operation not in _MADE or call.event.idempotency_key is None or not call.answered:
            continue
        first = next((one for one in made.get(_place(call), ()) if call.after(one)), None)
        if first is None or first.event.request == call.event.request:
            continue
        if call.ok:
            bench.odd("other input under a used key was accepted", "409 CHAT_CONFLICT", first.n, call.n)
        elif call.event.code == "CHAT_CONFLICT":
            bench.held()
        else:
            # PA-050: what comes earlier in the order of checks answers first.
            bench.unsure()


def _one_active_run(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        for run in conversation.runs:
            if run.accepted:
                _judge_active(view, bench, run, conversation.of("message"))


def _judge_active(view: PartnerView, bench: Bench, run: Run, calls: Iterable[CallAt]) -> None:
    first = run.accepted[0]
    keys = {one.event.idempotency_key for one in run.accepted}
    for call in calls:
        if call.event.idempotency_key in keys or not call.answered or not call.after(first):
            continue
        end = run.first_end()
        if end is not None and end.n < call.n:
            continue
        if not call.ok:
            if call.event.code == "CHAT_CONFLICT":
                bench.held()
        elif run.active_after(call) or _side_by_side(view, run, call):
            bench.odd("a second message was accepted while a run was active", "409 CHAT_CONFLICT", first.n, call.n)
        else:
            bench.unsure()


def _side_by_side(view: PartnerView, run: Run, call: CallAt) -> bool:
    """Whether the model itself took the second message while the first run had not ended."""
    other = view.runs.get(str(_made(call)))
    taken = next((at.n for at, turn in other.turns if turn.change == "accepted"), None) if other is not None else None
    begun = next((at.n for at, turn in run.turns if turn.change == "accepted"), None)
    over = next((at.n for at, turn in run.turns if turn.change == "ended"), None)
    return taken is not None and begun is not None and begun < taken and (over is None or taken < over)


def _free_after_end(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        calls = conversation.of("message")
        for call in calls:
            if not call.answered or not (call.ok or call.event.code == "CHAT_CONFLICT"):
                continue
            others = [one for one in calls if one is not call]
            mine = call.event.idempotency_key
            used = any(one.event.idempotency_key == mine for one in others)
            ends = [run.ends() for run in conversation.runs if _made(call) != run.run_id]
            over = bool(ends) and all(any(call.after(end) for end in seen) for seen in ends)
            # One whose answer never came, or that ran at the same time, may have begun a run that nobody knows.
            known = all(one.answered and call.after(one) for one in others if one.n < call.n or one.start < call.t)
            if over and known and not used:
                last = [seen[0].n for seen in ends]
                bench.case(call.ok, "CHAT_CONFLICT after every run had ended", "202", *last, call.n)


LAWS = (
    promise(
        "one-run-per-key",
        "One Idempotency-Key with one input makes one run or one conversation, however often it comes",
        PARTNER_API,
        ("AT-014", "CV-010", "CV-012", "CV-021", "MSG-005", "MSG-007", "MSG-026", "MSG-035"),
        _one_per_key,
    ),
    promise(
        "one-turn-per-message",
        "A message has one turn, at the store and in history, however often it was sent",
        PARTNER_API,
        ("MSG-005", "MSG-033"),
        _one_turn_per_message,
    ),
    promise(
        "changed-input-conflicts",
        "Other input under a used Idempotency-Key is refused with 409 CHAT_CONFLICT",
        PARTNER_API,
        ("CV-011", "MSG-006", "PA-013"),
        _changed_input,
    ),
    promise(
        "one-active-run",
        "While a run of a conversation is active, another message in it is refused with 409 CHAT_CONFLICT",
        PARTNER_API,
        ("MSG-008", "MSG-025"),
        _one_active_run,
    ),
    promise(
        "free-after-end",
        "A conversation whose runs have all ended takes the next message",
        PARTNER_API,
        ("MSG-038",),
        _free_after_end,
    ),
)
