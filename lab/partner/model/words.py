"""The words of the partner API as the model writes them: codes, scopes, header names, limits.

They are written down once for this side. The driver has its own list, so that a shared mistake cannot hide itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

BASE: Final = "/v1/orgs/{orgId}/chat"
"""PA-006: what all ten routes lie below."""
LAB_BASE: Final = "/__lab"
"""PA-055: what the lab's own controls lie below."""


class Code(StrEnum):
    """Every error code of the envelope (PA-011…019, PA-051)."""

    CREDENTIAL_REJECTED = "CREDENTIAL_REJECTED"
    EXECUTION_DENIED = "EXECUTION_DENIED"
    MCP_CONTEXT_DENIED = "MCP_CONTEXT_DENIED"
    CHAT_UNAVAILABLE = "CHAT_UNAVAILABLE"
    CHAT_CONFLICT = "CHAT_CONFLICT"
    MCP_CONTEXT_CONFLICT = "MCP_CONTEXT_CONFLICT"
    CHAT_INVALID = "CHAT_INVALID"
    CHAT_CONFIGURATION = "CHAT_CONFIGURATION"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    ATTACHMENT_TYPE_NOT_SUPPORTED = "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED"
    ATTACHMENT_TOO_LARGE = "CHAT_ATTACHMENT_TOO_LARGE"
    ATTACHMENT_TOO_MANY = "CHAT_ATTACHMENT_TOO_MANY"
    ATTACHMENT_NOT_FOUND = "CHAT_ATTACHMENT_NOT_FOUND"
    ATTACHMENT_NOT_ALLOWED = "CHAT_ATTACHMENT_NOT_ALLOWED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"


ORG_SPEND: Final = "org_spend"
"""PA-019: the second token of a spent budget."""
TOOL_FAILED: Final = "TOOL_FAILED"
TOOL_REFUSED: Final = "TOOL_REFUSED"
CHAT_EXECUTION_FAILED: Final = "CHAT_EXECUTION_FAILED"


class Scope(StrEnum):
    """What a key may do (PA-010)."""

    MEMBERSHIP = "chat:membership"
    CREATE = "chat:create"
    CONTEXT = "chat:context"
    RUN = "chat:run"
    READ = "chat:read"
    CONVERSATION_READ = "chat:conversation:read"


CHAT_KEY_SCOPES: Final = (Scope.MEMBERSHIP, Scope.CREATE, Scope.CONTEXT, Scope.RUN, Scope.READ)
"""FX-047: what the chatKey may do."""
PROVISIONING_SCOPES: Final = ("provisioning:agents", "provisioning:teams")
"""PA-003: what the provisioningKey may do; nothing of it is a chat scope."""


class Role(StrEnum):
    """The role of a membership (MB-021)."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class RunStatus(StrEnum):
    """Where a run stands (MSG-020)."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    LIMITED = "limited"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


TERMINAL: Final = (
    RunStatus.COMPLETED,
    RunStatus.FAILED,
    RunStatus.LIMITED,
    RunStatus.INTERRUPTED,
    RunStatus.CANCELLED,
)

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
LAST_EVENT_ID: Final = "Last-Event-ID"

GRANT_HEADER: Final = "X-Store-Context-Grant"
TURN_HEADER: Final = "X-Agent-Turn-Id"
CALL_HEADER: Final = "X-Agent-Call-Id"
CONVERSATION_HEADER: Final = "X-Agent-Conversation-Id"
"""MCP-013: what the model tells the store beside the static credential."""

EXTERNAL_ID_CHARACTERS: Final = 255
"""MB-038, in code points."""
ID_CHARACTERS: Final = 255
"""PA-047 sets no length; longer ids than the model mints are unknown ones anyway."""
IDEMPOTENCY_KEY_CHARACTERS: Final = 255
"""CV-019."""
GRANT_CHARACTERS: Final = 8192
"""CX-028, in code points."""
DESTINATION_CHARACTERS: Final = 2048
REVISION_MAX: Final = 2**53 - 1
"""MB-020."""
LEASE_MS: Final = 300_000
"""MB-011: a lease lasts five minutes at the most …"""
LEASE_SLACK_MS: Final = 5_000
"""… and what clocks may differ by (MB-022)."""

IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXT_TYPES: Final = ("text/plain", "text/markdown", "text/csv", "application/json")
ACCEPTED_TYPES: Final = IMAGE_TYPES + TEXT_TYPES
"""AT-004, AT-006."""
ATTACHMENT_BYTES: Final = 3 * 1024 * 1024
"""AT-008."""
ATTACHMENTS_MAX: Final = 5
"""AT-009."""
MESSAGE_CHARACTERS: Final = 32_000
"""MSG-031, in code points."""

HISTORY_LIMIT_DEFAULT: Final = 50
HISTORY_LIMIT_MOST: Final = 200
"""HIS-002."""
CURSOR_CHARACTERS: Final = 512
"""PA-059: of what is chosen for cursors and quotas, the limits and words are here."""

ENVIRONMENT_VARIABLE: Final = "PARTNER_API_ENVIRONMENT"
ENVIRONMENTS: Final = ("test", "production")
"""PA-008, PA-060."""
