"""`lab contract reference`: the page of frames and errors."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("reference")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file to write; - prints it.  [default: docs/protocol-reference.md]",
)
def reference_command(*, folder: Path | None, out: Path | None) -> None:
    """Render the reference of frames, limits and error codes from the schemas of a contract.

    DIR is the lab's own contract unless another is named. Exit status: 0 written, 2 the contract cannot be used, 3 the
    file cannot be written.
    """
    from lab.contract.folder import read_folder
    from lab.contract.reference import PAGE, reference_page
    from lab.errors import ContractError, EnvironmentFault
    from lab.protocol.contract import Contract, default_contract_folder

    place = folder or default_contract_folder()
    try:
        # What is wrong with a folder that tells of no revision, loading it says.
        revisions = read_folder(place).revisions or (None,)
        page = reference_page([Contract.load(place, revision) for revision in revisions])
    except ContractError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(ContractError.exit_status) from error
    if out == Path("-"):
        click.echo(page, nl=False)
        return
    file = out or PAGE
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        click.echo(f"error: {file}: cannot be written: {error.strerror}. Name another file with --out.", err=True)
        raise SystemExit(EnvironmentFault.exit_status) from error
    click.echo(f"{file} written")
