"""The laws of the lab's own store and issuer: no data without a right grant, one effect a call, and true grants."""

from __future__ import annotations

from collections.abc import Mapping

from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import IssuerAt, StoreAt
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import ISSUER, STORE

CLAIMS = ("actorId", "teamId", "agentId", "destination")
"""What a grant takes from the registration of its conversation (GR-012)."""


REGISTERING = "conversations"
"""The issuer's route for conversations that were created."""


def _ok(one: IssuerAt) -> bool:
    return 200 <= one.event.status < 300


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _calls(view: PartnerView) -> list[StoreAt]:
    return [one for one in view.store if one.event.method == "tools/call"]


def _static_only(view: PartnerView, bench: Bench) -> None:
    for one in view.store:
        if one.event.grant is None and one.event.method == "tools/call":
            fine = not one.reached_a_tool and one.event.refused is not None
            bench.case(fine, "a tool ran without a grant", "a refusal", one.n)
        elif one.event.grant is None and one.event.method is not None:
            bench.case(not one.event.executed, f"a tool ran for {one.event.method}", "no store data", one.n)


def _wrong_grant(view: PartnerView, bench: Bench) -> None:
    ends = _ends(view)
    for one in _calls(view):
        if one.event.grant is None:
            continue
        odd = _odd_grant(view, ends, one)
        if odd is not None and one.reached_a_tool:
            bench.odd(f"a tool ran for a grant {odd[0]}", "a refusal", *odd[1], one.n)
        elif odd is not None or one.reached_a_tool:
            bench.held()


def _ends(view: PartnerView) -> Mapping[str, float]:
    """When each grant expires, by its fingerprint, in seconds since 1970."""
    ends: dict[str, float] = {}
    for one in view.minted():
        end = one.event.facts.get("expiresAtMs")
        if isinstance(end, int | float) and one.event.grant is not None:
            ends[one.event.grant] = end / 1000
    for call in view.issuer_calls:
        grant, told = call.answer.get("grant"), instant(call.answer.get("expiresAt"))
        if isinstance(grant, str) and told is not None:
            ends.setdefault(grant, told)
    return ends


def _odd_grant(view: PartnerView, ends: Mapping[str, float], one: StoreAt) -> tuple[str, tuple[int, ...]] | None:
    binding = one.event.binding
    if binding is None:
        return "that does not open", ()
    declared = view.journal.participants.get(view.name(STORE))
    own = declared.facts.get("destination") if declared is not None else None
    if isinstance(own, str) and binding.get("destination") != own:
        return "of another destination", ()
    header = one.event.conversation_header
    if header is not None and header != binding.get("conversationId"):
        return "of another conversation than its header names", ()
    end = ends.get(one.event.grant or "")
    if end is not None and view.clock_known() and view.wall(one) > end:
        return "that has expired", ()
    revoked = [note for note in view.revoked() if note.n < one.n and _revokes(note, binding.get("grantId"))]
    if revoked:
        return "that was revoked", (revoked[0].n,)
    return None


def _revokes(note: IssuerAt, grant_id: object) -> bool:
    """Whether a revocation took this grant: by its id, or with all of its conversation so far."""
    several = note.event.facts.get("grantIds")
    return grant_id in several if isinstance(several, list | tuple) else note.event.grant_id == grant_id


def _refused_first(view: PartnerView, bench: Bench) -> None:
    for one in view.store:
        if one.event.refused is not None:
            told = (
                one.event.status >= 400
                or one.event.status == 0
                or one.event.is_error
                or one.event.rpc_error is not None
            )
            bench.case(not one.reached_a_tool, f"a tool ran though {one.event.refused} was refused", "no effect", one.n)
            bench.case(told, f"status {one.event.status} for {one.event.refused}", "a refusal that says so", one.n)


