"""`lab contract use`: the gateway's contract in place of the lab's own, and back."""

from __future__ import annotations

import re
from pathlib import Path

import click

_TIP = re.compile(r"[!-~]{1,255}")


def _commit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    from lab.contract.chosen import COMMIT

    if value is not None and not COMMIT.fullmatch(value.lower()):
        raise click.BadParameter("a commit in full is due: 40 hex digits")
    return value and value.lower()


def _tip(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _TIP.fullmatch(value):
        raise click.BadParameter("the name of a branch or a commit is due, without blanks, of at most 255 characters")
    return value


class _UseCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # CT-052: the usage is printed for every wrong one, also where click leaves it out.
            error.ctx = error.ctx or ctx
            raise


@click.command("use", cls=_UseCommand)
@click.argument("folder", metavar="DIR", required=False, type=click.Path(path_type=Path))
@click.option("--commit", metavar="SHA", callback=_commit, help="The commit that DIR is of: 40 hex digits.")
@click.option("--tip", metavar="NAME", callback=_tip, help="Where the branch stood; kept in the record.")
@click.option("--unknown-types", is_flag=True, help="Take frame types that the lab does not know; it refuses them.")
@click.option("--ours", is_flag=True, help="Go back to the lab's own contract.")
def use_command(*, folder: Path | None, commit: str | None, tip: str | None, unknown_types: bool, ours: bool) -> None:
    """Go by a gateway's contract folder from now on, in runs, laws and verification.

    DIR is checked whole and copied into .lab/contract of the working folder, with a record of its source and the sha256
    of every file. A copy that differs from its record is refused at the next run. It holds for commands that are
    started in this folder.

    Exit status: 0 done, 2 wrong usage or a folder that cannot be used; all its faults are then listed and nothing is
    changed, 3 the copy cannot be written.
    """
    from lab.contract.chosen import CHOSEN_FOLDER
    from lab.contract.taking import examine, give_up, take
    from lab.errors import EnvironmentFault, ExitStatus

    home = Path.cwd() / CHOSEN_FOLDER
    try:
        if ours:
            if folder is not None or commit is not None or tip is not None or unknown_types:
                raise click.UsageError("--ours stands alone")
            was = give_up(home)
            click.echo("the lab's own contract is in use" + ("" if was else ", as before"))
            return
        if folder is None or commit is None:
            raise click.UsageError("DIR and --commit SHA are due, or --ours")
        found = examine(folder, commit, unknown_types=unknown_types)
        if not found.faults:
            record = take(home, found, commit, tip)
    except EnvironmentFault as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(EnvironmentFault.exit_status) from error
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    for fault in found.faults:
        click.echo(f"error: {fault}", err=True)
    if found.faults:
        click.echo("Nothing was changed.", err=True)
        raise SystemExit(ExitStatus.USAGE)
    for name in record.supplied:
        click.echo(f"note: {name} is the lab's own: revision {record.revision} has none", err=True)
    click.echo(f"{folder}: revision {record.revision} at {commit} is in use, {len(record.files)} files recorded")
