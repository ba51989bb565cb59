"""Reading requirement markers: where they stand, and what is refused."""

from __future__ import annotations

import pytest

from lab.contract.markers import Marker, markers_in
from lab.errors import ContractError

MAKER = """
def case(value, reqs="D", *, extra="E"):
    marks = [pytest.mark.req(*reqs.split(), "F"), pytest.mark.req(extra)]
    return pytest.param(value, marks=marks)
"""


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('@pytest.mark.req("A", "B")\ndef test_x(): ...', [("A", 1), ("B", 1)]),
        ('@pytest.mark.req("A")\n@pytest.mark.req("B")\nasync def test_x(): ...', [("A", 1), ("B", 2)]),
        ('@mark.req("A")\nclass TestX:\n    @mark.req("B")\n    def test_y(self): ...', [("A", 1), ("B", 3)]),
        ('pytestmark = pytest.mark.req("A")', [("A", 1)]),
        ('pytestmark: object = pytest.mark.req("A")', [("A", 1)]),
        ('pytestmark = [pytest.mark.slow, pytest.mark.req("A")]', [("A", 1)]),
        ('class TestX:\n    pytestmark = (pytest.mark.req("A"),)', [("A", 2)]),
        ('TestX.pytestmark = [pytest.mark.req("A")]', [("A", 1)]),
        ('CASES = [pytest.param(1, marks=pytest.mark.req("A"))]', [("A", 1)]),
        ('CASES = [param(1, marks=[pytest.mark.slow, pytest.mark.req("A",\n"B")])]', [("A", 1), ("B", 2)]),
        ('@pytest.mark.slow\ndef test_x(): """@pytest.mark.req("A")"""', []),
    ],
)
def test_markers_are_read_where_pytest_reads_them(source: str, named: list[tuple[str, int]]) -> None:
    found = markers_in(source, "tests/test_x.py")
    assert found == [Marker(id_, "tests/test_x.py", line) for id_, line in named]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('\n@pytest.mark.req("A")\ndef helper(): ...', "test_x.py:2: a req marker that pytest does not read"),
        ('@pytest.mark.req("A")\nclass Helper: ...', "that pytest does not read"),
        ('chat = pytest.mark.req("A")', "that pytest does not read"),
        ('pytest.param(1, pytest.mark.req("A"))', "that pytest does not read"),
        ('pytest.param(1, id=pytest.mark.req("A"))', "that pytest does not read"),
        ("@pytest.mark.req\ndef test_x(): ...", "that pytest does not read"),
        ("@pytest.mark.req()\ndef test_x(): ...", "names its ids like"),
        ('@pytest.mark.req(id="A")\ndef test_x(): ...', "names its ids like"),
        ('@pytest.mark.req("A", id="B")\ndef test_x(): ...', "names its ids like"),
        ("@pytest.mark.req(*IDS)\ndef test_x(): ...", "as string literals"),
        ("def case(ids): return pytest.param(1, marks=pytest.mark.req(*ids))", "as string literals"),
        ("@pytest.mark.req(ids)\ndef test_x(): ...", "as string literals"),
        ("@pytest.mark.req(1)\ndef test_x(): ...", "as string literals"),
        ("def", "test_x.py: cannot be read as Python"),
        ("\0", "test_x.py: cannot be read as Python"),
    ],
)
def test_a_marker_that_shows_nothing_is_refused(source: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        markers_in(source, "test_x.py")


@pytest.mark.parametrize(
    ("use", "ids"),
    [
        ('CASES = [case(1, "A B")]', ["F", "A", "B", "E"]),
        ('CASES = [case(1, reqs="A", extra="C")]', ["F", "A", "C"]),
        ('CASES = [case(1, "A"), other(2, "B")]', ["F", "A", "E"]),
        ("CASES = [case(1)]", ["F", "D", "E"]),
        ('CASES = [case(1, "")]', ["F", "E"]),
        ("", ["F"]),
    ],
)
def test_a_function_that_makes_cases_may_pass_ids_on(use: str, ids: list[str]) -> None:
    found = markers_in(MAKER + use, "test_x.py")
    assert [marker.id for marker in found] == ids
    assert {marker.line for marker in found if marker.id != "F"} <= {5}


@pytest.mark.parametrize(
    "use", ["case(1, REQS)", "case(*VALUES)", "case(1, **VALUES)", "case(1, reqs=1)", 'case(1, "A", extra=f())']
)
def test_ids_passed_on_are_literals_too(use: str) -> None:
    with pytest.raises(ContractError, match=r"test_x\.py:5: .* as string literals"):
        markers_in(MAKER + use, "test_x.py")
