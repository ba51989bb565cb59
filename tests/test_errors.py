"""The tree of errors and what each tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import errors
from lab.errors import Agent2Error, ExitStatus, LabError, Place, ScenarioError, ScenarioErrors, WireError

TREE = {
    "LocalError": ExitStatus.LAB_FAILED,
    "UsageError": ExitStatus.USAGE,
    "ScenarioError": ExitStatus.USAGE,
    "ScenarioErrors": ExitStatus.USAGE,
    "ContractError": ExitStatus.USAGE,
    "EnvironmentFault": ExitStatus.LAB_FAILED,
    "SutFault": ExitStatus.LAB_FAILED,
    "StateFault": ExitStatus.LAB_FAILED,
    "MisuseError": ExitStatus.LAB_FAILED,
    "NotApplicable": ExitStatus.UNKNOWN,
    "RemoteError": ExitStatus.BROKEN,
    "WireError": ExitStatus.BROKEN,
    "Agent2Error": ExitStatus.BROKEN,
}


@pytest.mark.parametrize(("name", "status"), TREE.items())
def test_each_error_has_its_exit_status(name: str, status: ExitStatus) -> None:
    """A command that meets it leaves with this."""
    kind = getattr(errors, name)
    assert issubclass(kind, LabError)
    assert kind.exit_status is status


def test_no_error_is_missing_here() -> None:
    """A new one needs a row above."""
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, LabError)}
    assert kinds - {"LabError"} == set(TREE)


def test_the_readme_names_every_exit_status() -> None:
    """And so does the help."""
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    section = readme[readme.index("Exit status:") :].partition("\n\n")[0]
    assert all(str(int(status)) in section for status in ExitStatus)


def test_a_scenario_error_says_where_what_and_the_nearest() -> None:
    """File, line, column, path, message, and a proposal if there is one."""
    place = Place("a.yaml", 3, 7)
    assert str(ScenarioError(place, "steps[0]", "no such step.", "wait")) == (
        "a.yaml:3:7: steps[0]: no such step. Did you mean `wait`?"
    )
    bare = ScenarioError(Place("a.yaml", 1), "", "empty.")
    assert str(bare) == "a.yaml:1:1: empty."
    assert str(ScenarioErrors((bare, bare))) == f"{bare}\n{bare}"


def test_remote_errors_carry_their_codes() -> None:
    """For who must answer them."""
    wire = WireError("bad_frame", "not an object")
    assert (wire.code, wire.reason, str(wire)) == ("bad_frame", "not an object", "bad_frame: not an object")
    assert str(Agent2Error("busy", 409)) == "busy (HTTP 409)"
    assert str(Agent2Error("unreachable")) == "unreachable"
