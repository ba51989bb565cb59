"""The words that the driver puts on the wire and looks for on it, each written once."""

from __future__ import annotations

from typing import Final

PUT_MEMBERSHIP: Final = "PUT /memberships"
POST_CONVERSATION: Final = "POST /conversations"
GET_CONTEXT: Final = "GET /conversations/{conversationId}/context"
PUT_CONTEXT: Final = "PUT /conversations/{conversationId}/context"
POST_ATTACHMENT: Final = "POST /conversations/{conversationId}/attachments"
GET_CONTENT: Final = "GET /conversations/{conversationId}/attachments/{attachmentId}/content"
POST_MESSAGE: Final = "POST /conversations/{conversationId}/messages"
GET_HISTORY: Final = "GET /conversations/{conversationId}/messages"
GET_RUN: Final = "GET /conversations/{conversationId}/runs/{runId}"
GET_EVENTS: Final = "GET /conversations/{conversationId}/runs/{runId}/events"
"""The ten routes (PA-009), by their template below the base."""

POST_GRANT: Final = "POST grants"
POST_REGISTRATION: Final = "POST conversations"
"""The issuer's routes, as they stand in a journal (GR-001, GR-012)."""

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
LAST_EVENT_ID: Final = "Last-Event-ID"

CONTEXT_CONFLICT: Final = "MCP_CONTEXT_CONFLICT"
QUOTA_EXCEEDED: Final = "QUOTA_EXCEEDED"
ORG_SPEND: Final = "org_spend"

CODES: Final = frozenset(
    {
        "CREDENTIAL_REJECTED",
        "EXECUTION_DENIED",
        "MCP_CONTEXT_DENIED",
        "CHAT_UNAVAILABLE",
        "CHAT_CONFLICT",
        CONTEXT_CONFLICT,
        "CHAT_INVALID",
        "CHAT_CONFIGURATION",
        "VALIDATION_ERROR",
        "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED",
        "CHAT_ATTACHMENT_TOO_LARGE",
        "CHAT_ATTACHMENT_TOO_MANY",
        "CHAT_ATTACHMENT_NOT_FOUND",
        "CHAT_ATTACHMENT_NOT_ALLOWED",
        QUOTA_EXCEEDED,
    }
)
"""The codes of the contract: an answer that bears one is final, whatever its status (PA-043)."""

TERMINAL: Final = frozenset({"completed", "failed", "limited", "interrupted", "cancelled"})
"""The statuses that never change again; any other, known or not, is not terminal (MSG-020)."""


def base_path(organization_id: str) -> str:
    """What stands between the origin and a route (PA-006)."""
    return f"/v1/orgs/{organization_id}/chat"
