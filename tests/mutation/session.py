"""The mutants of one module: listed, judged and remembered by cosmic-ray, in a session file of SQLite."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

UNDER_TEST: Final = Path("lab/protocol")
TESTS: Final = Path("tests/protocol")

# What only schemas can fail, and long runs of random peers, which would multiply the time for one mutant.
LEFT_OUT: Final = ("test_contract_mutations.py", "test_bad_peers.py")

MUTANT_TIMEOUT_S: Final = 240.0
TEST_TIMEOUT_S: Final = 20

# Every `|` is a union of types or an alternative of a pattern, and what is compared with `is` is None, a member of an
# enum or an object without an equality of its own: such a mutant is the same program, or fails wherever it runs.
SAME_PROGRAM: Final = re.compile(
    r"core/(ReplaceBinaryOperator_BitOr_\w+|ReplaceComparisonOperator_(Is_Eq|IsNot_NotEq))"
)


@dataclass(frozen=True)
class Mutant:
    """One change of one module; `id` is the session's own, another one each time."""

    module: str
    row: int
    operator: str
    id: str


@dataclass(frozen=True)
class Judged:
    """What the tests said of a mutant; `diff` is the change as a unified diff."""

    mutant: Mutant
    killed: bool
    diff: str


def pick(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A sample of so many, in their order and the same for one seed; all of them when `count` is 0."""
    if count not in range(1, len(mutants)):
        return list(mutants)
    places = sorted(random.Random(seed).sample(range(len(mutants)), count))
    return [mutants[place] for place in places]


@dataclass(frozen=True)
class Session:
    """The mutants of `module`, a path below `tree`; session and configuration lie in `folder`.

    `tree` is a copy: a mutant is written into the module's file while the tests run. What cosmic-ray cannot do raises
    CalledProcessError.
    """

    module: Path
    tree: Path
    folder: Path

    def listed(self) -> list[Mutant]:
        """Have cosmic-ray list the mutants; those that cannot differ are left out."""
        self._config.write_text(self._configuration(), "utf-8")
        self._cosmic_ray("init")
        with self._opened() as session:
            rows = session.execute(
                "SELECT start_pos_row, operator_name, job_id FROM mutation_specs"
                " ORDER BY start_pos_row, start_pos_col, operator_name, operator_args, occurrence"
            ).fetchall()
        named = [Mutant(str(self.module), row, operator, id_) for row, operator, id_ in rows]
        return [mutant for mutant in named if SAME_PROGRAM.fullmatch(mutant.operator) is None]

    def check(self) -> None:
        """Run the tests on the module as it is: CalledProcessError when they fail, for then nothing can be told."""
        subprocess.run(self._command(), cwd=self.tree, check=True, stdout=subprocess.DEVNULL)

    def judged(self, kept: Collection[Mutant]) -> list[Judged]:
        """Run the tests against each of `kept`, which must be of this module; nothing else is run.

        Left out are those that cosmic-ray lists and then cannot make.
        """
        ids = {mutant.id for mutant in kept}
        with self._opened() as session:
            for table in ("mutation_specs", "work_items"):
                found = [id_ for (id_,) in session.execute(f"SELECT job_id FROM {table}")]
                drop = [(id_,) for id_ in found if id_ not in ids]
                session.executemany(f"DELETE FROM {table} WHERE job_id = ?", drop)
        self._cosmic_ray("exec")
        with self._opened() as session:
            rows = session.execute(
                "SELECT job_id, test_outcome, diff FROM work_results WHERE test_outcome IN ('KILLED', 'SURVIVED')"
            ).fetchall()
        told = {id_: (outcome == "KILLED", diff) for id_, outcome, diff in rows}
        return [Judged(mutant, *told[mutant.id]) for mutant in kept if mutant.id in told]

    @property
    def _config(self) -> Path:
        return self.folder / f"{self.module.stem}.toml"

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.module.stem}.sqlite"

    def _configuration(self) -> str:
        # In TOML a basic string is written as in JSON.
        return "\n".join(
            [
                "[cosmic-ray]",
                f"module-path = {json.dumps(str(self.module))}",
                f"timeout = {MUTANT_TIMEOUT_S}",
                "excluded-modules = []",
                f"test-command = {json.dumps(' '.join(self._command()))}",
                "[cosmic-ray.distributor]",
                'name = "local"',
                "",
            ]
        )

    def _command(self) -> Sequence[str]:
        files = [str(file.relative_to(self.tree)) for file in sorted((self.tree / TESTS).glob("test_*.py"))]
        own = f"test_{self.module.stem}.py"
        # The module's own tests come first: most mutants end there.
        files = sorted((file for file in files if Path(file).name not in LEFT_OUT), key=lambda f: Path(f).name != own)
        options = ["-x", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_TIMEOUT_S}"]
        return [sys.executable, "-m", "pytest", *options, *files]

    def _cosmic_ray(self, act: str) -> None:
        program = Path(sys.executable).with_name("cosmic-ray")
        subprocess.run([program, act, self._config, self._file], cwd=self.tree, check=True)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file)) as session, session:
            yield session
