"""The store's words on the wire: header names, protocol versions, error codes, members of `_meta`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

# The protocol's own headers
SESSION = "Mcp-Session-Id"
PROTOCOL_VERSION = "MCP-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"
LAST_EVENT_ID = "Last-Event-ID"

# MCP-011: the versions with sessions, newest first
SESSION_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
STATELESS_VERSION = "2026-07-28"

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER = "io.modelcontextprotocol/serverInfo"


class Era(StrEnum):
    """Which wire a request speaks, by the names of the journal."""

    SESSIONS = "2025"
    STATELESS = "2026"


class Code(IntEnum):
    """JSON-RPC error codes. ACCESS is the store's own choice, out of reach of what client libraries and MCP use."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    ACCESS = -32010
    HEADER_MISMATCH = -32020
    UNSUPPORTED_VERSION = -32022


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers of a partner's server at the store (MCP-013): nobody has told their names, so they are settings."""

    grant: str = "X-Store-Context-Grant"
    turn: str = "X-Agent-Turn-Id"
    call: str = "X-Agent-Call-Id"
    conversation: str = "X-Agent-Conversation-Id"
