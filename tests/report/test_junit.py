"""JUnit XML as a CI reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.errors import EnvironmentFault, NotApplicable, SutFault
from lab.laws.law import Status
from lab.report.junit import junit_text, write_junit
from lab.run.notices import Notice
from lab.run.step_course import StepFailed
from lab.run.verdict import Verdict
from tests.run.made import held, judged, result, scenario, step_entries, verdict, violation

LAWS = [
    judged(Status.BROKEN, violation(), violation("some-law", "local_agent", 1)),
    judged(Status.HELD, law="held-law"),
    judged(Status.NOTHING, law="nothing-law"),
    judged(Status.EXCUSED, violation("excused-law"), law="excused-law"),
    judged(Status.UNKNOWN, law="unknown-law"),
    judged(Status.BROKEN, violation("own-law", "gateway"), law="own-law", party="gateway"),
]


def suites(*verdicts: Verdict) -> list[ET.Element]:
    text = junit_text([result(one, Path("runs/made/1")) for one in verdicts])
    return ET.fromstring(text).findall("testsuite")


def cases(suite: ET.Element) -> dict[str, ET.Element]:
    found = {str(case.get("name")): case for case in suite.findall("testcase")}
    assert len(found) == len(suite.findall("testcase"))
    return found


def test_every_law_expectation_and_finding_stands_there_once() -> None:
    """What the agent broke is a failure, what the lab broke an error, what was not judged is skipped."""
    reached = verdict(
        laws=LAWS,
        expectations=[held(True), held(False, "job.q1.runs"), held(None, "job.q1.acks")],
        of=scenario(must_judge=("nothing-law",)),
    )
    (suite,) = suites(reached)
    found = cases(suite)
    assert list(found) == [
        *(f"law {one.law.id}: {one.law.sentence}" for one in LAWS),
        "expect job.q1.outcome",
        "expect job.q1.runs",
        "expect job.q1.acks",
        "run",
    ]
    kinds = {name: sorted(Counter(child.tag for child in case).items()) for name, case in found.items()}
    assert list(kinds.values()) == [
        [("failure", 2)],
        [],
        [("skipped", 1)],
        [("skipped", 1)],
        [("skipped", 1)],
        [("error", 1)],
        [],
        [("failure", 1)],
        [("error", 1)],
        [("error", 1)],
    ]
    results = [child for case in found.values() for child in case if child.tag != "skipped"]
    assert len(results) == len(reached.findings)
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("10", "3", "3")
    text = results[0].text or ""
    assert "seen   seen this" in text
    assert "due    due that" in text


def test_two_expectations_of_one_path_are_told_apart() -> None:
    """By their lines."""
    (suite,) = suites(verdict(expectations=[held(True, line=30), held(False, line=31)]))
    shown = [len(case) for case in suite.findall("testcase")]
    assert shown == [0, 1, 0]


@pytest.mark.parametrize(
    ("reached", "tag"),
    [
        (verdict(step_entries(), stop=StepFailed("too late")), "failure"),
        (verdict(step_entries(), stop=SutFault("it died")), "error"),
        (verdict(interrupted=True), "error"),
        (verdict(), None),
    ],
)
def test_the_run_itself_is_a_case(reached: Verdict, tag: str | None) -> None:
    """With its time."""
    (suite,) = suites(reached)
    case = cases(suite)["run"]
    assert [child.tag for child in case] == ([tag] if tag else [])
    assert case.get("time") == "1.25"


def test_what_is_to_be_known_stands_in_the_runs_case() -> None:
    """It fails nothing."""
    (suite,) = suites(replace(verdict(), notices=(Notice("mine", "did not end\x00", 4),)))
    case = cases(suite)["run"]
    assert [(child.tag, child.text) for child in case] == [("system-out", "mine did not end\ufffd (journal 4)")]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")


def test_characters_that_xml_lacks_do_not_break_it() -> None:
    """A program may have said anything."""
    (suite,) = suites(verdict(step_entries(), stop=SutFault("it said \x00\x1b[31m \ud800 & <b> ]]> 🦓;\n \x0b words")))
    (error,) = cases(suite)["run"]
    told = f"{error.get('message')} {error.text}"
    assert "& <b> ]]> 🦓;" in told
    assert "words" in told


def test_one_document_over_several_runs(tmp_path: Path) -> None:
    """A suite each, for the owner only."""
    path = tmp_path / "all.xml"
    write_junit(path, [result(verdict(laws=LAWS), tmp_path), result(verdict(), tmp_path)])
    root = ET.parse(path).getroot()
    assert len(root.findall("testsuite")) == 2
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("8", "2", "1")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written() -> None:
    """An error of the environment."""
    with pytest.raises(EnvironmentFault, match="No space left"):
        write_junit(Path("/dev/full"), [result(verdict(), Path())])


def test_what_cannot_be_asked_of_a_program_is_skipped() -> None:
    reached = verdict(stop=NotApplicable("not applicable: it has no such capability"))
    assert reached.not_applicable
    (suite,) = suites(reached)
    assert [(child.tag, child.get("message")) for child in cases(suite)["run"]] == [
        ("skipped", "not applicable: it has no such capability")
    ]