def _executed_once(view: PartnerView, bench: Bench) -> None:
    first: dict[tuple[str, object], StoreAt] = {}
    for one in _calls(view):
        call_id = one.event.call_id
        if call_id is None or not one.reached_a_tool:
            continue
        known = first.setdefault((call_id, one.event.turn_id), one)
        fine = one.event.duplicate if known is not one else not one.event.duplicate
        seen = "a call id ran twice" if known is not one else "a first call answered from an earlier one"
        bench.case(fine, seen, "once, then its first result", known.n, one.n)


# The issuer


def _mints_for_registered(view: PartnerView, bench: Bench) -> None:
    known: set[str | None] = set()
    for one in view.issuer:
        if one.event.route == REGISTERING and _ok(one):
            known.add(one.event.conversation_id)
        elif one.event.route == "grants" and one.event.grant is not None:
            fine = one.event.conversation_id in known
            bench.case(fine, "a grant for a conversation that nobody registered", "404", one.n)
        elif one.event.route == "grants" and one.event.status == 404:
            bench.held()


def _grants_differ(view: PartnerView, bench: Bench) -> None:
    grants: dict[str | None, int] = {}
    ids: dict[str | None, int] = {}
    for one in view.minted():
        fresh = one.event.grant not in grants and (one.event.grant_id is None or one.event.grant_id not in ids)
        bench.case(fresh, "a grant that was minted before", "a fresh grant", *_earlier(grants, ids, one), one.n)
        grants.setdefault(one.event.grant, one.n)
        ids.setdefault(one.event.grant_id, one.n)


def _earlier(grants: Mapping[str | None, int], ids: Mapping[str | None, int], one: IssuerAt) -> tuple[int, ...]:
    found = grants.get(one.event.grant, ids.get(one.event.grant_id) if one.event.grant_id is not None else None)
    return () if found is None else (found,)


def _claims_as_registered(view: PartnerView, bench: Bench) -> None:
    plain = {one.event.grant_id: one for one in view.minted() if one.event.route == "grants"}
    registered = {one.event.conversation_id: one for one in view.issuer if one.event.route == REGISTERING and _ok(one)}
    for one in view.store:
        binding = one.event.binding
        minted = None if binding is None else plain.get(_text(binding.get("grantId")))
        told = registered.get(minted.event.conversation_id) if minted is not None else None
        if binding is None or minted is None or told is None:
            continue
        due = {"conversationId": minted.event.conversation_id} | {name: told.event.facts.get(name) for name in CLAIMS}
        odd = next((name for name, value in due.items() if isinstance(value, str) and binding.get(name) != value), None)
        bench.case(odd is None, f"a grant of another {odd}", f"the {odd} of the registration", minted.n, one.n)


LAWS = (
    promise(
        "static-only-gets-no-data",
        "With the static credential alone no tool of the store runs",
        STORE,
        ("MCP-001", "MCP-014"),
        _static_only,
    ),
    promise(
        "wrong-grant-never-reaches-a-tool",
        "No tool of the store runs for a grant that is unknown, expired, revoked, or for another place",
        STORE,
        ("CX-017", "MCP-002", "MCP-014"),
        _wrong_grant,
    ),
    promise(
        "refusal-before-execution",
        "What the store refuses has no effect, and its answer says so",
        STORE,
        ("MCP-014", "MCP-015"),
        _refused_first,
    ),
    promise(
        "executed-once",
        "A call id runs once at the store, and is answered from its first result after that",
        STORE,
        ("MCP-021",),
        _executed_once,
    ),
    promise(
        "mints-for-registered",
        "The issuer mints for a registered conversation only",
        ISSUER,
        ("GR-012",),
        _mints_for_registered,
    ),
    promise(
        "grants-differ",
        "The issuer never mints one grant twice",
        ISSUER,
        ("GR-007", "GR-014"),
        _grants_differ,
    ),
    promise(
        "claims-as-registered",
        "A grant holds the conversation, actor, team, agent and destination of its registration",
        ISSUER,
        ("GR-010", "GR-012"),
        _claims_as_registered,
    ),
)
