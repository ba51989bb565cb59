"""`lab contract coverage`: its exit statuses and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.contract.commands import contract


class Tree:
    """A small project: a ledger of three entries, one test module, a record."""

    def __init__(self, root: Path) -> None:
        self.ledger = root / "requirements"
        self.tests = root / "tests"
        self.record = self.ledger / "shown.txt"
        self.ledger.mkdir()
        self.tests.mkdir()
        keys = "basis: stated, source: 002 README, who: [la], rule: A rule., check: A check."
        (self.ledger / "la.yaml").write_text("".join(f"- {{id: WS-00{n}, {keys}}}\n" for n in (1, 2, 3)))

    def show(self, *ids: str) -> None:
        lines = [f'@pytest.mark.req("{id_}")\ndef test_{number}(): ...\n' for number, id_ in enumerate(ids)]
        (self.tests / "test_x.py").write_text("".join(lines))

    def run(self, *options: str) -> Result:
        folders = ["--requirements", str(self.ledger), "--tests", str(self.tests)]
        return CliRunner().invoke(contract, ["coverage", *folders, *options])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_no_drop_is_fine(tree: Tree) -> None:
    tree.show("WS-001", "WS-002")
    tree.record.write_text("WS-001\n")
    run = tree.run()
    assert run.exit_code == 0
    assert "1 shown for the first time" in run.stderr
    assert tree.record.read_text() == "WS-001\n"


def test_nothing_new_says_nothing_more(tree: Tree) -> None:
    tree.show("WS-001")
    tree.record.write_text("WS-001\n")
    run = tree.run()
    assert (run.exit_code, run.stderr) == (0, "")


def test_a_drop_exits_1_and_names_the_ids_and_the_way_out(tree: Tree) -> None:
    tree.show("WS-001")
    tree.record.write_text("WS-001\nWS-002\nWS-003\n")
    run = tree.run()
    assert run.exit_code == 1
    assert "no test shows these requirements any longer: WS-002, WS-003" in run.stderr
    assert "lab contract coverage --accept" in run.stderr


def test_accept_records_what_is_shown_now(tree: Tree) -> None:
    tree.show("WS-003", "WS-001")
    tree.record.write_text("WS-002\n")
    run = tree.run("--accept")
    assert run.exit_code == 0
    assert "2 ids recorded, 1 of the earlier ones given up" in run.stderr
    assert tree.record.read_text() == "WS-001\nWS-003\n"
    assert tree.run().exit_code == 0


@pytest.mark.parametrize("options", [(), ("--accept",)])
def test_an_unknown_id_exits_2_and_is_never_recorded(tree: Tree, options: tuple[str, ...]) -> None:
    tree.show("WS-001", "WS-404")
    tree.record.write_text("WS-001\nWS-002\n")
    run = tree.run(*options)
    assert run.exit_code == 2
    assert "WS-404 at tests/test_x.py:3" in run.stderr
    assert tree.record.read_text() == "WS-001\nWS-002\n"


def test_a_broken_ledger_exits_2_without_a_traceback(tree: Tree) -> None:
    tree.show("WS-001")
    (tree.ledger / "partner.yaml").write_text("- {id: WS-001}\n")
    run = tree.run()
    assert run.exit_code == 2
    assert run.stderr.startswith("error: ")
    assert "partner.yaml: WS-001: missing key" in run.stderr


def test_a_missing_record_exits_2_until_accept_makes_it(tree: Tree) -> None:
    tree.show("WS-001")
    assert tree.run().exit_code == 2
    assert tree.run("--accept").exit_code == 0
    assert tree.record.read_text() == "WS-001\n"


def test_json_is_one_object_on_stdout(tree: Tree) -> None:
    tree.show("WS-001")
    tree.record.write_text("WS-002\n")
    run = tree.run("--json")
    assert run.exit_code == 1
    found = json.loads(run.stdout)
    assert found["shown"] == ["WS-001"]
    assert found["not_shown"] == ["WS-002", "WS-003"]
    assert found["dropped"] == ["WS-002"]


def test_missing_lists_what_no_test_shows(tree: Tree) -> None:
    tree.show("WS-001")
    tree.record.write_text("WS-001\n")
    assert "WS: 002 003" in tree.run("--missing").stdout
    assert "WS: 002 003" not in tree.run().stdout


def test_an_empty_record_holds_nothing_and_is_filled_by_accept(tree: Tree) -> None:
    tree.show("WS-001")
    tree.record.write_text("")
    assert tree.run().exit_code == 2
    assert tree.run("--accept").exit_code == 0
    assert tree.record.read_text() == "WS-001\n"
