"""Answers that say no, before or in place of a result."""

from __future__ import annotations

from lab.store.access import Reason
from lab.store.answers import Fields, Reply
from lab.store.headers import Code
from lab.store.rpc import JsonObject, RpcId, error_message
from lab.store.settings import Refusing
from lab.store.tools import failed

_DENIALS = {
    Reason.GRANT_MISSING: "A call needs a grant.",
    Reason.GRANT_UNKNOWN: "The grant is none of this store's.",
    Reason.GRANT_EXPIRED: "The grant has expired.",
    Reason.GRANT_REVOKED: "The grant was revoked.",
    Reason.GRANT_DESTINATION: "The grant is for another destination.",
    Reason.GRANT_CONVERSATION: "The grant is for another conversation.",
    Reason.GRANT_ORGANIZATION: "The grant is for another organization.",
    Reason.GRANT_ENVIRONMENT: "The grant is for another environment.",
    Reason.SHAPE: "A call needs one turn id and one call id in its headers.",
}


class Refused(Exception):
    """The request is answered with `reply` and nothing else happens. `reason` is the journal's word for it."""

    def __init__(self, reply: Reply, reason: Reason | None = Reason.SHAPE) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.reason = reason


def refuse(
    status: int,
    code: int,
    message: str,
    id_: RpcId | None = None,
    *,
    reason: Reason | None = Reason.SHAPE,
    data: JsonObject | None = None,
    headers: Fields = (),
) -> Refused:
    """A JSON-RPC error at this HTTP status."""
    return Refused(Reply(status, error_message(id_, code, message, data), headers), reason)


def denial(style: Refusing, reason: Reason, text: str | None = None) -> tuple[int, JsonObject]:
    """A tools/call that may not run: the HTTP status, and the `error` or `result` member of the answer (MCP-014)."""
    said = text or _DENIALS[reason]
    if style is Refusing.RESULT:
        return 200, {"result": failed(said).to_json()}
    status = 200 if style is Refusing.ERROR else 400 if reason is Reason.SHAPE else 403
    return status, {"error": {"code": int(Code.ACCESS), "message": said}}
