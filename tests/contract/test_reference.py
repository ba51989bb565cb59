"""The page of frames and errors stands as it is rendered, and says what the schemas say."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab
from lab.contract.folder import read_folder
from lab.contract.reference import COMMAND, PAGE, reference_page
from lab.protocol.contract import BODIES, Contract, contract_of, default_contract_folder
from tests.contract.copies import copied_contract, read, write
from tests.contract.gateway_folders import gateway_folder

ROOT = Path(lab.__file__).parent.parent


def page_of(folder: Path) -> str:
    return reference_page([Contract.load(folder, revision) for revision in read_folder(folder).revisions])


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(default_contract_folder())


def section(page: str, title: str) -> list[str]:
    """The lines below a heading."""
    lines = page.splitlines()
    start = lines.index(title)
    end = next((place for place, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("#")), len(lines))
    return lines[start:end]


def test_the_page_is_up_to_date(page: str) -> None:
    written = (ROOT / PAGE).read_text("utf-8")
    assert written == page, f"{PAGE} is out of date: run `{COMMAND}` in the project's folder"


def test_every_type_and_body_is_on_it_once(page: str) -> None:
    for name in (*contract_of(default_contract_folder(), "2.3").types, *(f"{body}.body" for body in BODIES)):
        assert page.count(f"\n### `{name}`\n") == 1


@pytest.mark.req("WS-040")
def test_each_code_stands_with_its_close_code(page: str) -> None:
    codes = contract_of(default_contract_folder(), "2.3").error_codes
    rows = [line for line in section(page, "## Error codes") if line.startswith("| `")]
    assert [row.split(" | ")[:2] for row in rows] == [[f"| `{code}`", str(4400 + at)] for at, code in enumerate(codes)]


def test_what_a_row_says(page: str) -> None:
    lines = page.splitlines()
    for row in (
        "| `maxFrameBytes` | 49152 bytes |",
        "| `ackTimeoutMs` | 5000 ms |",
        "| 2.2 | 24 | `policy.check`, `policy.decision` |",
        "| `capabilities` | `capabilities` |  | 2.1 |  |",
        "| `kind` | one of fix, implement, quality, chat; to 2.2: one of fix, implement, quality | yes |  | TY-009 |",
        "| `data` | `base64`, at most 43692 characters, content (relay) | yes |  |  |",
        "| `count` | integer, 0 to 2^53-1 |  |  |",
        "| `workspaces[].pathSha256` | `sha256` | yes |  | WS-013 |",
        "| `commitSha` | string, `^([0-9a-f]{40}\\|[0-9a-f]{64})$` |  |  | TY-018 |",
    ):
        assert row in lines, row
    assert "content class transit" in section(page, "### `job.assign`")[2]
    assert section(page, "### `policy.check`")[2].startswith("Local Agent to control plane; not signed; since 2.2.")


def test_a_member_that_must_be_absent_has_no_row(page: str) -> None:
    assert not any(line.startswith("| `absent`") for line in section(page, "## Definitions"))


def test_a_change_of_a_schema_changes_the_page(tmp_path: Path, page: str) -> None:
    folder = copied_contract(tmp_path)
    schema = read(folder / "error.schema.json")
    schema["properties"]["payload"]["properties"]["detail"]["maxLength"] = 100
    write(folder / "error.schema.json", schema)
    assert page_of(folder) == page.replace("| `detail` | string, at most 200 ", "| `detail` | string, at most 100 ")


def test_a_folder_of_one_revision_has_no_since(tmp_path: Path) -> None:
    made = page_of(gateway_folder(tmp_path, "2.3"))
    assert "| 2.3 | 24 |  |" in made
    assert "| `capabilities` | `capabilities` |  |  |  |" in made
    assert "to 2.2" not in made
