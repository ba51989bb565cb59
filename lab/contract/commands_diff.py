"""`lab contract diff`: where the lab's contract and another folder differ."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("diff")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the lines.")
def diff_command(*, folder: Path, as_json: bool) -> None:
    """Say in words where the lab's own contract and the folder DIR differ.

    The lab's is taken at the revision of DIR, if it has that one. What is a choice of the lab names its requirement;
    the rest contradicts a stated rule. Vectors and README are not compared.

    Exit status: 0 no difference, 1 a difference, 2 a file of DIR cannot be read; all of them are then listed.
    """
    import json

    from lab.contract.diff import Documents, diff, to_text
    from lab.contract.folder import read_folder
    from lab.errors import ContractError, ExitStatus
    from lab.protocol.contract import default_contract_folder, read_documents

    files = read_folder(folder)
    for fault in files.faults:
        click.echo(f"error: {fault}", err=True)
    if files.faults:
        raise SystemExit(ExitStatus.USAGE)
    theirs = Documents(files.index, files.schemas)
    own = default_contract_folder()
    try:
        known = read_folder(own).revisions
        ours = Documents(*read_documents(own, theirs.revision if theirs.revision in known else None))
    except ContractError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(ContractError.exit_status) from error
    found = diff(ours, theirs)
    if as_json:
        revisions = {"ours": ours.revision, "theirs": theirs.revision}
        differences = [difference.to_json() for difference in found]
        click.echo(json.dumps({"folder": str(folder), "revisions": revisions, "differences": differences}, indent=2))
    elif found:
        click.echo(to_text(found))
    else:
        click.echo(f"no difference, at revision {ours.revision}")
    raise SystemExit(ExitStatus.BROKEN if found else ExitStatus.HELD)
