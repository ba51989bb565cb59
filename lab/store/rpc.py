"""JSON-RPC 2.0 as MCP uses it: reading one message, writing results and errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.store.headers import Code

JsonObject = Mapping[str, Any]
RpcId = str | int

MAX_NAME = 128
"""Characters of a method's name or a tool's."""
MAX_DEPTH = 100
"""Objects and lists within each other; what is deeper could be read and not written again."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request, which has an answer."""

    id: RpcId
    method: str
    params: JsonObject

    @property
    def meta(self) -> JsonObject:
        """`params._meta`; empty where it is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def tool(self) -> str | None:
        """The tool that a tools/call names."""
        name = self.params.get("name")
        return name if self.method == "tools/call" and isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification, which has no answer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Returned:
    """A client's answer to a request, which this store never makes."""


class RpcFault(Exception):
    """What came is no message; `code` is the JSON-RPC error due."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read_untrusted(raw: bytes) -> Call | Notice | Returned:
    """The one message in a body. Anything else raises `RpcFault`, a batch too: no version here has them any more."""
    try:
        value: object = _decode(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RpcFault(Code.PARSE, "The body is no JSON.") from error
    if _too_deep(value):
        raise RpcFault(Code.PARSE, f"The body is nested more than {MAX_DEPTH} deep.")
    if isinstance(value, list):
        raise RpcFault(Code.INVALID_REQUEST, "Batches are not served: send each message in a POST of its own.")
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RpcFault(Code.INVALID_REQUEST, 'The body is no JSON-RPC message: an object with "jsonrpc": "2.0".')
    if "method" not in value and ("result" in value or "error" in value):
        return Returned()
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not 0 < len(method) <= MAX_NAME or not isinstance(params, dict):
        raise RpcFault(Code.INVALID_REQUEST, "`method` is a short text and `params` an object.")
    if "id" not in value:
        return Notice(method, params)
    id_ = value["id"]
    if isinstance(id_, bool) or not isinstance(id_, str | int) or len(str(id_)) > MAX_NAME:
        raise RpcFault(Code.INVALID_REQUEST, "`id` is a short text or an integer.")
    return Call(id_, method, params)


def result_message(id_: RpcId, result: JsonObject) -> dict[str, Any]:
    """The answer to a call."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def error_message(id_: RpcId | None, code: int, message: str, data: JsonObject | None = None) -> dict[str, Any]:
    """The answer to a call that failed; `id_` is None where the call's is unknown."""
    error = {"code": int(code), "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def notification(method: str, params: JsonObject) -> dict[str, Any]:
    """What is told without being asked."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: JsonObject) -> bytes:
    """As it stands on the wire: UTF-8, in one line."""
    # What UTF-8 cannot carry, half a surrogate pair, stays the escape that it came as.
    return compact(message).encode("utf-8", "backslashreplace")


compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as text, in one line."""


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode
