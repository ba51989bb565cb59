"""What a store's MCP endpoint is sent and what it answers, as values: bodies, headers, server-sent events, results.

Two eras are spoken: 2025-11-25 with sessions, and 2026-07-28, in which each request stands alone. Whatever an answer
lacks raises `McpFault` with a plain word; no text of the store's ever stands in one (MCP-009).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lab.partner.model.words import CALL_HEADER, CONVERSATION_HEADER, GRANT_HEADER, TURN_HEADER

CLIENT_INFO: Final = {"name": "partner-model", "version": "1"}
MAX_PAGES: Final = 20
MAX_TOOLS: Final = 1000
MAX_SESSION_CHARACTERS: Final = 512
SESSION_HEADER: Final = "Mcp-Session-Id"
RESUME_HEADER: Final = "Last-Event-ID"

_META: Final = "io.modelcontextprotocol/"
# What may be called, and stand in a journal.
_TOOL = re.compile(r"[A-Za-z0-9_./$-]{1,128}", re.ASCII)
_SESSION = re.compile(r"[\x21-\x7e]+", re.ASCII)


class Era(StrEnum):
    """Which wire is spoken: settings' `mcp_era`."""

    SESSIONS = "2025"
    STATELESS = "2026"


NEWEST: Final = {Era.SESSIONS: "2025-11-25", Era.STATELESS: "2026-07-28"}
SPOKEN: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""The versions with sessions that an answer to `initialize` may choose."""


class McpFault(Exception):
    """An exchange with the store failed. `kind`: timeout, unreachable, cut, too-large, not-json, shape, rpc, version,
    session, or `status-` and the HTTP status."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class CallContext:
    """What the partner API tells the store about a call, by header (MCP-013, CX-018)."""

    turn_id: str
    call_id: str
    conversation_id: str
    grant: str

    def __repr__(self) -> str:
        return f"CallContext(turn_id={self.turn_id!r}, call_id={self.call_id!r})"

    def headers(self) -> dict[str, str]:
        """The headers by name."""
        return {
            GRANT_HEADER: self.grant,
            TURN_HEADER: self.turn_id,
            CALL_HEADER: self.call_id,
            CONVERSATION_HEADER: self.conversation_id,
        }


def body(era: Era, number: int | None, method: str, params: Mapping[str, object]) -> bytes:
    """A request, or a notification when `number` is None."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        message["id"] = number
    if era is Era.STATELESS:
        meta = {
            f"{_META}protocolVersion": NEWEST[era],
            f"{_META}clientCapabilities": {},
            f"{_META}clientInfo": CLIENT_INFO,
        }
        params = {**params, "_meta": meta}
    if params:
        message["params"] = params
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def headers_of(era: Era, method: str, name: str | None, session: str | None, version: str | None) -> dict[str, str]:
    """The headers of a POST that are MCP's own; `name` is the tool of a call."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        # A bound on the bytes is a bound on the text only as long as nothing is packed.
        "Accept-Encoding": "identity",
    }
    if era is Era.STATELESS:
        headers.update({"MCP-Protocol-Version": NEWEST[era], "Mcp-Method": method})
        if name is not None:
            headers["Mcp-Name"] = name
        return headers
    if session is not None:
        headers[SESSION_HEADER] = session
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    return headers


def message_untrusted(raw: bytes | str) -> object:
    """`raw` as JSON."""
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise McpFault("not-json") from None
    return value


def result_untrusted(message: object, number: int) -> Mapping[str, object]:
    """The result in the answer to request `number`."""
    if not answers(message, number) or not isinstance(message, dict):
        raise McpFault("shape")
    if "error" in message:
        raise McpFault("rpc")
    result = message.get("result")
    if not isinstance(result, dict):
        raise McpFault("shape")
    return result


def answers(message: object, number: int) -> bool:
    """Whether `message` is the answer to request `number`; a store may say other things on a stream."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "method" in message:
        return False
    given = message.get("id")
    return isinstance(given, int) and not isinstance(given, bool) and given == number


def version_untrusted(era: Era, result: Mapping[str, object]) -> str:
    """The version that an answer to `initialize` or `server/discover` settles."""
    if era is Era.SESSIONS:
        version = result.get("protocolVersion")
        if not isinstance(version, str) or version not in SPOKEN:
            raise McpFault("version")
        return version
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or NEWEST[era] not in versions:
        raise McpFault("version")
    return NEWEST[era]


def session_untrusted(header: str | None) -> str | None:
    """The session id that came with the answer to `initialize`; a store may have none."""
    if header is None:
        return None
    if len(header) > MAX_SESSION_CHARACTERS or not _SESSION.fullmatch(header):
        raise McpFault("session")
    return header


def tool_names_untrusted(result: Mapping[str, object]) -> tuple[tuple[str, ...], str | None]:
    """The names on one page of tools/list, and the cursor of the next page."""
    tools, cursor = result.get("tools"), result.get("nextCursor")
    if not isinstance(tools, list) or not (cursor is None or isinstance(cursor, str)):
        raise McpFault("shape")
    named = (tool.get("name") if isinstance(tool, dict) else None for tool in tools)
    names = tuple(name for name in named if isinstance(name, str) and _TOOL.fullmatch(name))
    if len(tools) > MAX_TOOLS or len(names) != len(tools):
        raise McpFault("shape")
    return names, cursor


def succeeded_untrusted(era: Era, result: Mapping[str, object]) -> bool:
    """Whether the result of a tools/call says that the tool did what it was asked."""
    if era is Era.STATELESS and result.get("resultType", "complete") != "complete":
        raise McpFault("shape")
    is_error = result.get("isError", False)
    if not isinstance(is_error, bool) or not isinstance(result.get("content"), list):
        raise McpFault("shape")
    return not is_error


class SseReader:
    """Server-sent events out of bytes, however they are cut. `last_id` is where a resume continues."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of each event that `chunk` completes; one without data moves `last_id` alone."""
        *lines, self._rest = re.split(rb"\r\n|\n|\r(?!\Z)", self._rest + chunk)
        for line in lines:
            if line:
                self._field(line.decode("utf-8", "replace"))
                continue
            data, self._data = self._data, []
            if data and (text := "\n".join(data)):
                yield text

    def restart(self) -> None:
        """Forget an event that a cut left half; the next bytes are another answer's."""
        self._rest, self._data = b"", []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id" and value and "\x00" not in value:
            self.last_id = value
