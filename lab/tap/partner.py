"""The witness of the partner API: judges the answers that a partner's server gets, from their raw bytes.

Nothing of the driver's reading stands behind it, so that a defect there cannot agree with itself here. A verdict names
places and words of the contract alone, never content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import jsonschema_rs

from lab.journal.partner_events import fingerprint
from lab.journal.redaction import hide
from lab.partner.api_schema import EVENT_STREAM, JSON, Answer, ApiSchema, Operation
from lab.tap.partner_facts import media_type, of_data, of_error, of_event
from lab.tap.secrets import SecretSearch
from lab.tap.text import NoJson, strict_json

MOST_FAULTS = 8
"""A verdict names at most so many faults of one value's form."""

LARGEST_BODY = 16 * 1024 * 1024
"""A longer body is not parsed."""

GRANT = "grant."
"""What the names of minted grants begin with; their fingerprint follows."""

LEAK = "leak:"
"""What a secret's name stands behind, where secrets are told among the misses."""

FILE_FACTS = {
    "cache-control": "cacheControl",
    "x-content-type-options": "contentTypeOptions",
    "content-security-policy": "contentSecurityPolicy",
}
"""The protective headers of a file by the names that they have in a journal."""

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_SHORT = re.compile(r"[!-~]{0,300}", re.ASCII)
_HEADER_VALUE = re.compile(r"[A-Za-z0-9 ,;:='_-]{1,128}", re.ASCII)
_EVENTS_ROUTE = "GET /conversations/{conversationId}/runs/{runId}/events"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer or an event is worth. `facts` may stand in a journal, content only as digests."""

    code: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    misses: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """What one event of a stream says and is worth, read from its bytes."""

    event_id: str
    sequence: int | None
    name: str
    type: str | None
    sha256: str
    facts: Mapping[str, Any]
    misses: tuple[str, ...]
    leaks: tuple[str, ...]


class PartnerTap:
    """Judges by the contract's document. Pure but for what it is told to look for.

    `secrets` are what no answer may hold: keys, grants, credentials, and canaries of what stays inside. `inputs` are
    what the caller itself sent, which an answer may hold and an error must not (PRIV-021). Both map names to values.
    """

    def __init__(self, schema: ApiSchema, secrets: Mapping[str, str], inputs: Mapping[str, str] | None = None) -> None:
        self._schema = schema
        self._secrets = SecretSearch(secrets)
        self._inputs = SecretSearch(inputs or {})
        self._member_names = frozenset(_member_names(schema.document["components"]["schemas"]))

    def know(self, name: str, value: str) -> None:
        """Look for a further secret from now on, such as a grant that was minted."""
        self._secrets.know(name, value)

    def answer(self, route: str, status: int, headers: Mapping[str, str], body: bytes) -> Verdict:
        """Judge a whole answer of the API. Header names in any case. Never raises, whatever came."""
        operation, named = self._schema.operations[route], _lower(headers)
        leaks = [*self._secrets.names_in(body), *self._in_headers(named)]
        due = operation.answers.get(status)
        misses = [] if "set-cookie" not in named else ["header:set-cookie"]
        code: str | None = None
        facts: Mapping[str, Any] = {}
        if due is None:
            misses.append(f"status:{status}")
        else:
            misses += _head(due, named)
        if 200 <= status < 300 and not _wrapped(operation, status):
            facts = _file(named, body)
        else:
            code, facts, faults = self._json_body(due, body)
            misses += faults
        if status >= 400:
            leaks += self._inputs.names_in(body)
        return Verdict(code, self._clean(facts), tuple(misses), tuple(dict.fromkeys(leaks)))

    def issuer(self, status: int, headers: Mapping[str, str], body: bytes) -> Verdict:
        """Judge an answer of the grant issuer, whose own contract is small: `{grant, expiresAt}` or `{error}`.

        A grant that it holds is looked for from now on.
        """
        value, misses = _json(body)
        members = value if isinstance(value, dict) else {}
        # The grant itself is no leak here, even one that was minted before.
        found = (*self._secrets.names_in(body), *self._in_headers(_lower(headers)))
        leaks = [name for name in found if not name.startswith(GRANT)]
        error = members.get("error")
        code = _code(error)
        if status >= 400 and code is None:
            misses = [*misses, "error"]
        data = members.get("data")
        inner: dict[str, Any] = data if "grant" not in members and isinstance(data, dict) else members
        facts = of_error(error) if status >= 400 else of_data(inner)
        if isinstance(inner.get("grant"), str):
            self.know(f"{GRANT}{fingerprint(inner['grant'])}", inner["grant"])
        return Verdict(code, self._clean(facts), tuple(misses), tuple(dict.fromkeys(leaks)))

    def stream_head(self, status: int, headers: Mapping[str, str]) -> tuple[str, ...]:
        """Where the head of an opened stream misses the contract; `leak:` and a name for each secret in it."""
        named = _lower(headers)
        misses = [] if "set-cookie" not in named else ["header:set-cookie"]
        due = self._schema.operations[_EVENTS_ROUTE].answers.get(status)
        misses += [f"status:{status}"] if due is None else _head(due, named)
        return (*misses, *(f"{LEAK}{name}" for name in dict.fromkeys(self._in_headers(named))))

    def stream_facts(self, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """What a journal keeps of the head of a stream: its media type and its caching, content only as digests."""
        named = _lower(headers)
        facts = {}
        if "content-type" in named:
            facts["contentType"] = media_type(named["content-type"])
        if (caching := named.get("cache-control")) is not None and _HEADER_VALUE.fullmatch(caching):
            facts["cacheControl"] = caching
        return self._clean(facts)

    def event(self, run_id: str, raw: bytes) -> EventVerdict:
        """Judge one event of a run's stream, given its lines joined by LF, without the empty one. Never raises."""
        fields = _fields(raw)
        event_id = _last(fields, b"id")
        name = _last(fields, b"event") or ""
        line = b"\n".join(value for field_name, value in fields if field_name == b"data")
        value, misses = _json(line)
        type_name = value.get("type") if isinstance(value, dict) else None
        sequence = _sequence(run_id, event_id)
        if sequence is None:
            misses = [*misses, "event-id"]
        if not any(field_name == b"event" for field_name, _ in fields):
            misses = [*misses, "event-name:absent"]
        elif name != type_name:
            misses = [*misses, "event-name:other-than-type"]
        if isinstance(type_name, str) and type_name in self._schema.events:
            misses = [*misses, *self._schema_faults(self._schema.events[type_name], value)]
        elif isinstance(value, dict):
            misses = [*misses, "event-type:unknown"]
        leaks = self._secrets.names_in(raw)
        return EventVerdict(
            _short(self._safe(event_id or "")),
            sequence,
            _short(self._safe(name)),
            _short(self._safe(type_name)) if isinstance(type_name, str) else None,
            hashlib.sha256(line).hexdigest(),
            self._clean(of_event(value)),
            tuple(misses),
            leaks,
        )

    def text(self, text: str) -> tuple[str, ...]:
        """The names of what stands in the text that a run's events add up to: a secret may come in pieces."""
        return self._secrets.names_in(text.encode("utf-8", "surrogatepass"))

    def rest(self, raw: bytes) -> tuple[str, ...]:
        """The names of what stands in the bytes behind the last whole event of a stream."""
        return self._secrets.names_in(raw)

    def _json_body(self, due: Answer | None, body: bytes) -> tuple[str | None, Mapping[str, Any], list[str]]:
        value, misses = _json(body)
        if misses:
            return None, {}, misses
        if due is not None and due.schema is not None:
            misses = self._schema_faults(due.schema, value)
        members = value if isinstance(value, dict) else {}
        if members.get("success") is True:
            return None, of_data(members.get("data")), misses
        return _code(members.get("error")), of_error(members.get("error")), misses

    def _schema_faults(self, pointer: str, value: Any) -> list[str]:
        try:
            validator = self._schema.validator_at(pointer)
            if validator.is_valid(value):
                return []
            errors = list(islice(validator.iter_errors(value), MOST_FAULTS))
        except (ValueError, OverflowError, TypeError, RecursionError) as fault:
            return [f"schema:unjudgeable-{type(fault).__name__}"]
        return list(dict.fromkeys(f"schema:{_keyword(error)} at {self._path(error)}" for error in errors))

    def _path(self, error: jsonschema_rs.ValidationError) -> str:
        """Where the fault is, by names of the contract alone: any other may be content."""
        steps = error.instance_path[:12]
        return ".".join("[]" if isinstance(step, int) else self._known(str(step)) for step in steps) or "."

    def _known(self, name: str) -> str:
        return name if name in self._member_names else "*"

    def _in_headers(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        joined = "\n".join(f"{name}: {value}" for name, value in headers.items())
        return self._secrets.names_in(joined.encode("utf-8", "surrogateescape"))

    def _clean(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """A secret in the place of an id must not get into the journal by it."""
        cleaned: Mapping[str, Any] = hide(dict(facts), self._unsafe)
        return cleaned

    def _unsafe(self, text: str) -> bool:
        return self._secrets.hit(text) or self._inputs.hit(text)

    def _safe(self, text: str) -> str:
        return "*" if self._unsafe(text) else text


def _member_names(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = list(node["properties"]) if isinstance(node.get("properties"), dict) else []
        return own + [name for member in node.values() for name in _member_names(member)]
    return [name for item in node for name in _member_names(item)] if isinstance(node, list) else []


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _wrapped(operation: Operation, status: int) -> bool:
    """Whether a success of this status has its data in the envelope: a file and a stream have not."""
    due = operation.answers.get(status)
    return due is None or due.schema is not None


def _head(due: Answer, headers: Mapping[str, str]) -> list[str]:
    misses = []
    media, _, parameters = headers.get("content-type", "").partition(";")
    if media.strip().lower() not in due.media_types:
        misses.append("content-type")
    elif JSON in due.media_types or EVENT_STREAM in due.media_types:
        charset = parameters.strip().lower().replace('"', "")
        if charset not in ("", "charset=utf-8"):
            misses.append("content-type:charset")
    misses += [f"header:{name}" for name, value in due.headers.items() if headers.get(name) != value]
    return misses


def _file(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    kept = {
        word: headers[name]
        for name, word in FILE_FACTS.items()
        if name in headers and _HEADER_VALUE.fullmatch(headers[name])
    }
    kind = media_type(headers.get("content-type"))
    return {"contentType": kind, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **kept}


def _json(raw: bytes) -> tuple[Any, list[str]]:
    try:
        return strict_json(raw.decode("utf-8"), longest=LARGEST_BODY), []
    except UnicodeDecodeError:
        return None, ["not-json: not UTF-8"]
    except NoJson as reason:
        return None, [f"not-json: {reason}"]


def _code(error: Any) -> str | None:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def _keyword(error: jsonschema_rs.ValidationError) -> str:
    words = [step for step in error.schema_path if isinstance(step, str)]
    return words[-1] if words else "false"


def _fields(raw: bytes) -> list[tuple[bytes, bytes]]:
    """The fields of an event's lines, comments left out."""
    fields = []
    for line in raw.split(b"\n"):
        name, colon, value = line.partition(b":")
        if name:
            fields.append((name, value[1:] if colon and value[:1] == b" " else value))
    return fields


def _last(fields: list[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    return next((value.decode("utf-8", "replace") for name, value in reversed(fields) if name == wanted), None)


def _sequence(run_id: str, event_id: str | None) -> int | None:
    """The number of an id that is this run's (SSE-003)."""
    prefix, colon, number = (event_id or "").rpartition(":")
    if not colon or prefix != run_id or _NUMBER.fullmatch(number) is None:
        return None
    return int(number)


def _short(text: str) -> str:
    """An id or a name as a journal takes it: a longer text, or one of another form, may be content."""
    return text if _SHORT.fullmatch(text) else "*"
