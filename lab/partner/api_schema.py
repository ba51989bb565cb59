"""The partner API's OpenAPI document as data: its operations, and validators of its components.

Nothing is read before it is asked for. A route is named by its template below the base, as `PUT /memberships`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import yaml

from lab.errors import ContractError

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_BASE = "lab:partner-chat"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the contract says of one status of an operation.

    `media_types` in the order of the document; `schema` is the JSON pointer of the JSON body's schema, None without
    one. `headers` are those that must be there, by lower-case name, with the value they must have.
    """

    status: int
    media_types: tuple[str, ...]
    schema: str | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Operation:
    """One of the ten operations. `request` is the JSON pointer of its body's schema, None without a body."""

    id: str
    method: str
    path: str
    scope: str
    keyed: bool
    """Whether it takes an Idempotency-Key."""
    request: str | None
    answers: Mapping[int, Answer]

    @property
    def route(self) -> str:
        """Its name, such as `PUT /memberships`."""
        return f"{self.method} {self.path}"


class ApiSchema:
    """The document, parsed. Validators are compiled when they are first asked for, and kept."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations: Mapping[str, Operation] = {one.route: one for one in _operations(document)}
        self.events: Mapping[str, str] = _events(document)
        """The JSON pointer of an event's data schema, by the event's name."""
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def component(self, name: str) -> Mapping[str, Any]:
        """The schema `components/schemas/<name>`. Raises `ContractError` when there is none."""
        found: Mapping[str, Any] = _at(self.document, _component(name))
        return found

    def validator(self, name: str) -> jsonschema_rs.Draft202012Validator:
        """A validator of the component `name`. Raises `ContractError` when there is none."""
        return self.validator_at(_component(name))

    def validator_at(self, pointer: str) -> jsonschema_rs.Draft202012Validator:
        """A validator of the schema at a JSON pointer of the document, such as an `Answer` names."""
        if pointer not in self._validators:
            _at(self.document, pointer)
            try:
                self._validators[pointer] = jsonschema_rs.Draft202012Validator(
                    {"$ref": f"{_BASE}#{quote(pointer)}"}, retriever=self._retrieve
                )
            except (ValueError, jsonschema_rs.ReferencingError) as error:
                raise ContractError(f"the partner API's document: {pointer} cannot be used: {error}") from error
        return self._validators[pointer]

    def _retrieve(self, _uri: str) -> dict[str, Any]:
        # There is one document only.
        return self.document

    def request_validator(self, route: str) -> jsonschema_rs.Draft202012Validator | None:
        """A validator of the request's JSON body, None for a route without one."""
        pointer = self.operations[route].request
        return None if pointer is None else self.validator_at(pointer)


def default_document_path() -> Path:
    """The document that lies beside the package in the project's tree."""
    return Path(__file__).resolve().parents[2] / "contract" / "partner-chat" / "openapi.yaml"


@lru_cache(maxsize=4)
def api_schema(path: Path | None = None) -> ApiSchema:
    """Read the document once for each path. One that cannot be used raises `ContractError`, which names the file."""
    place = path or default_document_path()
    try:
        document = yaml.load(place.read_text("utf-8"), Loader=_Loader)  # noqa: S506  a safe loader, the C one if there
    except OSError as error:
        raise ContractError(f"{place}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ContractError(f"{place}: not YAML: {error}") from error
    try:
        return ApiSchema(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ContractError(f"{place}: not the OpenAPI document that is due: {error!r}") from error


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _component(name: str) -> str:
    return f"/components/schemas/{name}"


def _at(document: Mapping[str, Any], pointer: str) -> Any:
    node: Any = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or name not in node:
            raise ContractError(f"the partner API's document has nothing at {pointer}")
        node = node[name]
    return node


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method in (method for method in _METHODS if method in item):
            here, operation = f"/paths/{_step(path)}/{method}", item[method]
            parameters = [_resolved(document, one) for one in operation.get("parameters", ())]
            yield Operation(
                operation["operationId"],
                method.upper(),
                path,
                operation["x-required-scope"],
                any(one["name"] == "Idempotency-Key" for one in parameters),
                _body_schema(operation.get("requestBody"), f"{here}/requestBody"),
                {int(status): _answer(document, here, status) for status in operation["responses"]},
            )


def _body_schema(body: Mapping[str, Any] | None, here: str) -> str | None:
    if body is None or JSON not in body["content"]:
        return None
    return f"{here}/content/{_step(JSON)}/schema"


def _answer(document: Mapping[str, Any], here: str, status: str) -> Answer:
    place = f"{here}/responses/{status}"
    found = _at(document, place)
    if "$ref" in found:
        place = found["$ref"].removeprefix("#")
        found = _at(document, place)
    content = found["content"]
    pointer = f"{place}/content/{_step(JSON)}/schema" if "schema" in content.get(JSON, {}) else None
    headers = {name.lower(): one["schema"]["const"] for name, one in found.get("headers", {}).items()}
    return Answer(int(status), tuple(content), pointer, headers)


def _events(document: Mapping[str, Any]) -> Mapping[str, str]:
    answers = (
        answer
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, Mapping)
        for answer in operation["responses"].values()
    )
    streams = [answer["content"][EVENT_STREAM] for answer in answers if EVENT_STREAM in answer.get("content", ())]
    return {name: one["$ref"].removeprefix("#") for stream in streams for name, one in stream["x-events"].items()}


def _resolved(document: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _at(document, node["$ref"].removeprefix("#")) if "$ref" in node else node
    return found
