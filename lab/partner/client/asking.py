"""From what the driver wants to a request: its bytes, and what a journal may hold of it. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from lab.tap.partner_facts import of_sent

JSON_TYPE: Final = "application/json"


class _Absent:
    """Marks a member that is to be left out."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Departure:
    """What a step does otherwise than a right client does, on purpose; nothing by default.

    `members` replace those of the body or query, `ABSENT` leaves one out. `body` replaces the whole body. `key` is the
    secret that is sent as the bearer, `ABSENT` for none; likewise `idempotency_key`. `headers` come on top (CX-018).
    """

    members: Mapping[str, Any] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    content_type: str | None = None
    key: str | _Absent | None = field(default=None, repr=False)
    idempotency_key: str | _Absent | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, the same at each try. `sent` is what a journal may hold of it; `input` its hash (MSG-029)."""

    route: str
    url: str
    key: str | None = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    content_type: str | None = None
    idempotency_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sent: Mapping[str, Any] = field(default_factory=dict)
    input: str = ""
    conversation_id: str | None = None
    run_id: str | None = None
    repeat: bool = True
    """Whether it may be sent again by itself when no answer came."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Further facts: poll, page, byOrder."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Site:
    """Where routes lie, and the key that opens them."""

    base: str
    key: str = field(repr=False)

    def ask(
        self,
        route: str,
        ids: Mapping[str, str],
        *,
        query: Mapping[str, Any] | None = None,
        members: Mapping[str, Any] | None = None,
        upload: Upload | None = None,
        idempotency_key: str | None = None,
        departure: Departure | None = None,
        repeat: bool = True,
        marks: Mapping[str, Any] | None = None,
    ) -> Ask:
        """The request of one route; at most one of `query`, `members` (a JSON body) and `upload` is given."""
        other = departure or Departure()
        told = _altered(query or members or (upload.fields if upload else {}), other.members)
        path = route.partition(" ")[2]
        for name, value in ids.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        text = f"?{urlencode({name: str(value) for name, value in told.items()})}" if query is not None and told else ""
        body, content_type = _body(told, members is not None, upload)
        sent = dict(of_sent(told))
        if upload is not None:
            digest = hashlib.sha256(upload.content).hexdigest()
            sent |= of_sent(
                {
                    "mimeType": upload.mime_type,
                    "bytes": len(upload.content),
                    "sha256": digest,
                    "name": re.split(r"[/\\]", upload.name)[-1],
                }
            )
        facts = dict(marks or {})
        if departure is not None:
            facts["byOrder"] = True
        return Ask(
            route,
            f"{self.base}{path}{text}",
            _chosen(other.key, self.key),
            body if other.body is None else other.body,
            other.content_type or content_type,
            _chosen(other.idempotency_key, idempotency_key),
            other.headers,
            sent,
            input_hash(told) if members is not None else "",
            ids.get("conversationId"),
            ids.get("runId"),
            repeat,
            facts,
        )


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to send, with the form's other fields."""

    name: str = field(repr=False)
    mime_type: str | None
    content: bytes = field(repr=False)
    fields: Mapping[str, str] = field(default_factory=dict)


def input_hash(members: Mapping[str, Any]) -> str:
    """SHA-256 of what an input says: members sorted, null and empty ones left out (MSG-029)."""
    told = {name: value for name, value in members.items() if value not in (None, "", [], ())}
    return hashlib.sha256(_json(told, sort=True)).hexdigest()


def _altered(members: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**members, **other}.items() if value is not ABSENT}


def _chosen(other: str | _Absent | None, usual: str | None) -> str | None:
    if other is None:
        return usual
    return other if isinstance(other, str) else None


def _body(told: Mapping[str, Any], as_json: bool, upload: Upload | None) -> tuple[bytes | None, str | None]:
    if as_json:
        return _json(told), JSON_TYPE
    if upload is not None:
        return _multipart(upload, told)
    return None, None


def _json(value: Mapping[str, Any], sort: bool = False) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)
    return text.encode("utf-8", "surrogatepass")


def _multipart(upload: Upload, fields: Mapping[str, Any]) -> tuple[bytes, str]:
    """A form whose bytes depend on its content alone, so that a repeat is the same to the byte."""
    boundary = f"lab-{hashlib.sha256(upload.content).hexdigest()[:32]}"
    edge = f"--{boundary}\r\n".encode()
    parts = [
        edge + f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode("utf-8", "surrogatepass")
        for name, value in fields.items()
    ]
    head = f'Content-Disposition: form-data; name="file"; filename="{_quoted(upload.name)}"\r\n'
    if upload.mime_type is not None:
        head += f"Content-Type: {upload.mime_type}\r\n"
    parts.append(edge + head.encode("utf-8", "surrogatepass") + b"\r\n" + upload.content + b"\r\n")
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    """A file's name as browsers write it in a form."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
