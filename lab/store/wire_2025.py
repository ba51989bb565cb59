"""The wire of 2025: a handshake, sessions, and streams that can be taken up again (MCP-011, MCP-012)."""

from __future__ import annotations

from typing import Any

from lab.journal.partner_events import fingerprint
from lab.store.access import Reason
from lab.store.exchange import HttpRequest, Seen
from lab.store.headers import (
    PROTOCOL_VERSION,
    SESSION,
    SESSION_VERSIONS,
    Code,
)
from lab.store.refusals import refuse
from lab.store.rpc import Call, JsonObject, RpcId
from lab.store.sessions import Session, Sessions


def admit(request: HttpRequest, sessions: Sessions, seen: Seen, id_: RpcId | None = None) -> Session:
    """The session that a request belongs to; raises `Refused` for one without."""
    named = request.all(SESSION)
    if len(named) != 1:
        raise refuse(400, Code.INVALID_REQUEST, f"{SESSION} is missing: initialize first.", id_, reason=Reason.SESSION)
    session = sessions.find(named[0])
    seen.session = fingerprint(named[0])
    if session is None:
        raise refuse(404, Code.INVALID_REQUEST, "There is no such session.", id_, reason=Reason.SESSION)
    check_version(request, seen, id_)
    return session


def check_version(request: HttpRequest, seen: Seen, id_: RpcId | None = None) -> None:
    """A version that is named must be one of the served ones; the oldest of them has no header for it."""
    versions = request.all(PROTOCOL_VERSION)
    if versions and (len(versions) > 1 or versions[0] not in SESSION_VERSIONS):
        raise refuse(400, Code.INVALID_REQUEST, f"Unsupported {PROTOCOL_VERSION}: {_served()} are served.", id_)
    if versions:
        seen.facts["version"] = versions[0]


def initialize(call: Call, sessions: Sessions, server: JsonObject, seen: Seen) -> tuple[Session, dict[str, Any]]:
    """Open a session; raises `Refused` for parameters that are none."""
    wanted = call.params.get("protocolVersion")
    if not isinstance(wanted, str) or not all(
        isinstance(call.params.get(name), dict) for name in ("capabilities", "clientInfo")
    ):
        message = "`protocolVersion` is a text, `capabilities` and `clientInfo` are objects."
        raise refuse(200, Code.INVALID_PARAMS, message, call.id)
    # MCP-011: an unknown version is answered with the newest
    version = wanted if wanted in SESSION_VERSIONS else SESSION_VERSIONS[0]
    session = sessions.open(version)
    seen.session = fingerprint(session.session_id)
    seen.facts["version"] = version
    result = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": False}}, "serverInfo": server}
    return session, result


def _served() -> str:
    return ", ".join(SESSION_VERSIONS)
