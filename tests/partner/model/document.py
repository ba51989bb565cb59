"""Every answer that a test of the model sees is compared with the contract's document."""

from __future__ import annotations

from collections.abc import Mapping

from lab.partner.api_schema import JSON, Operation, api_schema


def misses(method: str, below: str, status: int, headers: Mapping[str, str], body: object) -> list[str]:
    """Where the answer to a call of the path `below` the base is not what the document says; empty for no route."""
    operation = _operation(method, below)
    if operation is None:
        return []
    answer = operation.answers.get(status)
    if answer is None:
        return [f"{operation.route}: status {status}"]
    found = [f"{name}: {headers.get(name)}" for name, value in answer.headers.items() if headers.get(name) != value]
    kind = headers.get("Content-Type", "").partition(";")[0]
    if kind not in answer.media_types:
        found.append(f"content type {kind}")
    if answer.schema is not None and kind == JSON:
        errors = api_schema().validator_at(answer.schema).iter_errors(body)
        found += [f"{operation.route} {status}: {error.message}" for error in errors]
    return found


def _operation(method: str, below: str) -> Operation | None:
    asked = below.partition("?")[0].split("/")
    for operation in api_schema().operations.values():
        template = operation.path.split("/")
        if operation.method == method and len(template) == len(asked) and all(map(_fits, template, asked)):
            return operation
    return None


def _fits(template: str, segment: str) -> bool:
    return template == segment or (template.startswith("{") and segment != "")
