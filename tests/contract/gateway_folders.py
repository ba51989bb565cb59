"""A contract folder as the gateway has it."""

from __future__ import annotations

from pathlib import Path

from lab.protocol.contract import BODIES, Contract, default_contract_folder, read_documents
from tests.contract.copies import write

COMMIT = "b090144e19b1da0182554553b18f321452f03bd6"


def gateway_folder(place: Path, revision: str) -> Path:
    """One revision, no steps to older ones, no vectors, and the bodies only where they are due."""
    index, schemas = read_documents(default_contract_folder(), revision)
    folder = place / f"gateway-{revision}"
    folder.mkdir()
    write(folder / "index.json", index)
    (folder / "README.md").write_text("# LA protocol v2\n", "utf-8")
    bodies = [f"{body}.body" for body in BODIES] if revision == "2.3" else []
    for name in ("envelope", "defs", *Contract.load(default_contract_folder(), revision).types, *bodies):
        write(folder / f"{name}.schema.json", schemas[name])
    return folder
