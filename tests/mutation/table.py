"""The mutation figure of lab/protocol: `python -m tests.mutation.table [--sample N] [--seed N]`.

It works on a copy of the tree, prints each survivor as a diff, and ends with a table by module.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.mutation.session import UNDER_TEST, Judged, Session, pick

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("lab", "tests", "contract", "fixtures", "scenarios", "pyproject.toml")
SAMPLE: Final = 400
SEED: Final = 7


def measure(sample: int, seed: int) -> list[Judged]:
    """Judge so many mutants of the package, all of them when `sample` is 0; survivors are printed as they come."""
    with tempfile.TemporaryDirectory(prefix="lab-mutation-") as scratch:
        tree = Path(scratch) / "tree"
        copy(tree)
        modules = sorted(file.relative_to(tree) for file in (tree / UNDER_TEST).glob("*.py"))
        sessions = [Session(module, tree, Path(scratch)) for module in modules]
        sessions[0].check()
        listed = [mutant for session in sessions for mutant in session.listed()]
        chosen = pick(listed, sample, seed)
        print(f"{len(chosen)} of {len(listed)} mutants, seed {seed}", flush=True)
        judged: list[Judged] = []
        for session in sessions:
            found = session.judged([mutant for mutant in chosen if mutant.module == str(session.module)])
            for one in found:
                if not one.killed:
                    print(f"survived {one.mutant.module}:{one.mutant.row} {one.mutant.operator}", flush=True)
                    print(one.diff, flush=True)
            judged += found
        return judged


def copy(tree: Path) -> None:
    """What the tests need of the project, at `tree`."""
    tree.mkdir()
    without = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=without)
        else:
            shutil.copy2(source, tree / name)


def table(judged: Iterable[Judged]) -> str:
    """Killed and all mutants by module, and of the package."""
    all_ = list(judged)
    lines = ["| module | mutants | killed | % |", "|---|---|---|---|"]
    for module in sorted({one.mutant.module for one in all_}):
        lines.append(_row(f"`{module}`", [one for one in all_ if one.mutant.module == module]))
    return "\n".join([*lines, _row("all", all_)])


def _row(name: str, judged: Sequence[Judged]) -> str:
    killed = sum(one.killed for one in judged)
    share = f"{killed / len(judged):.1%}" if judged else "–"
    return f"| {name} | {len(judged)} | {killed} | {share} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.table", description=__doc__)
    parser.add_argument(
        "--sample", type=int, default=SAMPLE, help="how many mutants; 0 takes all (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="which sample (default %(default)s)")
    given = parser.parse_args()
    print(table(measure(given.sample, given.seed)))


if __name__ == "__main__":
    main()
