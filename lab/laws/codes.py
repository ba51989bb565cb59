"""The wire codes as the laws know them."""

from __future__ import annotations

from lab.laws.seen import Connection, FrameAt

# WS-039: the fixed order
CODES = (
    "bad_frame",
    "unknown_type",
    "schema_violation",
    "frame_too_large",
    "payload_too_large",
    "wrong_direction",
    "handshake_violation",
    "not_ready",
    "seq_gap",
    "seq_replayed",
    "chunk_out_of_order",
    "chunk_inconsistent",
    "tenant_mismatch",
    "agent_mismatch",
    "params_mismatch",
    "signature_mode_insufficient",
    "clock_skew",
    "protocol_unsupported",
    "unauthorized",
    "agent_offline",
    "timeout",
    "rate_limited",
    "internal",
)

# WS-043: the choice of what ends a connection
FATAL = frozenset(CODES) - {"protocol_unsupported", "agent_offline", "rate_limited", "internal"}

# WS-040: 4400 and the code's position
CLOSE_CODES = {code: 4400 + position for position, code in enumerate(CODES)}
CODE_OF_CLOSE = {number: code for code, number in CLOSE_CODES.items()}


# SG-008
SIGNATURE_CODES = frozenset({"unauthorized", "params_mismatch", "tenant_mismatch"})


def refused_frame(connection: Connection, party: str) -> FrameAt | None:
    """The frame that `party` answered with a fatal error, unless it was acked.

    The first one with a fault of its own that had come by then; where there is none, the last one.
    """
    error = connection.error(FATAL - {"timeout"}, party)
    if error is None:
        return None
    last: FrameAt | None = None
    wrong: FrameAt | None = None
    for seen in connection.frames:
        if seen.n >= error.n:
            break
        if seen.party != party and seen.delivered:
            last = seen
            wrong = seen if wrong is None and _is_faulty(seen, error.code) else wrong
            continue
        acked = seen.frame.payload.get("ackMsgId")
        last = None if last is not None and acked == last.frame.msg_id else last
        wrong = None if wrong is not None and acked == wrong.frame.msg_id else wrong
    return wrong or last


def _is_faulty(seen: FrameAt, code: str | None) -> bool:
    """Whether a frame has a fault that `code` may name; what a bad signature does depends on the mode."""
    if seen.frame.type in ("ack", "error"):
        return False
    return not seen.form_clean or (code in SIGNATURE_CODES and not seen.clean)


def fatal_error(connection: Connection, party: str | None = None) -> FrameAt | None:
    """The first error frame that ends a connection, of `party` or of either."""
    return connection.error(FATAL, party)
