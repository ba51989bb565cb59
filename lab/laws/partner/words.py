"""The partner leg's parties, operations, codes and statuses, as the judges know them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

PARTNER_API = "partner_api"
PARTNER_CLIENT = "partner_client"
STORE = "store"
ISSUER = "issuer"

TERMINAL = frozenset({"completed", "failed", "limited", "interrupted", "cancelled"})
"""Statuses that never change (MSG-020, MSG-022)."""

STATUSES = TERMINAL | {"accepted", "running"}

REASONS = frozenset(
    {"TOOL_REFUSED", "CHAT_EXECUTION_FAILED", "EXECUTION_DENIED", "MCP_CONTEXT_DENIED", "QUOTA_EXCEEDED"}
)
"""Why a run failed (MSG-021)."""

EVENT_CODES = REASONS - {"TOOL_REFUSED"}
"""Codes of an `error` event (SSE-017, SSE-036)."""

STOP_TABLE: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {"completed": ("completed", None), "tool_error": ("failed", "TOOL_REFUSED"), "max_iterations": ("limited", None)}
)
"""Status and reason of a run by the stopReason of its `done` (MSG-012 to MSG-014)."""

CODE_STATUS: Mapping[str, int] = MappingProxyType(
    {
        "CREDENTIAL_REJECTED": 401,
        "EXECUTION_DENIED": 403,
        "MCP_CONTEXT_DENIED": 403,
        "CHAT_UNAVAILABLE": 404,
        "CHAT_CONFLICT": 409,
        "MCP_CONTEXT_CONFLICT": 409,
        "CHAT_INVALID": 400,
        "CHAT_CONFIGURATION": 503,
        "VALIDATION_ERROR": 400,
        "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED": 415,
        "CHAT_ATTACHMENT_TOO_LARGE": 413,
        "CHAT_ATTACHMENT_TOO_MANY": 400,
        "CHAT_ATTACHMENT_NOT_FOUND": 404,
        "CHAT_ATTACHMENT_NOT_ALLOWED": 403,
        "QUOTA_EXCEEDED": 429,
    }
)
"""The HTTP status of each code of a refusal."""

COST = re.compile(r"(0|[1-9][0-9]*)\.[0-9]{12}")
"""A cost in US dollars (US-003, US-032)."""

LEASE_S = 300.0
"""Seconds that a lease lasts at most (MB-011)."""

CLOCKS_S = 5.0
"""Seconds by which two clocks may differ (MB-011)."""

SMALLEST_TOLERANCE_MS = Decimal("0.01")
RELATIVE_TOLERANCE = Decimal("0.000001")
"""How far a sum of durations may be off (TM-045)."""

_OPERATIONS = {
    "PUT /memberships": "membership",
    "POST /conversations": "create",
    "GET /conversations/_/context": "context",
    "PUT /conversations/_/context": "bind",
    "POST /conversations/_/attachments": "upload",
    "POST /conversations/_/messages": "message",
    "GET /conversations/_/messages": "history",
    "GET /conversations/_/runs/_": "run",
    "GET /conversations/_/runs/_/events": "events",
    "GET /conversations/_/attachments/_/content": "file",
    "POST grants": "grant",
    "POST conversations": "register",
}
_PARAMETER = re.compile(r"(?<=/)(?:\{[^/}]*\}|:[^/]+)")

OF_ISSUER = frozenset({"grant", "register"})
"""Operations that the issuer answers, not the API."""


def operation(route: str) -> str:
    """The word for a route's template, whatever its parameters are called; `control` for the lab's own routes."""
    if "/__lab" in route or " __lab" in route:
        return "control"
    return _OPERATIONS.get(_PARAMETER.sub("_", route), "unknown")
