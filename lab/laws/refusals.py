"""The laws of refusals: what is refused is named by the code that the order of checks demands, and never echoed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lab.laws.chunks import misfit
from lab.laws.codes import FATAL
from lab.laws.law import Judgement, Law, Tally
from lab.laws.received import (
    go_on,
    pairs_before,
    received_before,
    refused_before,
    sent_and_acked,
    series_before,
)
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session, other_party
from lab.laws.signatures import signature_faults
from lab.laws.view import JournalView

LARGEST_FRAME = 49152
"""Bytes of a message (WS-019)."""

LARGEST_ERROR = 1600
"""Bytes of an error frame at most: its envelope, a code, and a detail of 200 characters (WS-046)."""

LARGEST_SKEW_MS = 60_000
"""WS-025."""

UNSURE_SKEW_MS = 2_000
"""Around LARGEST_SKEW_MS the two clocks need not agree."""

KEPT_PAIRS = 512
"""Pairs of seq and msgId that a receiver remembers (SQ-005)."""

ANSWERED_WITHIN = 5.0
"""Seconds from a frame that is refused to the error frame; the documents name no time."""

MALFORMED = 3
"""Malformed acks and errors of the peer in a row after which a connection may be ended; the choice of the lab."""

STRICT_TENANTS = frozenset({"hybrid", "client"})
"""Tenant modes that need an agent in enforce (HS-010)."""

Codes = frozenset[str]
NONE: Codes = frozenset()


def _refusals(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for session, connection in _connections(view):
        _Refusals(tally, view, session, connection, party).judge()
    return tally.judgement()


def _connections(view: JournalView) -> Iterator[tuple[Session | None, Connection]]:
    sessions = {connection.conn: session for session in view.sessions for connection in session.connections}
    for connection in view.connections.values():
        yield sessions.get(connection.conn), connection


class _Refusals:
    """Follows what `party` got on a connection up to the first frame that it owes an error."""

    def __init__(
        self, tally: Tally, view: JournalView, session: Session | None, connection: Connection, party: str
    ) -> None:
        self._tally = tally
        self._view = view
        self._connection = connection
        self._party = party
        self._who = view.name_of(party, connection)
        self._last = received_before(connection, party)
        self._known = pairs_before(session, connection, party)
        self._refused = refused_before(session, connection, party)
        self._series = series_before(session, connection, self._refused) if party == GATEWAY else {}
        self._session = session
        self._unsure = False
        """Whether something came whose answer cannot be told."""
        self._types: set[str] = set()
        self._malformed = 0
        """Malformed acks and errors in a row."""

    def judge(self) -> None:
        errors = [seen for seen in self._connection.made(self._party) if seen.frame.type == "error"]
        for error in errors:
            self._judge_form(error)
        fatal = next((one for one in errors if one.code in FATAL - {"timeout"}), None)
        wrong, due = self._first_refused()
        if wrong is not None:
            self._judge_answer(wrong, due, fatal)
        elif fatal is not None and not self._unsure:
            code = fatal.frame.payload.get("code")
            self._tally.broken(self._who, f"error {code} though all was in order", "no error", (fatal.n,))

    def _judge_form(self, error: FrameAt) -> None:
        found = error.frame.facts.get("canaries")
        if found or error.frame.size > LARGEST_ERROR:
            # WS-045, SEC-009: the code only
            what = "content" if found else f"{error.frame.size} bytes"
            self._tally.broken(
                self._who, f"an error frame with {what}", "the code, and nothing of the frame", (error.n,)
            )
        else:
            self._tally.held()

    def _judge_answer(self, wrong: FrameAt, due: Codes, fatal: FrameAt | None) -> None:
        name = wrong.frame.type or "a frame"
        gone_on = self._gone_on(wrong)
        if gone_on is not None and (fatal is None or fatal.n > gone_on.n):
            # LA-008, WS-030: who works on behind it has not refused it
            what = f"{name} taken: {gone_on.frame.type} behind it"
            self._tally.broken(self._who, what, f"error {_either(due)}", (wrong.n, gone_on.n))
            return
        if fatal is not None and fatal.n > wrong.n:
            code = str(fatal.frame.payload.get("code"))
            if code in due:
                self._tally.held()
            else:
                # WS-029, WS-030, WS-031: the order of checks
                self._tally.broken(self._who, f"{code} for {name}", _either(due), (wrong.n, fatal.n))
            return
        if fatal is not None and not self._unsure:
            self._tally.broken(self._who, "an error before anything was wrong", _either(due), (fatal.n, wrong.n))
            return
        until = wrong.t + ANSWERED_WITHIN
        until += self._view.slack(wrong.t, until)
        peer_ended = self._connection.error(FATAL, other_party(self._party))
        if self._view.horizon(self._connection, wrong.t) < until or (peer_ended and peer_ended.t <= until):
            self._tally.unsure()
            return
        # LA-008: what is refused is answered
        self._tally.broken(self._who, f"no error for {name}", f"error {_either(due)}", (wrong.n,))

    def _gone_on(self, wrong: FrameAt) -> FrameAt | None:
        """The first sign that whoever got a wrong frame went on: an ack for it or for what followed it, or ready."""
        before: set[str | None] = set()
        for connection in self._session.connections if self._session is not None else ():
            before |= {seen.frame.msg_id for seen in connection.frames if seen.n < wrong.n}
        before -= {wrong.frame.msg_id, None}
        for seen in self._connection.after(wrong.n):
            if seen.party != self._party or not seen.made:
                continue
            named = seen.frame.payload.get("ackMsgId") if seen.frame.type == "ack" else None
            if seen.frame.type == "ready" or (isinstance(named, str) and named not in before):
                return seen
        return None

    def _first_refused(self) -> tuple[FrameAt | None, Codes]:
        for seen in self._connection.frames:
            if seen.party == self._party or not seen.delivered:
                continue
            if seen.frame.fate == "released" and seen.frame.type in ("register", "hello", "ready"):
                # What a handshake does whose frames come late is not known.
                self._unsure = True
                return None, NONE
            due = self._due(seen)
            if due and (seen.frame.seq, seen.frame.msg_id) in self._refused and seen.is_data:
                # What was refused on the connection before comes again, and is then consumed with a rejected ack.
                self._last, due = max(self._last, seen.frame.seq or 0), None
            if due is None:
                self._unsure = True
                self._perhaps_took(seen)
            elif due:
                return seen, due
        return None, NONE

    def _perhaps_took(self, seen: FrameAt) -> None:
        """A frame of which nobody can tell: were it refused nothing would follow, so what follows goes on behind it."""
        seq = seen.frame.seq
        if seen.is_data and seq is not None and seq == self._last + 1:
            self._last = seq
            self._known.setdefault(seq, seen.frame.msg_id)

    def _due(self, seen: FrameAt) -> Codes | None:
        """The codes that a frame may be refused with: none for one in order, None where nobody can tell."""
        frame, facts = seen.frame, seen.frame.facts
        if "ping" in facts:
            return NONE
        if frame.size > LARGEST_FRAME:
            return frozenset({"frame_too_large"})
        if facts.get("parse", "ok") != "ok":
            return frozenset({"bad_frame"})
        if facts.get("v1") is True or frame.version is None:
            # V1-003: the v1 handler's on a v2 session; V1-002: at a gateway it makes the session one of v1
            passed_on = facts.get("v1") is True and self._party == LOCAL_AGENT and self._connection.in_session(seen)
            return NONE if passed_on else None
        if frame.type in ("ack", "error"):
            return self._unanswered(seen)
        static = self._static(seen)
        if static:
            return static
        return self._in_place(seen)

    def _unanswered(self, seen: FrameAt) -> Codes | None:
        """WS-085: no ack and no error is answered with an error, only the third malformed one in a row."""
        self._malformed = 0 if seen.clean else self._malformed + 1
        return NONE if self._malformed < MALFORMED else None

    def _static(self, seen: FrameAt) -> Codes:
        """WS-029 to WS-032: the first fault in the order of either role; a double fault may name either one."""
        facts = seen.frame.facts
        if facts.get("type", "ok") != "ok":
            return frozenset({"unknown_type"})
        direction = ["wrong_direction"] if facts.get("direction") is False else []
        schema = ["schema_violation"] if facts.get("schema", "ok") != "ok" else []
        named = [code for code in ("tenant", "agent") if facts.get(code, "ok") != "ok"]
        agent = seen.frame.agent_id
        registered = self._connection.agent_id
        if not named and agent is not None and registered is not None and agent != registered:
            named = ["agent"]
        identity = [f"{code}_mismatch" for code in named]
        orders = ((*schema, *identity, *direction), (*direction, *schema, *identity))
        return frozenset(order[0] for order in orders if order)

    def _in_place(self, seen: FrameAt) -> Codes | None:
        if self._party == LOCAL_AGENT:
            return self._at_agent(seen)
        return self._at_gateway(seen)

    def _at_agent(self, seen: FrameAt) -> Codes | None:
        faults = signature_faults(self._view, self._connection, seen)
        if faults is None:
            return None
        # What was lost on an earlier connection is none: the agent said up to where it had all.
        came = seen.frame.seq is not None and seen.frame.seq <= self._last
        duplicate = came and self._known.get(seen.frame.seq) == seen.frame.msg_id
        if faults and duplicate and not _verified(seen):
            # SG-005 checks each frame, SQ-002 knows it as a copy: which comes first is nowhere stated.
            return None
        if faults and not (duplicate and faults == {"unauthorized"}):
            # SG-008, SG-010; SG-014: a byte-true copy is a duplicate before its nonce is judged
            return faults
        if seen is self._connection.ready:
            return None if self._impossible(GATEWAY) else NONE
        if seen.frame.type == "ready":
            # HS-018, HS-038: a further one is out of place
            return frozenset({"handshake_violation"})
        if not self._connection.in_session(seen):
            return None
        return self._in_sequence(seen)

    def _at_gateway(self, seen: FrameAt) -> Codes | None:
        kind = seen.frame.type or ""
        first = not self._types
        repeated = kind in self._types
        self._types.add(kind)
        if kind in ("register", "hello"):
            if repeated or (first and kind == "hello"):
                # HS-016, HS-018
                return frozenset({"handshake_violation"})
            return self._handshake(seen)
        if first:
            return frozenset({"handshake_violation", "not_ready"})
        answered = self._connection.answered
        if answered is None or answered.n > seen.n:
            # HS-017
            return frozenset({"not_ready"})
        return self._in_sequence(seen) if self._connection.in_session(seen) else None

    def _handshake(self, seen: FrameAt) -> Codes | None:
        """HS-010, HS-011: skew before signature mode; which of the two frames is refused is the gateway's choice."""
        skew = seen.frame.facts.get("skewMs")
        if not isinstance(skew, int):
            return None
        room = UNSURE_SKEW_MS + 1000 * self._view.slack(seen.t, seen.t)
        if abs(skew) > LARGEST_SKEW_MS + room:
            return frozenset({"clock_skew"})
        if abs(skew) > LARGEST_SKEW_MS - room:
            return None
        declared = self._view.participants.get(self._connection.gateway)
        strict = declared is not None and declared.facts.get("tenantMode") in STRICT_TENANTS
        if strict and seen.frame.type == "hello" and seen.frame.payload.get("signatureMode") != "enforce":
            # SG-012, HS-044
            return frozenset({"signature_mode_insufficient"})
        # RS-019: a resume that cannot be is refused or answered resumed:false.
        return None if seen.frame.type == "register" and self._impossible(LOCAL_AGENT) else NONE

    def _impossible(self, claims: str) -> bool:
        """Whether what `claims` says that it has of a resumed session was never sent, or less than it acked."""
        ready, asked = self._connection.ready, self._connection.resume()
        if claims == GATEWAY and ready is not None:
            session_id, told = self._connection.session_id, ready.frame.payload.get("peerLastSeq")
            if not self._connection.resumed:
                return told != 0
            if asked is None or asked[0] != session_id:
                return True
        elif asked is not None:
            session_id, told = asked
        else:
            return False
        sent, acked = sent_and_acked(self._view, self._connection, session_id, claims)
        return not isinstance(told, int) or not acked <= told <= sent

    def _in_sequence(self, seen: FrameAt) -> Codes | None:
        seq = seen.frame.seq
        if not seen.is_data or seq is None:
            return NONE
        if seq > self._last + 1:
            # SQ-004
            return frozenset({"seq_gap"})
        known = self._known.get(seq)
        if seq <= self._last:
            if seq <= self._last - KEPT_PAIRS or (known is not None and known != seen.frame.msg_id):
                # SQ-003, SQ-006
                return frozenset({"seq_replayed"})
            return NONE if known is not None else None
        misfitting = self._chunk(seen)
        if misfitting:
            return misfitting
        self._last = seq
        if known not in (None, seen.frame.msg_id):
            return None
        self._known[seq] = seen.frame.msg_id
        return NONE

    def _chunk(self, seen: FrameAt) -> Codes:
        frame = seen.frame
        if frame.type != "content.response" or frame.chunk is None or frame.request_id is None:
            return NONE
        series = self._series.get(frame.request_id)
        fault = misfit(series, frame.chunk, frame.facts.get("decoded"), frame.payload.get("byteLength"))
        if fault is not None:
            # CH-003, CH-004
            return frozenset({fault.code})
        if self._session is not None:
            go_on(self._series, self._session, seen)
        return NONE


