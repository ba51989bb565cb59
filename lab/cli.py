"""The commands, thin: names, options and help. What a command needs is imported when it is called."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import lab
from lab.errors import ExitStatus, LabError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
LAZY = {"contract": "lab.contract.commands:contract", "serve": "lab.commands.serve:serve"}
"""Groups that are imported when they are called or asked for help."""

SET_HELP = "Set a value of the scenario (gateway.tenant_mode=hosted) or a profile's blank (sut.NAME=VALUE)."
PARTNER_HELP = "The partner API: reference, fixture (the one whose private output file is there), or its URL."
AGENT_HELP = "reference, attach, a profile of scenarios/profiles/, or a command line."


class LazyGroup(click.Group):
    """A group that knows its larger parts by name only."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted((*super().list_commands(ctx), *LAZY))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        module, _, name = LAZY[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        rows = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        rows += [("contract", "The contract and the requirements: what the tests show of them.")]
        rows += [("serve", "One double, the reference Local Agent or the fault proxies, as a program of its own.")]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(lab.__version__, prog_name="lab")
def cli() -> None:
    """Drive a program through doubles of all around it, break the network on purpose, see which promises held.

    Exit status: 0 all promises held, 1 a promise broke, 2 the scenario or the usage is wrong, 3 the lab or its
    environment failed, 4 unknown (a fault never fired, a law that had to be judged was not), 130 after Ctrl-C.
    """


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    from lab.durations import parse_duration

    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _settings(values: Sequence[str]) -> dict[str, str]:
    settings = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{value}` is not of the form NAME=VALUE", param_hint="--set")
        settings[name] = text
    return settings


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|DIR…")
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of all that is drawn; by default the scenario's own, else a fresh one."
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="K=V",
    help=SET_HELP,
)
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    default="real",
    show_default=True,
    help="virtual: simulated network and time, the reference agent only; minutes pass in milliseconds.",
)
@click.option("--check-determinism", is_flag=True, help="Run twice on the virtual clock and compare the journals.")
@click.option("--local-agent", metavar="WHAT", help=AGENT_HELP)
@click.option("--partner", metavar="WHAT", help=PARTNER_HELP)
@click.option(
    "--faults",
    metavar="embedded|HOST:PORT",
    default="embedded",
    show_default=True,
    help="What carries the links: the lab's own engine, or a Toxiproxy server on this machine.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Where runs leave files.",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML over all runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only scenarios with this tag; repeatable.")
def run(
    paths: tuple[Path, ...],
    seed: int | None,
    sets: tuple[str, ...],
    clock: str,
    check_determinism: bool,
    local_agent: str | None,
    partner: str | None,
    faults: str,
    out: Path,
    junit: Path | None,
    as_json: bool,
    tags: tuple[str, ...],
) -> ExitStatus:
    """Run scenarios, one after the other, and judge every law in each."""
    from lab.commands.run import RunCommand

    settings = _settings(sets)
    return RunCommand(
        paths, seed, settings, local_agent, out, junit, as_json, tags, clock, check_determinism, faults, partner
    ).carry_out()


FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".orca/logs"),
    show_default=True,
    help="Where the private files of the environment lie.",
)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="SCENARIO")
@click.option("--ttl", default="30m", show_default=True, callback=_seconds, help="How long it stays.")
@click.option(
    "--port",
    type=click.IntRange(0, 65528),
    default=3000,
    show_default=True,
    help="Base port: the partner API is at +5, the store at +6, the issuer at +7; 0 takes free ones.",
)
@FOLDER
@click.option(
    "--journal", type=click.Path(path_type=Path, dir_okay=False), help="Write the journal to this file (0600)."
)
def up(path: Path, ttl: float, port: int, folder: Path, journal: Path | None) -> ExitStatus:
    """Keep the partner leg of a scenario alive, for who writes a partner's server: endpoints, keys, and a tour."""
    from lab.commands.up import bring_up

    return bring_up(path, ttl, port, folder, journal)


@cli.command()
@click.argument("target", required=False, metavar="[LINK|PARTICIPANT]")
@click.argument("kind", required=False, metavar="[KIND]")
@click.argument("values", nargs=-1, metavar="[VALUE…]")
@click.option("--for", "lasts", metavar="TIME", help="How long it lasts, such as 5s; without it until `heal`.")
@FOLDER
def fault(target: str | None, kind: str | None, values: tuple[str, ...], lasts: str | None, folder: Path) -> ExitStatus:
    """Break or heal a link of a running `lab up`: cut, reset, heal, delay 200ms, weather NAME, toxic TYPE NAME=VALUE.

    `lab fault store crash --for 2s` lets a participant die; without arguments it tells the links that there are.
    """
    from lab.commands.fault import order

    return order(target, kind, values, lasts, folder)


@cli.command()
@click.argument("mode", type=click.Choice(["check", "test", "fixture-mock", "fixture"]))
@click.option("--workspace", type=click.Path(path_type=Path, file_okay=False), help="The API's worktree, absolute.")
@click.option(
    "--api-port",
    type=click.IntRange(1, 65529),
    default=3000,
    show_default=True,
    help="The port that the workspace has reserved for its API; the fixture takes +5, its mock MCP +6.",
)
@click.option("--ca", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Authority of an HTTPS store.")
def fixture(mode: str, workspace: Path | None, api_port: int, ca: Path | None) -> ExitStatus:
    """Start a partner API's own fixture script, tell when it is ready, and stay until it ends."""
    from lab.commands.fixture import start_script

    return start_script(mode, workspace, api_port, ca)


@cli.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="SCENARIO")
@click.option("--runs", type=click.IntRange(1), default=200, show_default=True, help="How many fault plans to try.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Begin no further plan after so long.")
@click.option("--workers", type=click.IntRange(1), help="Processes side by side; by default one for each processor.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the plans and their runs.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/explore"),
    show_default=True,
    help="Where scenarios that fail are written. With scripts of agent2 it lies in the scenario's own project.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def explore(
    path: Path, runs: int, minutes: float | None, workers: int | None, seed: int, out: Path, as_json: bool
) -> ExitStatus:
    """Try drawn fault plans on a scenario, on the virtual clock, and make small what fails."""
    from lab.commands.explore import ExploreCommand

    if minutes is not None and minutes != minutes:
        raise click.BadParameter("`nan` is no number of minutes", param_hint="--minutes")

    return ExploreCommand(path, runs, minutes, workers or os.cpu_count() or 1, seed, out, as_json).carry_out()


@cli.command("list")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE|DIR]…")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_scenarios(paths: tuple[Path, ...], as_json: bool) -> ExitStatus:
    """List scenarios with their promise (those of scenarios/ by default)."""
    from lab.commands.scenarios import list_command

    return list_command(paths, as_json)


@cli.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE|DIR]…")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def validate(paths: tuple[Path, ...], as_json: bool) -> ExitStatus:
    """Check scenarios without running them; every mistake is told at its place."""
    from lab.commands.scenarios import validate_command

    return validate_command(paths, as_json)


@cli.command()
@click.argument("identifier", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(identifier: str, as_json: bool) -> ExitStatus:
    """Explain a law, a requirement, a wire error code or its close code."""
    from lab.commands.explain import explain_command

    return explain_command(identifier, as_json)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command; errors that a user can cause are one clear sentence each, never a traceback."""
    return _guarded(lambda: _call(arguments))


def _call(arguments: Sequence[str]) -> Any:
    # Not `cli.main`, which takes a reader that went away for a failure.
    try:
        with cli.make_context("lab", list(arguments)) as ctx:
            return cli.invoke(ctx)
    except click.exceptions.Exit as asked:
        return asked.exit_code


def _guarded(command: Callable[[], Any]) -> int:
    try:
        status = command()
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx is not None else "")
        return ExitStatus.USAGE
    except click.ClickException as error:
        error.show()
        return ExitStatus.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("lab: interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except LabError as error:
        click.echo(f"lab: {error}", err=True)
        return error.exit_status
    except BrokenPipeError:
        # The reader went away; what is left in the buffer must not raise again at exit.
        _silence()
        return ExitStatus.HELD
    except OSError as error:
        # Commands turn what they meet into sentences of their own, so this is the output's.
        _silence()
        click.echo(f"lab: the output could not be written: {error.strerror}.", err=True)
        return ExitStatus.LAB_FAILED
    except Exception as defect:  # noqa: BLE001  not 1, which would say that a promise broke
        traceback.print_exception(defect)
        click.echo(f"lab: a defect of the lab: {type(defect).__name__}; the lines above say where.", err=True)
        return ExitStatus.LAB_FAILED
    return int(status) if isinstance(status, int) else ExitStatus.HELD


def _silence() -> None:
    """What is left in the buffer of standard output must not raise again at the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
