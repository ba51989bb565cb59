"""The lint of a contract: silent on the project's own, and each rule seen to speak."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.contract.lint import lint
from lab.contract.vectors import load_vectors
from lab.protocol.contract import Contract, default_contract_folder
from tests.contract.copies import copied_contract, read, write
from tests.contract.validators import REVISIONS, contract


def findings(folder: Path) -> tuple[str, ...]:
    return lint(Contract.load(folder), load_vectors(folder).files)


@pytest.mark.req("WS-001", "WS-047", "WS-048", "WS-049", "CT-057", "CT-069")
@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_to_find_in_the_projects_own(revision: str) -> None:
    assert lint(contract(revision), load_vectors(default_contract_folder()).files) == ()


PAYLOAD = "/properties/payload"
OPEN = "the object is open"
UNBOUND = "the string has no bound"
CHANGES = [
    ("ack", PAYLOAD, "additionalProperties", None, f"ack: {PAYLOAD}: {OPEN}"),
    ("ack", PAYLOAD, "additionalProperties", True, f"ack: {PAYLOAD}: {OPEN}"),
    ("defs", "/$defs/chunk", "additionalProperties", None, f"defs: /$defs/chunk: {OPEN}"),
    ("envelope", "", "additionalProperties", None, None),
    ("config.update", f"{PAYLOAD}/properties/values", "propertyNames", None, OPEN),
    ("config.update", f"{PAYLOAD}/properties/values", "maxProperties", None, OPEN),
    ("job.stream.body", "/properties/events", "maxItems", None, "the list has no bound"),
    ("error", f"{PAYLOAD}/properties/detail", "maxLength", None, UNBOUND),
    ("defs", "/$defs/id", "pattern", None, UNBOUND),
    ("defs", "/$defs/id", "pattern", "^[a-z]+$", UNBOUND),
    ("defs", "/$defs/id", "pattern", "^[a-z]{1,}$", UNBOUND),
    ("error", f"{PAYLOAD}/properties/detail", "maxLength", 513, "513 characters"),
    ("webhook.forward", f"{PAYLOAD}/properties/bodyB64", "maxLength", None, "base64 text without a bound"),
    (
        "job.assign",
        f"{PAYLOAD}/properties/inputs/items/properties/inline",
        "x-content-class",
        None,
        "job.assign: inline",
    ),
    ("content.response", f"{PAYLOAD}/properties/data", "x-content-class", None, "content.response: data"),
    ("webhook.forward", f"{PAYLOAD}/properties/bodyB64", "x-content-class", None, "webhook.forward: bodyB64"),
    ("error", f"{PAYLOAD}/properties/detail", "x-content-class", "relay", "error: detail"),
    ("envelope", "/properties/paramsRaw", "x-large-metadata", None, "envelope: paramsRaw"),
    ("scan.upload", f"{PAYLOAD}/properties/signedPutUrl", "x-large-metadata", None, "scan.upload: signedPutUrl"),
    ("approval.decision", f"{PAYLOAD}/properties/token", "x-large-metadata", None, "approval.decision: token"),
    ("error", f"{PAYLOAD}/properties/detail", "x-large-metadata", True, "error: detail"),
]


@pytest.mark.req("WS-001", "WS-047", "WS-048", "WS-049")
@pytest.mark.parametrize(("name", "pointer", "keyword", "value", "said"), CHANGES)
def test_a_change_is_found(
    tmp_path: Path, name: str, pointer: str, keyword: str, value: object, said: str | None
) -> None:
    folder = copied_contract(tmp_path)
    file = folder / f"{name}.schema.json"
    document = read(file)
    node: Any = document
    for step in pointer.split("/")[1:]:
        node = node[step]
    node.pop(keyword, None)
    if value is not None:
        node[keyword] = value
    write(file, document)
    found = findings(folder)
    assert found
    assert any((said or OPEN) in finding for finding in found), found


@pytest.mark.req("WS-039", "WS-040")
def test_the_order_of_the_error_codes_is_pinned(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    file = folder / "defs.schema.json"
    document = read(file)
    codes = document["$defs"]["errorCode"]["enum"]
    codes[3], codes[4] = codes[4], codes[3]
    write(file, document)
    assert findings(folder) == (
        "defs: errorCode 3 is payload_too_large, due is frame_too_large: the order gives the close codes (WS-040)",
    )
    del codes[-1]
    codes[3], codes[4] = codes[4], codes[3]
    write(file, document)
    assert findings(folder) == ("defs: 22 error codes, due are 23 (WS-039)",)


@pytest.mark.req("CT-057", "CT-069")
def test_a_type_needs_vectors_and_enough_of_them(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "vectors" / "alert.vectors.json").unlink()
    (folder / "vectors" / "file.list.body.vectors.json").unlink()
    (folder / "vectors" / "cross-type.vectors.json").unlink()
    file = folder / "vectors" / "ack.vectors.json"
    document = read(file)
    vectors = document["vectors"]
    valid = [each for each in vectors if each["expect"]["valid"]]
    invalid = [each for each in vectors if not each["expect"]["valid"]]
    write(file, {**document, "vectors": [valid[0], invalid[0]]})
    assert findings(folder) == (
        "cross-type: no file of vectors (CT-057)",
        "ack: 1 valid and 1 invalid vectors, at least 1 and 2 are due (CT-069)",
        "alert: no file of vectors (CT-057)",
        "file.list.body: no file of vectors (CT-057)",
    )
    write(file, {**document, "vectors": invalid})
    assert any(finding.startswith("ack: 0 valid") for finding in findings(folder))
