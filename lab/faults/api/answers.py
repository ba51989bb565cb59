"""What the fault API answers: statuses, bodies and content types, as Toxiproxy 2.12.0 has them."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import LabError, RemoteError
from lab.faults.go_json import GoJsonError, encode
from lab.faults.refusals import (
    BadToxic,
    ListenFailed,
    PopulateFailed,
    ProxyExists,
    ProxyNotFound,
    TooManyToxics,
    ToxicExists,
    ToxicNotFound,
)

JSON = "application/json"
VERSION_JSON = "application/json;charset=utf-8"
TEXT = "text/plain; charset=utf-8"
METRICS_TEXT = "text/plain; version=0.0.4; charset=utf-8"

BAD_BODY = "bad request body"
MISSING_FIELD = "missing required field"
BAD_TYPE = "invalid toxic type"
BAD_STREAM = "stream was invalid, can be either upstream or downstream"


@dataclass(frozen=True)
class Answer:
    """One response. Without a content type it has no body."""

    status: int
    body: bytes = b""
    content_type: str = ""


class ApiError(RemoteError):
    """A request that is answered with an error and its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    @property
    def members(self) -> dict[str, object]:
        """The members of its body."""
        return {"error": self.message, "status": self.status}


PAGE_NOT_FOUND = Answer(404, b"404 page not found\n", TEXT)
METHOD_NOT_ALLOWED = Answer(405)
BROWSER_REFUSED = Answer(403, b"User agent not allowed\n", TEXT)
NO_CONTENT = Answer(204)


def json_answer(value: object, status: int = 200) -> Answer:
    """A body in JSON."""
    return Answer(status, encode(value), JSON)


def error_answer(error: ApiError) -> Answer:
    """JSON that calls itself text, with a line's end: the Go server hands it to `http.Error`."""
    return Answer(error.status, encode(error.members) + b"\n", TEXT)


def bad_body(error: GoJsonError) -> ApiError:
    """A body that Go would not decode."""
    return ApiError(400, f"{BAD_BODY}: {error}")


def refused(error: LabError) -> ApiError:
    """What the engine refused, in the words of the Go server; for what crashes that one, in the engine's own."""
    match error:
        case ApiError():
            return error
        case GoJsonError():
            return bad_body(error)
        case ProxyExists():
            return ApiError(409, "proxy already exists")
        case ProxyNotFound():
            return ApiError(404, "proxy not found")
        case ToxicExists():
            return ApiError(409, "toxic already exists")
        case ToxicNotFound():
            return ApiError(404, "toxic not found")
        case BadToxic(what="type"):
            return ApiError(400, BAD_TYPE)
        case BadToxic(what="stream"):
            return ApiError(400, BAD_STREAM)
        case BadToxic() | TooManyToxics():
            return ApiError(400, f"{BAD_BODY}: {error}")
        case PopulateFailed():
            return refused(error.cause)
        case ListenFailed():
            return ApiError(500, f"listen tcp {error.listen}: {_listen_reason(error)}")
        case _:
            return ApiError(500, str(error))


def _listen_reason(error: ListenFailed) -> str:
    """As Go words it where the system refused: its errors begin in lower case."""
    if isinstance(error.__cause__, OSError):
        return f"bind: {error.reason[:1].lower()}{error.reason[1:]}"
    return error.reason
