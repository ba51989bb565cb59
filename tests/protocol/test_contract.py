"""The contract folder: what its index and files say, and how a broken folder is refused."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import lab.protocol
from lab.errors import ContractError
from lab.protocol.contract import BODIES, Contract, Direction, Limits
from tests.protocol.contract_files import (
    CLASSES,
    FOLDER,
    FROM_CP,
    FROM_LA,
    documents,
    schemas,
)
from tests.protocol.frame_examples import GONE, altered

CODES = """bad_frame unknown_type schema_violation frame_too_large payload_too_large wrong_direction handshake_violation
not_ready seq_gap seq_replayed chunk_out_of_order chunk_inconsistent tenant_mismatch agent_mismatch params_mismatch
signature_mode_insufficient clock_skew protocol_unsupported unauthorized agent_offline timeout rate_limited internal"""
CONTROL = {"register", "hello", "ready", "ack", "error"}


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load(FOLDER)


@pytest.mark.req("CT-001", "CT-014", "CT-057")
def test_the_folder_has_one_schema_for_each_type() -> None:
    types = documents()["index.json"]["types"]
    due = {"envelope", "defs", *types, *(f"{body}.body" for body in BODIES)}
    assert {name.removesuffix(".schema.json") for name in schemas()} == due
    assert (FOLDER / "README.md").is_file()


@pytest.mark.req("CT-005")
def test_dialect_and_ids() -> None:
    base = "https://schemas.visionhammer.io/la-protocol-v2/"
    assert documents()["index.json"]["baseId"] == base
    for name, schema in schemas().items():
        assert schema["$id"] == base + name
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.req("CT-006", "CT-007")
def test_the_index_starts_with_protocol_and_revision() -> None:
    index = documents()["index.json"]
    assert (index["protocol"], index["revision"]) == (2, "2.3")
    assert list(index)[:3] == ["protocol", "revision", "baseId"]
    for record in index["types"].values():
        assert set(record) >= {"direction", "signed", "control", "contentClass", "since"}


@pytest.mark.req("TY-045", "CT-057")
def test_the_envelope_names_the_types_of_the_index(contract: Contract) -> None:
    envelope: Any = contract.schema("envelope")
    assert sorted(envelope["properties"]["type"]["enum"]) == sorted(contract.types)


@pytest.mark.req("TY-040", "TY-007", "TY-026", "TY-028", "TY-030", "TY-032", "TY-034", "TY-036", "TY-038")
def test_directions(contract: Contract) -> None:
    by_direction = {
        direction: {name for name, record in contract.types.items() if record.direction is direction}
        for direction in Direction
    }
    assert by_direction == {
        Direction.LA_TO_CP: set(FROM_LA.split()),
        Direction.CP_TO_LA: set(FROM_CP.split()),
        Direction.BOTH: {"ack", "error"},
    }


@pytest.mark.req("TY-044")
def test_control_types(contract: Contract) -> None:
    assert {name for name, record in contract.types.items() if record.control} == CONTROL


@pytest.mark.req("SG-016")
def test_signed_types(contract: Contract) -> None:
    assert {name for name, record in contract.types.items() if record.signed} == set(FROM_CP.split())


@pytest.mark.req("TY-041")
def test_content_classes(contract: Contract) -> None:
    assert {name: record.content_class for name, record in contract.types.items()} == {
        **dict.fromkeys(contract.types, "none"),
        **CLASSES,
    }


@pytest.mark.req("TY-039")
def test_only_the_type_whose_name_is_a_guess_is_provisional() -> None:
    types = documents()["index.json"]["types"]
    assert [name for name, record in types.items() if record.get("provisional")] == ["llm.key"]


@pytest.mark.req("CH-034", "HS-029", "CH-027", "WS-050")
def test_no_body_nor_foreign_command_is_a_type(contract: Contract) -> None:
    assert not {*BODIES, "content.cancel", "mcp.execute-command"} & set(contract.types)


@pytest.mark.req("WS-039", "WS-040")
def test_order_of_the_error_codes(contract: Contract) -> None:
    assert contract.error_codes == tuple(CODES.split())
    assert contract.error_codes.index("timeout") == 20


@pytest.mark.req("WS-019", "WS-021", "WS-022", "WS-023", "WS-024", "WS-025", "WS-027", "WS-028")
def test_limits_are_the_figures_of_the_text(contract: Contract) -> None:
    assert contract.limits == Limits(
        max_frame_bytes=48 * 1024,
        chunk_raw_bytes=32 * 1024,
        chunk_base64_chars=43692,
        max_chunks=64,
        ack_timeout_ms=5_000,
        max_retransmissions=3,
        handshake_timeout_ms=10_000,
        heartbeat_seconds=30,
        session_ttl_seconds=90,
        clock_skew_seconds=60,
        dedupe_entries=512,
        dedupe_window_seconds=600,
    )
    assert len(documents()["index.json"]["limits"]) == len(fields(Limits))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "contract"))


def change(file: str, pointer: str, value: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / file
        path.write_text(json.dumps(altered(json.loads(path.read_text()), pointer, value)))

    return apply


def write(file: str, text: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / file).write_text(text)

    return apply


def remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


@pytest.mark.parametrize(
    ("breaking", "file", "reason"),
    [
        (remove("index.json"), "index.json", "cannot be read"),
        (remove("ack.schema.json"), "ack.schema.json", "missing"),
        (remove("job.stream.body.schema.json"), "job.stream.body.schema.json", "missing"),
        (write("ack.schema.json", "{"), "ack.schema.json", "not JSON"),
        (write("ack.schema.json", "[]"), "ack.schema.json", "object"),
        (change("index.json", "/protocol", 1), "index.json", "protocol"),
        (change("index.json", "/limits/maxChunks", GONE), "index.json", "maxChunks"),
        (change("index.json", "/limits/maxChunks", True), "index.json", "maxChunks"),
        (change("index.json", "/limits", []), "index.json", "limits"),
        (change("index.json", "/types/ack/direction", "up"), "index.json", "types.ack"),
        (change("index.json", "/types/ack/signed", GONE), "index.json", "types.ack"),
        (change("index.json", "/types/llm.key", GONE), "envelope.schema.json", "llm.key"),
        (change("envelope.schema.json", "/properties/type/enum", ["ack"]), "envelope.schema.json", "register"),
        (change("defs.schema.json", "/$defs/errorCode/enum", ["a", "a"]), "defs.schema.json", "twice"),
        (change("defs.schema.json", "/$defs/errorCode/enum", [1]), "defs.schema.json", "errorCode"),
        (change("ack.schema.json", "/$id", "urn:x"), "ack.schema.json", "$id"),
        (change("ack.schema.json", "/$ref", "nowhere.schema.json"), "nowhere.schema.json", "fit together"),
        (change("ack.schema.json", "/$ref", "defs.schema.json#/$defs/none"), "ack.schema.json", "usable"),
        (change("ack.schema.json", "/type", 7), "ack.schema.json", "usable"),
        (change("defs.schema.json", "/$defs/uuid/pattern", "("), "schema.json", "usable"),
    ],
)
def test_a_broken_folder_is_refused_by_name(
    folder: Path, breaking: Callable[[Path], None], file: str, reason: str
) -> None:
    breaking(folder)
    with pytest.raises(ContractError) as caught:
        Contract.load(folder)
    assert file in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("breaking", "reason"),
    [
        (remove("revisions.json"), "no revisions.json leads back to 2.2"),
        (change("revisions.json", "/newest", "2.4"), "does not lead"),
        (change("revisions.json", "/older/0", 1), "each entry"),
        (
            change("revisions.json", "/older/0/edits/0", {"schema": "nothing", "pointer": "/a", "set": 1}),
            "name of a schema",
        ),
        (change("revisions.json", "/older/0/edits/0/pointer", "/a/b"), "nothing at /a/b"),
        (change("revisions.json", "/older/0/edits/0/set", GONE), "set, remove, or drop"),
        (change("revisions.json", "/older/0/edits/2/drop", "ask"), "set, remove, or drop"),
    ],
)
def test_broken_revisions_are_refused(folder: Path, breaking: Callable[[Path], None], reason: str) -> None:
    breaking(folder)
    assert Contract.load(folder).revision == "2.3"
    with pytest.raises(ContractError) as caught:
        Contract.load(folder, "2.2")
    assert "revisions.json" in str(caught.value)
    assert reason in str(caught.value)


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(ContractError, match=r"from revision 2\.3 back to 1\.9"):
        Contract.load(FOLDER, "1.9")


def test_a_missing_folder_says_where_one_would_be(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="contract/la-protocol-v2 beside the package"):
        Contract.load(tmp_path / "none")


@pytest.mark.req("CT-009")
def test_a_folder_of_another_origin_needs_no_revisions_file(folder: Path) -> None:
    (folder / "revisions.json").unlink()
    change("index.json", "/revision", GONE)(folder)
    assert Contract.load(folder).revision == "2.0"


def test_importing_the_module_does_not_load_the_validator() -> None:
    code = "import sys, lab.protocol.contract; sys.exit('jsonschema_rs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(lab.protocol.__file__).parents[2], check=False)
    assert done.returncode == 0


def test_the_module_imports_neither_io_nor_chance() -> None:
    tree = ast.parse((Path(lab.protocol.__file__).parent / "contract.py").read_text())
    roots = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    forbidden = {"asyncio", "aiohttp", "websockets", "socket", "time", "random", "uuid", "secrets"}
    assert not {root.split(".")[0] for root in roots} & forbidden
