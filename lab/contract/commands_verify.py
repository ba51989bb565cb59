"""`lab contract verify`: judge a contract folder by its own vectors and traces."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--unknown-types", is_flag=True, help="Judge DIR though it has frame types that the lab does not know.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def verify_command(*, folder: Path | None, unknown_types: bool, as_json: bool) -> None:
    """Run the vectors and traces of a contract folder, in each of its revisions, and lint it.

    DIR is the contract in use unless another is named; what `lab contract use` took with types that the lab does not
    know is judged with them. Exit status: 0 all as due, 1 a surprise, 2 the folder cannot
    be used; all its faults are then listed.
    """
    import json

    from lab.contract.chosen import contract_in_use
    from lab.contract.verify import verify
    from lab.errors import ContractError

    try:
        if folder is None:
            chosen = contract_in_use()
            folder, unknown_types = chosen.folder, unknown_types or chosen.commit is not None
        found = verify(folder, unknown_types=unknown_types)
    except ContractError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(ContractError.exit_status) from error
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
    elif not found.faults:
        click.echo(found.to_text())
    for fault in found.faults:
        click.echo(f"error: {fault}", err=True)
    for surprise in found.surprises:
        click.echo(f"surprise: {surprise}", err=True)
    raise SystemExit(found.exit_status)
