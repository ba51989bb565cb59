"""The wire codes as data: what each means, whether it ends the connection, and whether trying again makes sense.

The position of a code, and with it its close code, comes from the contract's enum and stands nowhere else
(WS-039, WS-040). Which codes are fatal and retryable is the lab's choice where the sources are silent (WS-043, WS-044).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from lab.errors import ContractError

CLOSE_BASE = 4400
"""Close code of the first wire code; the others follow in the enum's order (WS-040)."""

NORMAL_CLOSURE = 1000


@dataclass(frozen=True)
class ErrorCode:
    """One wire code. `at_fault` is who broke the rule: the sender of the refused frame, the refuser, or the network."""

    name: str
    fatal: bool
    retryable: bool
    at_fault: Literal["sender", "refuser", "network"]
    doc: str


_CODES = (
    ErrorCode("bad_frame", True, False, "sender", "text that is not one JSON object without duplicate keys"),
    ErrorCode("unknown_type", True, False, "sender", "a type outside the allowlist"),
    ErrorCode("schema_violation", True, False, "sender", "a frame that breaks the envelope or its type's schema"),
    ErrorCode("frame_too_large", True, False, "sender", "a message above 49152 bytes"),
    ErrorCode("payload_too_large", True, False, "sender", "content above 64 chunks (2 MiB)"),
    ErrorCode("wrong_direction", True, False, "sender", "a type that the sender may not send"),
    ErrorCode("handshake_violation", True, False, "sender", "a handshake frame out of place"),
    ErrorCode("not_ready", True, True, "sender", "a data frame before ready"),
    ErrorCode("seq_gap", True, False, "sender", "a seq that skips the next expected one"),
    ErrorCode("seq_replayed", True, False, "sender", "a seq already used, with another msgId or too long ago"),
    ErrorCode("chunk_out_of_order", True, False, "sender", "a chunk index other than the next, or after the last"),
    ErrorCode("chunk_inconsistent", True, False, "sender", "total, last flag or length of a chunk do not agree"),
    ErrorCode("tenant_mismatch", True, False, "sender", "a tenantId that is not the connection's"),
    ErrorCode("agent_mismatch", True, False, "sender", "agentId missing from, or another in, an agent's frame"),
    ErrorCode("params_mismatch", True, False, "sender", "paramsRaw that is not equal to payload"),
    ErrorCode("signature_mode_insufficient", True, False, "sender", "a strict tenant whose agent does not enforce"),
    ErrorCode("clock_skew", True, True, "sender", "a clock more than 60 s away"),
    ErrorCode("protocol_unsupported", False, False, "refuser", "no v2 here, or in an ack: nobody handles this frame"),
    ErrorCode("unauthorized", True, False, "sender", "a signature or credential that does not verify"),
    ErrorCode("agent_offline", False, True, "network", "a frame lost with its session, or a cancelled send"),
    ErrorCode("timeout", True, True, "network", "no ack after 3 retransmissions, or 90 s of silence"),
    ErrorCode("rate_limited", False, True, "refuser", "a queue or a consumer that cannot take more"),
    ErrorCode("internal", False, True, "refuser", "an unexpected fault of the sender itself"),
)

ERROR_CODES: Mapping[str, ErrorCode] = MappingProxyType({code.name: code for code in _CODES})


class CloseCodes:
    """Close codes of one contract, from the order of its enum."""

    def __init__(self, enum: tuple[str, ...]) -> None:
        if len(set(enum)) != len(enum) or len(ERROR_CODES) != len(_CODES):
            raise ContractError("the errorCode enum of the contract names a code twice")
        odd = sorted(set(enum) ^ set(ERROR_CODES))
        if odd:
            raise ContractError(f"the errorCode enum of the contract and the lab's table differ in: {', '.join(odd)}")
        self._position = {name: position for position, name in enumerate(enum)}
        self._name = dict(enumerate(enum))

    def of(self, code: str) -> int:
        """The close code of a wire code."""
        return CLOSE_BASE + self._position[code]

    def name(self, close_code: int | None) -> str | None:
        """The wire code of a close code, None for any other."""
        return None if close_code is None else self._name.get(close_code - CLOSE_BASE)
