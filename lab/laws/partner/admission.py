"""The laws of who is let in: the key, the form of the request, the employee, and whose the conversation is."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from types import MappingProxyType

from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, sha_of
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CLOCKS_S, PARTNER_API

SCOPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "membership": frozenset({"chat:membership"}),
        "create": frozenset({"chat:create"}),
        "context": frozenset({"chat:context"}),
        "bind": frozenset({"chat:context"}),
        "upload": frozenset({"chat:run"}),
        "message": frozenset({"chat:run"}),
        "history": frozenset({"chat:read"}),
        "run": frozenset({"chat:read"}),
        "events": frozenset({"chat:read"}),
        "file": frozenset({"chat:read", "chat:conversation:read"}),
    }
)
"""Which scopes open an operation; one of them is enough (PA-010)."""

ONLY = "only:"
NO_KEYS = frozenset({"none", "unknown", "store", "issuer"})
"""What a call may show that is no key of the organization (PA-036)."""

READS = frozenset({"context", "history", "run"})
"""Reads that name their employee in the query."""

ACTOR = ("externalUserId", "externalTeamId")
KEYED = frozenset({"message", "create"})
UNLISTED = "*"
"""Under this name stands what a request has and the contract does not."""

MOST_BLANKS = 64


def _shows(call: CallAt) -> str | None:
    """Which key a call of the scenario's shows; None for a call of the driver's own."""
    word = call.event.facts.get("shows")
    return word if isinstance(word, str) else None


def _by_the_right_key(call: CallAt) -> bool:
    return _shows(call) in (None, "chat")


def _keys_open(view: PartnerView, bench: Bench) -> None:
    for call in view.calls:
        shown, scopes = _shows(call), SCOPES.get(call.operation)
        if shown is None or scopes is None or not call.answered:
            continue
        seen = f"{call.event.status} {call.event.code or ''} for the key {shown} at {call.operation}"
        if shown in NO_KEYS:
            bench.case(call.event.status == 401, seen, "401 CREDENTIAL_REJECTED", call.n)
        elif shown == "provisioning" or (shown.startswith(ONLY) and shown.removeprefix(ONLY) not in scopes):
            # PA-037: known, and without the right
            bench.case(call.event.status == 403, seen, "403 EXECUTION_DENIED", call.n)
        else:
            bench.case(call.event.status != 401, seen, "an answer that is not about the key", call.n)


def _malformed(view: PartnerView, bench: Bench) -> None:
    for call in view.calls:
        if not call.answered or not _by_the_right_key(call):
            continue
        fault, due = _fault(view, call)
        if fault is not None:
            seen = f"{call.event.status} {call.event.code or ''} for {call.operation} with {fault}"
            bench.case(call.event.code == due, seen, f"400 {due}", call.n)


def _fault(view: PartnerView, call: CallAt) -> tuple[str | None, str]:
    """What is wrong with the form of a request, as far as its witness tells, and the code that is due."""
    if call.operation in KEYED and call.event.idempotency_key is None:
        return "no Idempotency-Key", "CHAT_INVALID"
    if call.operation in READS and any(not call.sent.get(name) for name in ACTOR):
        return "no employee named", "CHAT_INVALID"
    if call.operation in SCOPES and UNLISTED in call.sent:
        return "a member that the contract does not have", "CHAT_INVALID"
    if call.operation == "bind":
        expires = instant(call.sent.get("expiresAt"))
        if expires is not None and view.clock_known() and expires + CLOCKS_S < view.wall(call, call.start):
            return "an expiresAt that is past", "CHAT_INVALID"
    if call.operation == "message" and not call.sent.get("attachmentIds") and _is_blank(call.sent.get("message")):
        return "neither text nor file", "VALIDATION_ERROR"
    return None, ""


def _is_blank(message: object) -> bool:
    """Whether a text is none, or of blanks alone: the witness has its digest only."""
    if message is None:
        return True
    size = message.get("bytes") if isinstance(message, Mapping) else None
    if not isinstance(size, int) or not 0 <= size <= MOST_BLANKS:
        return False
    return sha_of(message) == hashlib.sha256(b" " * size).hexdigest()


# Whose a conversation is


def _members(view: PartnerView) -> dict[tuple[Hashable, Hashable], list[CallAt]]:
    found: dict[tuple[Hashable, Hashable], list[CallAt]] = {}
    for call in view.of("membership"):
        if call.ok or not call.answered:
            found.setdefault(call.actor, []).append(call)
    return found


def _ones_own(view: PartnerView, bench: Bench) -> None:
    members = _members(view)
    for conversation in view.conversations.values():
        for call in conversation.calls:
            if conversation.actor is None or None in call.actor or call.operation not in SCOPES:
                continue
            if call.actor != conversation.actor and call.operation != "file" and call.answered:
                _judge_foreign(view, bench, conversation, call, members.get(call.actor, []))


def _judge_foreign(
    view: PartnerView, bench: Bench, conversation: Conversation, call: CallAt, confirmed: list[CallAt]
) -> None:
    known = [one for one in confirmed if one.ok and call.after(one)]
    shown_by = conversation.created[0].n
    if call.ok:
        bench.odd(f"{call.operation} in another's conversation was served", "404 CHAT_UNAVAILABLE", shown_by, call.n)
    elif call.event.code == "EXECUTION_DENIED" and known and _by_the_right_key(call):
        last = known[-1]
        until = instant(last.answer.get("validUntil"))
        surely = last.answer.get("active") is True and until is not None and view.clock_known()
        if surely and until is not None and view.wall(call) + CLOCKS_S < until:
            # PA-039: whoever has a right is not told that the conversation exists
            bench.odd("a stranger is told 403", "404 CHAT_UNAVAILABLE", shown_by, call.n)
        else:
            bench.unsure()
    else:
        bench.held()


def _members_only(view: PartnerView, bench: Bench) -> None:
    members = _members(view)
    for call in view.calls:
        if call.operation == "membership" or None in call.actor or not call.ok:
            continue
        known = any(one.start <= call.t for one in members.get(call.actor, ()))
        seen = f"{call.operation} for somebody whom nobody confirmed"
        bench.case(known, seen, "403 EXECUTION_DENIED", call.n)


def _owners_guarded(view: PartnerView, bench: Bench) -> None:
    if not view.requests:
        # Another API may have owners whom this journal does not know.
        return
    owners: dict[tuple[Hashable, Hashable], CallAt] = {}
    for call in view.of("membership"):
        before = owners.get(call.actor)
        others = [one for actor, one in owners.items() if actor[1] == call.actor[1] and actor != call.actor]
        if not call.answered:
            return
        if before is not None and call.sent.get("active") is True and call.sent.get("role") != "owner":
            if call.ok and not others and call.after(before):
                bench.odd("the last owner was demoted", "409 CHAT_CONFLICT", before.n, call.n)
            else:
                bench.held()
        if before is not None and call.sent.get("active") is False and _is_newer(before, call):
            bench.case(call.ok, "an owner could not be revoked", "200", before.n, call.n)
        if call.ok:
            owners.pop(call.actor, None)
            if call.answer.get("role") == "owner" and call.answer.get("active") is True:
                owners[call.actor] = call


def _is_newer(before: CallAt, call: CallAt) -> bool:
    old, new = before.answer.get("sourceRevision"), call.sent.get("sourceRevision")
    return isinstance(old, int) and isinstance(new, int) and new > old and UNLISTED not in call.sent


LAWS = (
    promise(
        "keys-open-their-routes",
        "A key opens the routes of its scopes and no other, and what is no key opens none",
        PARTNER_API,
        ("HIS-001", "HIS-037", "PA-001", "PA-003", "PA-005", "PA-010", "PA-011", "PA-036", "PA-037"),
        _keys_open,
    ),
    promise(
        "malformed-is-refused",
        "A request that lacks what the contract asks for, or has what it does not know, is refused with 400",
        PARTNER_API,
        (
            *("AT-030", "CV-001", "CV-019", "CX-001", "CX-023", "HIS-001", "MSG-001", "MSG-003", "MSG-031"),
            *("PA-041", "PA-044", "PA-045", "PA-046"),
        ),
        _malformed,
    ),
    promise(
        "conversations-are-ones-own",
        "Nobody but its employee gets anything done or told in a conversation, nor learns that it exists",
        PARTNER_API,
        ("AT-017", "AT-033", "CV-013", "CX-033", "HIS-035", "MSG-040", "PA-039"),
        _ones_own,
    ),
    promise(
        "members-only",
        "Nobody is served whom no confirmation made a member",
        PARTNER_API,
        ("CV-026", "MB-006"),
        _members_only,
    ),
    promise(
        "owners-guarded",
        "The last owner of a team is not demoted, and every owner can be revoked",
        PARTNER_API,
        ("MB-016", "MB-017", "MB-030", "MB-040", "PA-040"),
        _owners_guarded,
    ),
)
