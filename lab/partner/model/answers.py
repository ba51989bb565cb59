"""What comes in and what goes out of the model's core, free of any HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.partner.model.refusals import Refusal, invalid


@dataclass(frozen=True, slots=True)
class JsonBody:
    """The body of a request as it came. `surplus`: it was longer than the bound, and the rest was drained (PA-050)."""

    content: bytes = b""
    content_types: tuple[str, ...] = ()
    surplus: bool = False


@dataclass(frozen=True, slots=True)
class FilePart:
    """The file of an upload. `content` holds no more than the limit; `size` counts what came up to one byte over it."""

    content: bytes = field(repr=False)
    size: int
    content_type: str | None
    filename: str | None


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart body (AT-001). `fault` says why it is none that counts; then the rest is not to be looked at."""

    file: FilePart | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request of one of the ten routes. Names of `headers` are in lower case; values are kept one by one."""

    path: Mapping[str, str]
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    body: JsonBody | Upload = field(default_factory=JsonBody)

    def header(self, name: str) -> tuple[str, ...]:
        """All values that came for a header, in order."""
        return self.headers.get(name.lower(), ())

    def parameter(self, name: str) -> str | None:
        """A query parameter, None when it is absent; one that comes twice is refused 400."""
        given = self.query.get(name, ())
        if len(given) > 1:
            raise invalid(f"{name} comes twice")
        return given[0] if given else None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: JSON for a mapping, or bytes with their Content-Type in `headers`. What follows is for the journal."""

    status: int
    body: Mapping[str, object] | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None
    conversation_id: str | None = None
    run_id: str | None = None
    replay: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)
    """Ids and numbers under the contract's names, digests of content; no secret and no content."""


def success(
    status: int,
    data: object,
    *,
    conversation_id: str | None = None,
    run_id: str | None = None,
    replay: bool = False,
    facts: Mapping[str, object] | None = None,
) -> Answer:
    """The envelope of a success (PA-007)."""
    return Answer(
        status,
        {"success": True, "data": data},
        conversation_id=conversation_id,
        run_id=run_id,
        replay=replay,
        facts={} if facts is None else facts,
    )


def refused(refusal: Refusal) -> Answer:
    """The envelope of a refusal (PA-035)."""
    facts = {"why": refusal.why} if refusal.why else {}
    return Answer(refusal.status, refusal.body(), code=str(refusal.code), facts=facts)
