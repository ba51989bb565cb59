"""The machine's view."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lab.laws.law import Status
from lab.report.result import result_json
from lab.run.figures import FIGURE_NAMES
from lab.run.notices import Notice
from lab.run.verdict import Finding, Outcome
from tests.run.made import held, judged, result, verdict, violation


def test_its_members_and_values(tmp_path: Path) -> None:
    """All that a script needs, as JSON values."""
    laws = [judged(Status.BROKEN, violation("some-law", "local_agent", 1)), judged(Status.NOTHING, law="b", count=0)]
    made = result_json(result(verdict(laws=laws, expectations=[held(None)]), tmp_path))
    assert json.loads(json.dumps(made)) == made
    assert {
        name: made[name] for name in ("scenario", "outcome", "exitStatus", "seed", "clock", "seconds", "again")
    } == {
        "scenario": "made",
        "outcome": "fail",
        "exitStatus": 1,
        "seed": 7,
        "clock": "real",
        "seconds": 1.25,
        "again": "lab run x.yaml --seed 7",
    }
    assert made["file"] == "scenarios/made.yaml"
    assert made["folder"] == str(tmp_path)
    assert made["versions"] == {"lab": "0.1.0"}
    assert tuple(made["figures"]) == FIGURE_NAMES
    assert [(law["id"], law["party"], law["status"], law["judged"]) for law in made["laws"]] == [
        ("some-law", "local_agent", "broken", 1),
        ("b", "local_agent", "nothing", 0),
    ]
    assert made["expectations"] == [{"path": "job.q1.outcome", "held": None, "seen": "seen", "due": "due"}]
    assert made["findings"][0] == {
        "outcome": "fail",
        "head": "some-law",
        "sentence": "The promise of some-law",
        "seen": "seen this",
        "due": "due that",
        "nearMiss": "the nearest miss",
        "requirements": ["SQ-020"],
        "participant": "local_agent",
        "journal": [1],
        "line": 0,
        "content": [],
    }
    assert made["findings"][1]["outcome"] == "unknown"
    assert made["notices"] == []


def test_the_places_of_content_and_what_is_to_be_known(tmp_path: Path) -> None:
    """By name and journal number."""
    finding = Finding(Outcome.FAIL, "some-law", "It.", content=("event 1 is fixtures/a.yaml:7",))
    notice = Notice("local_agent", "did not end", 9)
    made = result_json(result(replace(verdict(), findings=(finding,), notices=(notice,)), tmp_path))
    assert made["findings"][0]["content"] == ["event 1 is fixtures/a.yaml:7"]
    assert made["notices"] == [{"participant": "local_agent", "text": "did not end", "journal": 9}]
