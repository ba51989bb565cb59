"""`lab list` and `lab validate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from lab.commands.loading import check_revisions, check_scripts, load
from lab.errors import ContractError, ExitStatus, ScenarioErrors, UsageError
from lab.scenario.loader import find_scenarios

DEFAULT = (Path("scenarios"),)


def list_command(paths: Sequence[Path], as_json: bool) -> ExitStatus:
    """Print each scenario's name, promise and tags."""
    scenarios = [load(path) for path in find_scenarios(paths or DEFAULT)]
    if as_json:
        rows = [
            {"scenario": one.name, "about": one.about, "tags": list(one.tags), "file": str(one.file)}
            for one in scenarios
        ]
        click.echo(json.dumps(rows, indent=2))
        return ExitStatus.HELD
    width = max(len(one.name) for one in scenarios)
    for one in scenarios:
        tags = f"   [{' '.join(one.tags)}]" if one.tags else ""
        click.echo(f"{one.name:<{width}}   {one.about}{tags}")
    return ExitStatus.HELD


def _mistakes(path: Path) -> list[str]:
    """Every mistake of a scenario; those of agent2's scripts, then of revisions, once it is sound itself."""
    try:
        scenario = load(path)
        check_scripts(scenario)
    except ScenarioErrors as errors:
        return [str(error) for error in errors.errors]
    except UsageError as error:
        return [str(error)]
    try:
        check_revisions(scenario)
    except ContractError as error:
        return [f"{path}: {error}"]
    return []


def validate_command(paths: Sequence[Path], as_json: bool) -> ExitStatus:
    """Load each scenario and print every mistake."""
    files = find_scenarios(paths or DEFAULT)
    mistakes: dict[str, list[str]] = {}
    for path in files:
        found = _mistakes(path)
        if found:
            mistakes[str(path)] = found
    if as_json:
        rows = [{"file": str(path), "mistakes": mistakes.get(str(path), [])} for path in files]
        click.echo(json.dumps(rows, indent=2))
    else:
        for path in files:
            for mistake in mistakes.get(str(path), []):
                click.echo(mistake, err=True)
        wrong = len(mistakes)
        click.echo(f"{len(files) - wrong} of {len(files)} scenarios are sound")
    return ExitStatus.USAGE if mistakes else ExitStatus.HELD
