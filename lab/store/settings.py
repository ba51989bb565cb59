"""What of a store is chosen by whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lab.store.headers import Era, HeaderNames

# CX-034: what a grant and a binding name; never the loopback URL
CANONICAL_DESTINATION = "https://93.184.216.34/mcp"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Form(StrEnum):
    """How a request is answered (MCP-010)."""

    JSON = "json"
    SSE = "sse"


class Refusing(StrEnum):
    """How a tools/call without a good grant is refused (MCP-014): nobody has told, so it is selectable."""

    HTTP = "http"
    """HTTP 403 (400 for missing turn or call ids) with a JSON-RPC error."""
    ERROR = "error"
    """A JSON-RPC error in an HTTP 200."""
    RESULT = "result"
    """A tool result with isError."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`destination` is compared as an exact string.

    Of a fixture that has one organization and environment name both, so that a grant of another is refused.
    `eras` are the wires that are spoken, `own_streams` whether a GET opens a stream (405 otherwise), `hosts` the host
    names by which the store may be called, whatever the port.
    """

    destination: str = CANONICAL_DESTINATION
    organization_id: str | None = None
    environment: str | None = None
    answers: Form = Form.JSON
    refusing: Refusing = Refusing.HTTP
    eras: tuple[Era, ...] = (Era.SESSIONS, Era.STATELESS)
    own_streams: bool = False
    headers: HeaderNames = field(default_factory=HeaderNames)
    hosts: tuple[str, ...] = LOOPBACK_HOSTS
