"""The figure as a table."""

from __future__ import annotations

from tests.mutation.session import Judged, Mutant
from tests.mutation.table import table


def judged(module: str, *killed: bool) -> list[Judged]:
    return [Judged(Mutant(module, 1, "core/AddNot", str(number)), one, "") for number, one in enumerate(killed)]


def test_the_figure_stands_by_module_and_for_the_package() -> None:
    text = table([*judged("b.py", True, False), *judged("a.py", True)])
    assert text.splitlines()[2:] == [
        "| `a.py` | 1 | 1 | 100.0% |",
        "| `b.py` | 2 | 1 | 50.0% |",
        "| all | 3 | 2 | 66.7% |",
    ]


def test_nothing_judged_is_no_share() -> None:
    assert table([]).endswith("| all | 0 | 0 | – |")
