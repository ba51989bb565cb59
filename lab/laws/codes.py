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


def refused_frame(connection: Connection, party: str) -> FrameAt | None:
    """The frame that `party` answered with a fatal error: the last one that had come by then, unless it was acked."""
    error = connection.error(FATAL - {"timeout"}, party)
    if error is None:
        return None
    last: FrameAt | None = None
    for seen in connection.frames:
        if seen.n >= error.n:
            break
        if seen.party != party and seen.delivered:
            last = seen
        elif last is not None and seen.frame.payload.get("ackMsgId") == last.frame.msg_id:
            last = None
    return last


def fatal_error(connection: Connection, party: str | None = None) -> FrameAt | None:
    """The first error frame that ends a connection, of `party` or of either."""
    return connection.error(FATAL, party)
