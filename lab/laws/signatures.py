"""The laws of signatures: the gateway signs, and the agent refuses as its mode says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

LARGEST_SKEW_MS = 60_000
"""SG-014, WS-025."""

UNSURE_SKEW_MS = 2_000
"""Around LARGEST_SKEW_MS the two clocks need not agree."""

_DUE = {
    "present": "sig and paramsRaw",
    "verified": "a signature of a trusted key over the canonical text",
    "bound": "sig bound to the frame's tenant and workspace",
    "equal": "paramsRaw equal to payload",
}


def _gateway_frames_signed(view: JournalView) -> Judgement:
    tally = Tally("gateway-frames-signed", GATEWAY)
    nonces: dict[str, int] = {}
    for connection in view.connections.values():
        for seen in connection.made(GATEWAY):
            facts = seen.frame.facts.get("signature")
            if facts is None:
                continue
            name = seen.frame.type or "a frame"
            breaks = [(f"{name}: not {fact}", due) for fact, due in _DUE.items() if facts.get(fact) is not True]
            if facts.get("present") is not True:
                breaks = breaks[:1]
            entries = [seen.n]
            skew = facts.get("skewMs")
            if isinstance(skew, int) and abs(skew) > LARGEST_SKEW_MS + 1000 * view.slack(seen.t, seen.t):
                breaks.append((f"{name}: signed {skew} ms off", f"within {LARGEST_SKEW_MS} ms"))
            nonce = facts.get("nonce")
            if nonce in nonces:
                # SQ-023, SG-014: a copy is signed anew
                breaks.append((f"{name}: a nonce used before", "a new nonce"))
                entries.insert(0, nonces[nonce])
            elif nonce is not None:
                nonces[nonce] = seen.n
            for what, due in breaks:
                tally.broken(connection.gateway, what, due, entries)
            if not breaks:
                tally.held()
    return tally.judgement()


# The agent's side


def signature_faults(view: JournalView, connection: Connection, seen: FrameAt) -> frozenset[str] | None:
    """The codes with which an agent may refuse a frame for its signature; None where its mode or clock decides.

    No code at all where the signature is good, is not due, or the mode lets it pass (SG-008, SG-010, SG-011).
    """
    facts = seen.frame.facts.get("signature")
    if facts is None:
        return frozenset()
    if facts.get("present") is not True:
        # SG-017: in every mode, since the schema requires both members
        return frozenset({"schema_violation"})
    mode = _mode(connection)
    if mode in ("off", "warn"):
        return frozenset()
    codes = set()
    if facts.get("equal") is False:
        codes.add("params_mismatch")
    if facts.get("bound") is False:
        codes |= {"tenant_mismatch", "unauthorized"}
    skew = facts.get("skewMs")
    room = UNSURE_SKEW_MS + 1000 * view.slack(seen.t, seen.t)
    stale = isinstance(skew, int) and abs(skew) > LARGEST_SKEW_MS + room
    if facts.get("verified") is False or stale or _used_before(connection, seen, facts.get("nonce")):
        codes.add("unauthorized")
    if not codes and _used_elsewhere(view, connection, seen, facts.get("nonce")):
        # SG-014 names no time for which an agent keeps what it has seen.
        return None
    if mode != "enforce" and codes:
        return None
    near = isinstance(skew, int) and LARGEST_SKEW_MS - room < abs(skew) <= LARGEST_SKEW_MS + room
    return None if near and not codes else frozenset(codes)


def _mode(connection: Connection) -> object:
    hello = next((seen for seen in connection.made(LOCAL_AGENT) if seen.frame.type == "hello"), connection.register)
    return hello.frame.payload.get("signatureMode") if hello is not None else None


def _used_before(connection: Connection, seen: FrameAt, nonce: object) -> bool:
    """SG-014: whether another frame on this connection bore the nonce; a byte-true copy is the same frame."""
    if nonce is None:
        return False
    first = connection.nonces.get(nonce)
    return first is not None and first.n < seen.n and first.frame.sha256 != seen.frame.sha256


def _used_elsewhere(view: JournalView, connection: Connection, seen: FrameAt, nonce: object) -> bool:
    """Whether a frame on an earlier connection of the agent bore the nonce."""
    earlier = (
        other.nonces.get(nonce)
        for other in view.connections.values()
        if other is not connection and other.agent_id == connection.agent_id
    )
    return nonce is not None and any(first is not None and first.n < seen.n for first in earlier)


def _signature_refusal(view: JournalView) -> Judgement:
    tally = Tally("signature-refusal", LOCAL_AGENT)
    for connection in view.connections.values():
        for seen in connection.frames:
            facts = seen.frame.facts.get("signature")
            if seen.party == LOCAL_AGENT or facts is None or not seen.delivered:
                continue
            faults = signature_faults(view, connection, seen)
            if faults is None:
                tally.unsure()
            elif faults:
                _judge_refused(tally, view, connection, seen)
            elif _passes_by_mode(connection, facts):
                _judge_passed(tally, view, connection, seen)
    return tally.judgement()


def _passes_by_mode(connection: Connection, facts: Mapping[str, Any]) -> bool:
    return _mode(connection) in ("off", "warn") and not all(facts.get(name) is True for name in _DUE)


def _judge_refused(tally: Tally, view: JournalView, connection: Connection, seen: FrameAt) -> None:
    """SG-010: in enforce a bad signature is refused."""
    who = view.agent_of(connection)
    name = seen.frame.type or "a frame"
    taken = next((ack for ack in view.acks.get(seen.frame.msg_id or "", ()) if _accepts(ack, seen)), None)
    if seen is connection.ready:
        # HS-013: ready is verified like any other frame
        behind = (one for one in connection.after(seen.n) if one.party == LOCAL_AGENT and one.made)
        taken = next((one for one in behind if one.is_data or one.frame.type == "ack"), None)
    good = any(
        one.frame.seq == seen.frame.seq and one.is_data and one.delivered and not signature_faults(view, other, one)
        # Another connection too: after a resume the gateway sends the frame again, signed anew (SQ-023).
        for other in view.connections.values()
        for one in other.frames
        if one.party == GATEWAY and one.frame.msg_id == seen.frame.msg_id
    )
    if taken is not None and not good:
        tally.broken(who, f"{name} with a bad signature taken", "refused in enforce", (seen.n, taken.n))
    else:
        tally.held()


def _judge_passed(tally: Tally, view: JournalView, connection: Connection, seen: FrameAt) -> None:
    """SG-010: warn and off carry on."""
    error = connection.error(SIGNATURE_CODES, LOCAL_AGENT)
    if error is not None and error.n > seen.n:
        mode = _mode(connection)
        name = seen.frame.type or "a frame"
        tally.broken(
            view.agent_of(connection),
            f"{error.frame.payload.get('code')} for {name} in mode {mode}",
            "carried on",
            (seen.n, error.n),
        )
    else:
        tally.held()


def _accepts(ack: FrameAt, seen: FrameAt) -> bool:
    return ack.party == LOCAL_AGENT and ack.n > seen.n and ack.frame.payload.get("status") == "accepted"


SIGNATURE_CODES = frozenset({"unauthorized", "params_mismatch"})
"""What a bad signature is refused with (SG-008)."""

LAWS = (
    Law(
        "gateway-frames-signed",
        "A gateway signs every frame of a signed type anew, bound to its tenant and workspace",
        GATEWAY,
        ("SG-001", "SG-003", "SG-005", "SG-007", "SG-009", "SG-014", "SG-016", "SQ-023"),
        _gateway_frames_signed,
    ),
    Law(
        "signature-refusal",
        "An agent takes no frame with a bad signature if it said enforce, and carries on with it in warn and off",
        LOCAL_AGENT,
        ("HS-013", "HS-041", "SG-005", "SG-007", "SG-009", "SG-010", "SG-014", "SG-017"),
        _signature_refusal,
    ),
)
