"""The ledger reader, on planted files and on the project's own ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.contract.requirements import MAX_FILE_BYTES, Requirement, default_requirements_folder, load_requirements
from lab.errors import ContractError

GOOD = {
    "id": "WS-001",
    "basis": "stated",
    "source": "002 README",
    "who": "[cp, la]",
    "rule": "A rule.",
    "check": "A check.",
}


def entry(**changes: str | None) -> str:
    """One entry as YAML; None leaves a key out."""
    keys = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    return "- " + "\n  ".join(f"{key}: {value}" for key, value in keys.items()) + "\n"


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "la.yaml").write_text(entry() + entry(id="CP-002", basis="inferred", decision="7"))
    (tmp_path / "partner.yaml").write_text(entry(id="FX-024", scope="outside", reason="Not ours."))

    found = load_requirements(tmp_path)

    assert list(found) == ["WS-001", "CP-002", "FX-024"]
    assert found["WS-001"] == Requirement(
        id="WS-001",
        basis="stated",
        source="002 README",
        who=("cp", "la"),
        rule="A rule.",
        check="A check.",
        decision=None,
        scope="lab",
        reason=None,
    )
    assert (found["CP-002"].basis, found["CP-002"].decision, found["CP-002"].prefix) == ("inferred", 7, "CP")
    assert (found["FX-024"].scope, found["FX-024"].reason) == ("outside", "Not ours.")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "002 README"}, "unknown key seed"),
        ({"source": None}, "missing key source"),
        ({"basis": "guessed"}, "basis is 'guessed'; stated or inferred is due"),
        ({"basis": "yes"}, "basis is True; stated or inferred is due"),
        ({"rule": "12"}, "rule is 12; a text is due"),
        ({"check": "' '"}, "check is ' '; a text is due"),
        ({"who": "la"}, "who is 'la'; a list of parties is due"),
        ({"who": "[]"}, r"who is \[\]; a list of parties is due"),
        ({"who": "[la, browser]"}, "who names browser; known are agent2, "),
        ({"decision": "true"}, "decision is True; a number from 1 is due"),
        ({"decision": "0"}, "decision is 0; a number from 1 is due"),
        ({"scope": "else"}, "scope is 'else'; lab or outside is due"),
        ({"scope": "outside"}, "scope: outside needs a reason"),
        ({"reason": "Why."}, "reason without scope: outside"),
    ],
)
def test_a_broken_entry_is_refused_by_file_and_id(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    (tmp_path / "la.yaml").write_text(entry(id="WS-007", **changes))
    with pytest.raises(ContractError, match=rf"la\.yaml: WS-007: {message}"):
        load_requirements(tmp_path)


@pytest.mark.parametrize("bad", ["ws-001", "WS-1", "WS-0001", "W-001", "WS001", "12"])
def test_an_ill_formed_id_is_refused_by_its_position(tmp_path: Path, bad: str) -> None:
    (tmp_path / "la.yaml").write_text(entry() + entry(id=bad))
    with pytest.raises(ContractError, match=r"la\.yaml: entry 2: id is "):
        load_requirements(tmp_path)


def test_a_duplicate_id_is_refused_with_both_files(tmp_path: Path) -> None:
    (tmp_path / "la.yaml").write_text(entry())
    (tmp_path / "partner.yaml").write_text(entry())
    with pytest.raises(ContractError, match=r"partner\.yaml: WS-001: this id already stands in .*la\.yaml"):
        load_requirements(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- {", r"la\.yaml: not YAML"),
        (b"- \xff", r"la\.yaml: cannot be read"),
        (b"id: WS-001", r"la\.yaml: holds a dict; a list of entries is due"),
        (b"- text", r"la\.yaml: entry 1: is a str; a mapping is due"),
        (b"- !!python/name:os.system", r"la\.yaml: not YAML"),
        (b"#" * (MAX_FILE_BYTES + 1), r"la\.yaml: larger than"),
    ],
    ids=["not YAML", "not UTF-8", "no list", "no mapping", "a Python object", "too large"],
)
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "la.yaml").write_bytes(content)
    with pytest.raises(ContractError, match=message):
        load_requirements(tmp_path)


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no requirements"):
        load_requirements(tmp_path / "nowhere")


class TestProjectLedger:
    """What holds of the ledger that the project carries."""

    def test_all_entries_are_there(self) -> None:
        found = load_requirements(default_requirements_folder())
        assert len(found) == 1174
        assert sum(entry.basis == "stated" for entry in found.values()) == 697

    def test_every_decision_binds_an_entry(self) -> None:
        found = load_requirements(default_requirements_folder())
        assert {entry.decision for entry in found.values()} == {None, *range(1, 34)}

    def test_what_is_outside_says_why_in_one_sentence(self) -> None:
        outside = [entry for entry in load_requirements(default_requirements_folder()).values() if entry.reason]
        assert outside
        for found in outside:
            assert found.reason is not None
            assert found.reason.endswith(".")
            assert ". " not in found.reason
