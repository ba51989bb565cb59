"""JUnit XML: a suite a run; a case a law, an expectation, and one for the run itself, with all else that was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from lab.laws import Status
from lab.private_files import write_private
from lab.report.words import details, headline, notice_line
from lab.run.runner import RunResult
from lab.run.verdict import Finding, Outcome

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_text(results: Sequence[RunResult]) -> str:
    """One document over all runs."""
    document = JUnitXml("lab")
    for result in results:
        # Not `add_testsuite`, which melts suites of one name together.
        document.append(_suite(result))  # type: ignore[no-untyped-call]
    document.update_statistics()  # type: ignore[no-untyped-call]
    return str(document.tostring().decode())  # type: ignore[no-untyped-call]


def write_junit(path: Path, results: Sequence[RunResult]) -> None:
    """Write the document; a place that cannot be written raises `EnvironmentFault`."""
    write_private(path, junit_text(results))


def _suite(result: RunResult) -> TestSuite:
    suite = TestSuite(result.scenario.name)
    left = list(result.verdict.findings)

    def take(head: str, sentence: str, line: int | None = None) -> list[Finding]:
        taken = [
            finding
            for finding in left
            if (finding.head, finding.sentence) == (head, sentence) and line in (None, finding.line)
        ]
        left[:] = [finding for finding in left if finding not in taken]
        return taken

    for judged in result.verdict.judged:
        case = _case(result, f"law {judged.law.id}: {judged.law.sentence}", take(judged.law.id, judged.law.sentence))
        if judged.status in (Status.NOTHING, Status.EXCUSED, Status.UNKNOWN):
            case.result = [*case.result, Skipped(judged.status.value)]
        suite.add_testcase(case)
    for held in result.verdict.held:
        path = held.expectation.path
        suite.add_testcase(_case(result, f"expect {path}", take("expectation", path, held.expectation.line)))
    run = _case(result, "run", left)
    run.time = round(result.seconds, 3)
    if result.verdict.outcome is Outcome.INTERRUPTED:
        run.result = [*run.result, Error("interrupted")]
    if result.verdict.notices:
        run.system_out = _sound("\n".join(notice_line(notice) for notice in result.verdict.notices))
    suite.add_testcase(run)
    return suite


def _case(result: RunResult, name: str, findings: Sequence[Finding]) -> TestCase:
    case = TestCase(name, classname=f"lab.{result.scenario.name}")
    case.result = [_result(finding, str(result.scenario.file)) for finding in findings]
    return case


def _result(finding: Finding, scenario_file: str) -> Failure | Error | Skipped:
    if finding.head == "requires":
        # What could not be asked of this program is no error of it.
        return Skipped(_sound(finding.sentence))
    kind = Failure if finding.outcome is Outcome.FAIL else Error
    outcome = kind(_sound(headline(finding)), finding.head)
    outcome.text = _sound("\n".join(f"{word:<6} {text}" for word, text in details(finding, scenario_file)))
    return outcome


def _sound(text: str) -> str:
    """`text` without the characters that XML 1.0 does not have."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
