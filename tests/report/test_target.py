"""A run of the partner leg names its target, and what its figures are worth."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lab.journal.events import ParticipantDeclared
from lab.journal.writer import Journal
from lab.report.console import ConsoleReport, PatientConsole
from lab.report.page import page_text
from lab.report.result import result_json
from lab.report.target import target_of_run
from tests.run.partner.played import OPENED, play

ALONE = "what is told here holds for it alone"


@pytest.mark.req("PA-029", "US-040", "FX-008")
def test_every_report_of_a_run_names_its_target_and_calls_its_usage_synthetic(tmp_path: Path) -> None:
    result = play(tmp_path, OPENED)
    line = f"target: double · {ALONE} · its usage is synthetic, no real cost"
    text = io.StringIO()
    ConsoleReport(PatientConsole(file=text, width=200)).result(result)
    assert line in text.getvalue()
    assert line in page_text(result)
    assert result_json(result)["target"] == {"name": "double", "usage": "synthetic"}


@pytest.mark.req("PA-029", "US-040", "FX-008")
@pytest.mark.parametrize(
    ("target", "usage"), [("fixture-mock", "synthetic"), ("fixture", "synthetic"), ("live", "real")]
)
def test_only_a_live_one_costs_anything(target: str, usage: str) -> None:
    journal = Journal(lambda: 0.0)
    journal.record("run", ParticipantDeclared("partner_api", "partner_api", "attach", {"target": target}))
    found = target_of_run(journal.entries)
    assert found is not None
    assert found.to_json() == {"name": target, "usage": usage}
    assert ("synthetic" in found.line()) is (usage == "synthetic")


def test_a_run_of_the_chat_leg_has_none() -> None:
    journal = Journal(lambda: 0.0)
    journal.record("run", ParticipantDeclared("gateway", "gateway", "double"))
    assert target_of_run(journal.entries) is None
