"""Capabilities by revision."""

from __future__ import annotations

import pytest

from lab.protocol.capabilities import BROUGHT_BY, has_capabilities, of_revision

ALL = ("job.inline.16k", "policy.check", "job.assign", "job.chat", "job.options")


@pytest.mark.req("HS-035")
def test_the_names_are_the_five_that_are_known() -> None:
    assert sorted(BROUGHT_BY) == sorted(ALL)


@pytest.mark.req("HS-035")
@pytest.mark.parametrize(
    ("revision", "names"),
    [
        ("2.0", ()),
        ("2.1", ("job.assign", "job.options")),
        ("2.2", ("policy.check", "job.assign", "job.options")),
        ("2.3", ALL),
        ("2.10", ALL),
    ],
)
def test_a_revision_has_what_it_and_those_before_it_brought(revision: str, names: tuple[str, ...]) -> None:
    assert of_revision(ALL, revision) == names


def test_a_name_that_nobody_knows_is_nobodys() -> None:
    assert of_revision(("job.assign", "job.fly"), "2.3") == ("job.assign",)


@pytest.mark.req("HS-030")
def test_capabilities_came_with_2_1() -> None:
    assert [has_capabilities(revision) for revision in ("2.0", "2.1", "2.3")] == [False, True, True]
