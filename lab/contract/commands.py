"""`lab contract …`: the commands over the contract folders and the requirements ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lab.contract.commands_diff import diff_command
from lab.contract.commands_reference import reference_command
from lab.contract.commands_trace import trace_command
from lab.contract.commands_use import use_command
from lab.contract.commands_verify import verify_command

if TYPE_CHECKING:
    from lab.contract.coverage import Coverage


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def contract() -> None:
    """Check the contract folders and count what the tests show of the requirements."""


contract.add_command(diff_command)
contract.add_command(reference_command)
contract.add_command(trace_command)
contract.add_command(use_command)
contract.add_command(verify_command)


@contract.command("coverage")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--missing", is_flag=True, help="List the ids that no test shows.")
@click.option("--accept", is_flag=True, help="Record the ids shown now, also when some dropped out.")
@click.option(
    "--requirements",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the ledger.  [default: the project's contract/requirements]",
)
@click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the tests.  [default: the project's tests]",
)
def coverage_command(
    *, as_json: bool, missing: bool, accept: bool, requirements: Path | None, tests: Path | None
) -> None:
    """Count which requirements the tests show.

    Exit status: 0 fine, 1 a test that showed a requirement is gone, 2 a test names an id that is not in the ledger,
    or a file cannot be used.
    """
    from lab.contract.coverage import coverage, dropped
    from lab.contract.requirements import default_requirements_folder, load_requirements
    from lab.contract.shown import SHOWN_FILE, default_tests_folder, read_markers, read_shown, write_shown
    from lab.errors import ContractError, ExitStatus

    folder = requirements or default_requirements_folder()
    record = folder / SHOWN_FILE
    try:
        found = coverage(load_requirements(folder), read_markers(tests or default_tests_folder()))
        baseline = () if accept and not _holds_ids(record) else read_shown(record)
        gone = dropped(found, baseline)
        if accept and not found.unknown:
            write_shown(record, found.shown)
    except ContractError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(ContractError.exit_status) from error
    _print(found, gone, as_json=as_json, missing=missing)
    if found.unknown:
        click.echo(_unknown_message(found), err=True)
        raise SystemExit(ExitStatus.USAGE)
    if accept:
        click.echo(f"{record}: {len(found.shown)} ids recorded, {len(gone)} of the earlier ones given up", err=True)
    elif gone:
        click.echo(_dropped_message(gone), err=True)
        raise SystemExit(ExitStatus.BROKEN)
    elif fresh := len(set(found.shown) - set(baseline)):
        click.echo(f"{fresh} shown for the first time; `--accept` records them in {record}", err=True)


def _print(found: Coverage, gone: tuple[str, ...], *, as_json: bool, missing: bool) -> None:
    import json

    if as_json:
        click.echo(json.dumps({**found.to_json(), "dropped": list(gone)}, indent=2))
    else:
        click.echo(found.to_text(missing=missing))


def _unknown_message(found: Coverage) -> str:
    places = "\n".join(f"  {marker}" for marker in found.unknown)
    return f"error: tests name ids that are not in the ledger:\n{places}\nCorrect the marker or add the entry."


def _dropped_message(gone: tuple[str, ...]) -> str:
    return (
        f"error: no test shows these requirements any longer: {', '.join(gone)}\n"
        "Give them a test again, or give them up with `lab contract coverage --accept`."
    )


def _holds_ids(record: Path) -> bool:
    return record.exists() and bool(record.read_text(encoding="utf-8").strip())
