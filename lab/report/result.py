"""The machine's view of a run: `result.json`, and what `--json` prints."""

from __future__ import annotations

from typing import Any

from lab.report.target import target_of_run
from lab.run.runner import RunResult
from lab.run.verdict import Finding


def result_json(result: RunResult) -> dict[str, Any]:
    """A run as JSON values. Wall times and process facts stand here and not in the journal."""
    verdict = result.verdict
    target = target_of_run(result.entries)
    return {
        "scenario": result.scenario.name,
        "about": result.scenario.about,
        "file": str(result.scenario.file),
        "outcome": verdict.outcome.value,
        "exitStatus": int(verdict.outcome.exit_status),
        "seed": result.seed,
        "clock": result.clock,
        "seconds": round(result.seconds, 3),
        "wallSeconds": round(result.wall_seconds, 3),
        "folder": str(result.folder),
        "again": result.repeat_command,
        "findings": [_finding_json(finding) for finding in verdict.findings],
        "notices": [
            {"participant": notice.participant, "text": notice.text, "journal": notice.entry}
            for notice in verdict.notices
        ],
        "laws": [
            {
                "id": one.law.id,
                "party": one.law.party,
                "sentence": one.law.sentence,
                "status": one.status.value,
                "judged": one.judgement.judged,
                "unsure": one.judgement.unsure,
            }
            for one in verdict.judged
        ],
        "expectations": [
            {"path": one.expectation.path, "held": one.held, "seen": one.seen, "due": one.due} for one in verdict.held
        ],
        "target": target.to_json() if target else None,
        "figures": dict(verdict.figures.as_json()),
        "versions": dict(result.versions),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "outcome": finding.outcome.value,
        "head": finding.head,
        "sentence": finding.sentence,
        "seen": finding.seen,
        "due": finding.due,
        "nearMiss": finding.near_miss,
        "requirements": list(finding.requirements),
        "participant": finding.participant,
        "journal": list(finding.entries),
        "line": finding.line,
        "content": list(finding.content),
    }
