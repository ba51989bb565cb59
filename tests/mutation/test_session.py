"""What is judged of a module's mutants, on session files made here; cosmic-ray itself is not run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.session import Mutant, Session, pick

MUTANTS: Final = [Mutant("m.py", row, "core/AddNot", str(row)) for row in range(50)]
OPERATORS: Final = {
    "a": "core/AddNot",
    "b": "core/ReplaceBinaryOperator_BitOr_Add",
    "c": "core/ReplaceComparisonOperator_Is_Eq",
    "d": "core/ReplaceComparisonOperator_Is_IsNot",
    "e": "core/ReplaceComparisonOperator_IsNot_NotEq",
    "f": "core/NumberReplacer",
}


class PlayedSession(Session):
    """Has the program's side of it played: `a` is killed, `f` cannot be made, and the others survive."""

    def _cosmic_ray(self, act: str) -> None:
        with closing(sqlite3.connect(self._file)) as session, session:
            if act == "init":
                self._list(session)
            else:
                left = [id_ for (id_,) in session.execute("SELECT job_id FROM work_items")]
                outcomes = {"a": "KILLED", "d": "SURVIVED", "f": "INCOMPETENT"}
                rows = [(id_, outcomes.get(id_, "SURVIVED"), f"diff of {id_}") for id_ in left]
                session.executemany("INSERT INTO work_results VALUES (?, ?, ?)", rows)

    def _list(self, session: sqlite3.Connection) -> None:
        session.execute("CREATE TABLE work_items (job_id)")
        session.execute("CREATE TABLE work_results (job_id, test_outcome, diff)")
        columns = "job_id, operator_name, operator_args, occurrence, start_pos_row, start_pos_col"
        session.execute(f"CREATE TABLE mutation_specs ({columns})")
        for row, (id_, operator) in enumerate(reversed(OPERATORS.items())):
            session.execute("INSERT INTO work_items VALUES (?)", (id_,))
            session.execute("INSERT INTO mutation_specs VALUES (?, ?, '{}', 0, ?, 0)", (id_, operator, 10 - row))


@pytest.fixture
def session(tmp_path: Path) -> PlayedSession:
    tests = tmp_path / "tree" / "tests" / "protocol"
    tests.mkdir(parents=True)
    for name in ("test_chunks.py", "test_wire.py", "test_bad_peers.py", "pair.py"):
        (tests / name).touch()
    return PlayedSession(Path("lab/protocol/wire.py"), tmp_path / "tree", tmp_path)


def test_a_sample_is_the_same_for_one_seed_and_in_order() -> None:
    sample = pick(MUTANTS, 20, 7)
    assert len(sample) == 20
    assert sample == sorted(sample, key=lambda mutant: mutant.row) == pick(MUTANTS, 20, 7)
    assert sample != pick(MUTANTS, 20, 8)


@pytest.mark.parametrize("count", [0, 50, 51])
def test_all_of_them_can_be_taken(count: int) -> None:
    assert pick(MUTANTS, count, 7) == MUTANTS


def test_what_cannot_differ_is_not_listed(session: PlayedSession) -> None:
    assert [(mutant.id, mutant.row) for mutant in session.listed()] == [("f", 10), ("d", 8), ("a", 5)][::-1]


def test_what_could_be_made_is_judged(session: PlayedSession) -> None:
    judged = session.judged(session.listed())
    assert [(one.mutant.id, one.killed, one.diff) for one in judged] == [
        ("a", True, "diff of a"),
        ("d", False, "diff of d"),
    ]


def test_nothing_is_run_but_what_is_kept(session: PlayedSession) -> None:
    judged = session.judged([mutant for mutant in session.listed() if mutant.id == "d"])
    assert [one.mutant.id for one in judged] == ["d"]
    with closing(sqlite3.connect(session.folder / "wire.sqlite")) as file:
        assert file.execute("SELECT job_id FROM mutation_specs").fetchall() == [("d",)]
        assert file.execute("SELECT job_id FROM work_results").fetchall() == [("d",)]


def test_the_tests_of_the_module_run_first_and_the_longest_do_not(session: PlayedSession) -> None:
    session.listed()
    command = (session.folder / "wire.toml").read_text("utf-8")
    assert command.index("test_wire.py") < command.index("test_chunks.py")
    assert "test_bad_peers.py" not in command
    assert "pair.py" not in command