def _verified(seen: FrameAt) -> bool:
    """Whether a frame's signature is one of a trusted key: only its nonce or its age can be wrong."""
    signature = seen.frame.facts.get("signature")
    return isinstance(signature, dict) and signature.get("verified") is True


def _either(codes: Codes) -> str:
    return " or ".join(sorted(codes))


_ORDER = (
    *("WS-029", "WS-032", "WS-033", "WS-035", "WS-037", "WS-038", "WS-045", "WS-046", "SEC-009"),
    *("WS-061", "WS-062", "WS-067", "WS-068", "WS-071", "WS-072", "SQ-003", "SQ-004"),
    *("SQ-012", "SQ-016", "WS-051", "WS-085"),
)

LAWS = (
    Law(
        "refusals",
        "An agent refuses what is not in order and nothing else, with the code that the order of checks demands, "
        "and echoes nothing",
        LOCAL_AGENT,
        (
            *(*_ORDER, "WS-031", "LA-008", "SG-003", "SG-005", "SG-006", "SG-008", "SG-009", "WS-065", "WS-073"),
            *("HS-018", "SQ-006", "SQ-024", "WS-077", "V1-003"),
        ),
        partial(_refusals, "refusals", LOCAL_AGENT),
    ),
    Law(
        "gateway-refusals",
        "A gateway refuses what is not in order and nothing else, with the code that the order of checks demands, "
        "and echoes nothing",
        GATEWAY,
        (
            *(*_ORDER, "WS-030", "SQ-006", "WS-065", "WS-066", "WS-069", "WS-070", "WS-074", "WS-075"),
            *("HS-010", "HS-011", "HS-012", "HS-016", "HS-017", "HS-018", "HS-045", "SG-012", "CH-022", "CH-024"),
        ),
        partial(_refusals, "gateway-refusals", GATEWAY),
    ),
)
