"""The wire of 2026: every request carries its version, and headers that say what is in the body."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from lab.store.exchange import HttpRequest
from lab.store.headers import (
    META_CAPABILITIES,
    META_SERVER,
    META_VERSION,
    METHOD,
    NAME,
    PROTOCOL_VERSION,
    STATELESS_VERSION,
    Code,
)
from lab.store.refusals import Refused, refuse
from lab.store.rpc import Call, JsonObject

LIST_TTL_MS = 60_000
# The same for everybody who bears the credential.
LIST_SCOPE = "private"

_ENCODED_PREFIX, _ENCODED_SUFFIX = "=?base64?", "?="
_NAMED = ("tools/call", "resources/read", "prompts/get")
_CACHED = ("server/discover", "tools/list")


def check(call: Call, request: HttpRequest) -> None:
    """Raises `Refused` for a request whose `_meta` or headers are not what the version asks for."""
    version = call.meta.get(META_VERSION)
    header = request.one(PROTOCOL_VERSION)
    if header is None:
        raise _mismatch(call, f"{PROTOCOL_VERSION} is missing, or comes more than once.")
    if not isinstance(version, str) or not isinstance(call.meta.get(META_CAPABILITIES), dict):
        message = f"`params._meta` needs {META_VERSION}, a text, and {META_CAPABILITIES}, an object."
        raise refuse(400, Code.INVALID_PARAMS, message, call.id)
    if header != version:
        raise _mismatch(call, f"{PROTOCOL_VERSION} is not the version of `params._meta`.")
    if request.one(METHOD) != call.method:
        raise _mismatch(call, f"{METHOD} is not the body's `method`.")
    if call.method in _NAMED:
        named = call.params.get("uri" if call.method == "resources/read" else "name")
        if _decoded(request.one(NAME)) != named:
            raise _mismatch(call, f"{NAME} is not what the body names.")
    if version != STATELESS_VERSION:
        # A version can be any text; one that is none is not sent back.
        data = {"supported": [STATELESS_VERSION], "requested": version if len(version) <= 32 else ""}
        raise refuse(400, Code.UNSUPPORTED_VERSION, "Unsupported protocol version.", call.id, data=data)


def discovery() -> dict[str, Any]:
    """The result of server/discover."""
    return {"supportedVersions": [STATELESS_VERSION], "capabilities": {"tools": {"listChanged": False}}}


def complete(method: str, result: JsonObject, server: JsonObject) -> dict[str, Any]:
    """A result with the members that this version adds to every one, and to lists."""
    cached = {"ttlMs": LIST_TTL_MS, "cacheScope": LIST_SCOPE} if method in _CACHED else {}
    return {**result, **cached, "resultType": "complete", "_meta": {META_SERVER: server}}


def status_of(code: int) -> int:
    """The HTTP status of a JSON-RPC error."""
    if code == Code.METHOD_NOT_FOUND:
        return 404
    return 400 if code in (Code.INVALID_PARAMS, Code.INVALID_REQUEST, Code.PARSE) else 200


def _mismatch(call: Call, message: str) -> Refused:
    return refuse(400, Code.HEADER_MISMATCH, f"Header mismatch: {message}", call.id)


def _decoded(value: str | None) -> str | None:
    """A header's value; one that could not stand in a header comes as Base64 of its UTF-8."""
    if value is None or not (value.startswith(_ENCODED_PREFIX) and value.endswith(_ENCODED_SUFFIX)):
        return value
    try:
        inner = value[len(_ENCODED_PREFIX) : -len(_ENCODED_SUFFIX)]
        return base64.b64decode(inner, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
