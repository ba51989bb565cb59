"""Why the model refuses a call: one constructor per code, with its HTTP status and its fixed text (PRIV-021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lab.partner.model.words import ACCEPTED_TYPES, ATTACHMENT_BYTES, ORG_SPEND, Code

_TABLE: Final[Mapping[Code, tuple[int, str]]] = {
    Code.CREDENTIAL_REJECTED: (401, "The organization key was not accepted."),
    Code.EXECUTION_DENIED: (403, "This key or employee may not do this now."),
    Code.MCP_CONTEXT_DENIED: (403, "The store context of this conversation does not allow this."),
    Code.CHAT_UNAVAILABLE: (404, "There is nothing here for this key and employee."),
    Code.CHAT_CONFLICT: (409, "This contradicts what is stored already."),
    Code.MCP_CONTEXT_CONFLICT: (409, "The store context has another version."),
    Code.CHAT_INVALID: (400, "The request is not well formed."),
    Code.CHAT_CONFIGURATION: (503, "The agent is not set up for this chat."),
    Code.VALIDATION_ERROR: (400, "A message needs text or a file."),
    Code.ATTACHMENT_TYPE_NOT_SUPPORTED: (415, "Files of this type are not supported."),
    Code.ATTACHMENT_TOO_LARGE: (413, "The file is too large."),
    Code.ATTACHMENT_TOO_MANY: (400, "The message names too many files."),
    Code.ATTACHMENT_NOT_FOUND: (404, "There is no such file in this conversation."),
    Code.ATTACHMENT_NOT_ALLOWED: (403, "This conversation takes no files."),
    Code.QUOTA_EXCEEDED: (429, "The budget of the organization is spent."),
}


class Refusal(Exception):
    """A call is refused with `code` and `status`; `extras` are further members of the error object (PA-035).

    `why` is a word for the journal and never leaves the lab: the text for the caller is fixed per code.
    """

    def __init__(
        self, code: Code, why: str = "", extras: Mapping[str, object] | None = None, status: int | None = None
    ) -> None:
        super().__init__(f"{code}: {why}" if why else str(code))
        self.code = code
        self.status = _TABLE[code][0] if status is None else status
        self.message = _TABLE[code][1]
        self.extras: Mapping[str, object] = {} if extras is None else extras
        self.why = why

    def body(self) -> dict[str, object]:
        """The error envelope."""
        error = {"code": str(self.code), "message": self.message, **self.extras}
        return {"success": False, "error": error}


def credential_rejected(why: str = "") -> Refusal:
    """401: no key that counts came (PA-036)."""
    return Refusal(Code.CREDENTIAL_REJECTED, why)


def execution_denied(why: str = "") -> Refusal:
    """403: a scope is missing, or the employee has no right now (PA-037, PA-049)."""
    return Refusal(Code.EXECUTION_DENIED, why)


def context_denied(why: str = "") -> Refusal:
    """403: the conversation's store context forbids it (CX-020…022, CX-025)."""
    return Refusal(Code.MCP_CONTEXT_DENIED, why)


def unavailable(why: str = "", status: int | None = None) -> Refusal:
    """404 (or 405 for a method, PA-056): unknown, removed or foreign (PA-039)."""
    return Refusal(Code.CHAT_UNAVAILABLE, why, status=status)


def conflict(why: str = "") -> Refusal:
    """409 (PA-040)."""
    return Refusal(Code.CHAT_CONFLICT, why)


def context_conflict(why: str = "") -> Refusal:
    """409: expectedVersion is not the present version (CX-013)."""
    return Refusal(Code.MCP_CONTEXT_CONFLICT, why)


def invalid(why: str = "") -> Refusal:
    """400: a malformed request (PA-041); `why` names the place, never a value."""
    return Refusal(Code.CHAT_INVALID, why)


def configuration(why: str = "") -> Refusal:
    """503: no usable profile, or not exactly one store candidate (PA-042)."""
    return Refusal(Code.CHAT_CONFIGURATION, why)


def nothing_to_say(why: str = "") -> Refusal:
    """400 VALIDATION_ERROR: neither text nor a file (AT-030)."""
    return Refusal(Code.VALIDATION_ERROR, why)


def type_not_supported(why: str = "") -> Refusal:
    """415 with acceptedTypes (AT-026, AT-031)."""
    return Refusal(Code.ATTACHMENT_TYPE_NOT_SUPPORTED, why, {"acceptedTypes": list(ACCEPTED_TYPES)})


def too_large(why: str = "") -> Refusal:
    """413 with maxBytes (AT-027, AT-031)."""
    return Refusal(Code.ATTACHMENT_TOO_LARGE, why, {"maxBytes": ATTACHMENT_BYTES})


def too_many(why: str = "") -> Refusal:
    """400: more files than a message may name (AT-028)."""
    return Refusal(Code.ATTACHMENT_TOO_MANY, why)


def file_not_found(why: str = "") -> Refusal:
    """404: an unknown, foreign or expired file (AT-029, AT-032)."""
    return Refusal(Code.ATTACHMENT_NOT_FOUND, why)


def files_not_allowed(why: str = "") -> Refusal:
    """403: a guest conversation (AT-023)."""
    return Refusal(Code.ATTACHMENT_NOT_ALLOWED, why)


def quota_exceeded(why: str = "") -> Refusal:
    """429 with the reason org_spend (PA-019, PA-051)."""
    return Refusal(Code.QUOTA_EXCEEDED, why, {"reason": ORG_SPEND})
