"""The law of the gateway's signatures."""

from __future__ import annotations

from lab.laws.law import Judgement, Law, Tally
from lab.laws.view import GATEWAY, JournalView

LARGEST_SKEW_MS = 60_000
"""SG-014, WS-025."""

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


LAWS = (
    Law(
        "gateway-frames-signed",
        "A gateway signs every frame of a signed type anew, bound to its tenant and workspace",
        GATEWAY,
        ("SG-001", "SG-003", "SG-005", "SG-007", "SG-009", "SG-014", "SG-016", "SQ-023"),
        _gateway_frames_signed,
    ),
)
