"""What a content request is answered with, before it is cut into chunks."""

from __future__ import annotations

from dataclasses import dataclass

JSON_TYPE = "application/json"
MAX_CONTENT_BYTES = 64 * 32768


@dataclass(frozen=True)
class Answer:
    """Status ok with a body, or another status with a wire code and no body (CH-007, CH-010)."""

    status: str
    content_type: str | None = None
    body: bytes = b""
    error_code: str | None = None


def found(body: bytes) -> Answer:
    """A JSON body (CHAT-050)."""
    return Answer("ok", JSON_TYPE, body)


def refused(status: str, error_code: str = "internal") -> Answer:
    """No content. CH-012: not_found and forbidden are statuses, their code is internal."""
    return Answer(status, error_code=error_code)
