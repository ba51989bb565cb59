"""`lab up`: the partner leg as an environment that stays until its time is over, with a tour to copy."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from dataclasses import replace
from pathlib import Path

import click

from lab.commands.loading import load
from lab.commands.serving import life_of_a_server, tell
from lab.errors import ExitStatus, UsageError
from lab.scenario.model import Scenario
from lab.up.environment import Environment, start_environment
from lab.up.files import check_free
from lab.up.tour import tour_text

QUESTION = "What does product 9001 cost?"
FOLDER = Path(".orca/logs")
"""Where `lab fault` looks when it is not told another folder."""
LONGEST_SECONDS = 86_400.0


def bring_up(path: Path, ttl: float, base_port: int, folder: Path, journal: Path | None) -> ExitStatus:
    """Load the scenario and keep its participants for `ttl` seconds, or until a signal."""
    if not 1 <= ttl <= LONGEST_SECONDS:
        raise UsageError(f"--ttl: seen {ttl:g} s, due 1 s to 24 h.")
    scenario = load(path)
    if scenario.partner is None:
        raise UsageError(
            f"{path}: `lab up` is for scenarios of the partner leg; `lab serve` has the chat leg's doubles."
        )
    if scenario.partner.api.use != "reference":
        raise UsageError(f"{path}: `lab up` starts the lab's own partner API; the scenario uses another.")
    check_free(folder, time.time_ns() // 1_000_000)
    # Whoever has its keys keeps them over a crash that he orders.
    lasting = replace(scenario.partner, api=replace(scenario.partner.api, keeps_state=True))
    return asyncio.run(_stay(replace(scenario, partner=lasting), ttl, base_port, folder, journal))


async def _stay(scenario: Scenario, ttl: float, base_port: int, folder: Path, path: Path | None) -> ExitStatus:
    with life_of_a_server(path) as (ctx, stopped):
        environment = await start_environment(ctx, scenario, base_port, folder, ttl, os.getpid())
        try:
            _show(environment, scenario, ttl)
            ctx.journal.listen(tell)
            try:
                async with asyncio.timeout(ttl):
                    await stopped.wait()
                click.echo("ended", err=True)
            except TimeoutError:
                click.echo(f"its time of {ttl:g} s is over; `lab up` starts a new one, with new keys", err=True)
        finally:
            await environment.close()
    return ExitStatus.HELD


def _show(environment: Environment, scenario: Scenario, ttl: float) -> None:
    width = max(map(len, environment.endpoints))
    minutes = f"{ttl / 60:g} min" if ttl >= 60 else f"{ttl:g} s"
    click.echo(f"{scenario.name} · up for {minutes}, with keys of its own; Ctrl-C ends it and removes them\n")
    for what, where in environment.endpoints.items():
        click.echo(f"  {what.ljust(width)}  {where}")
    click.echo("\nthe tour, for a second terminal in this folder:\n")
    has_store = environment.world.model.settings.agents[0].mcp is not None
    click.echo(tour_text(environment.shell, QUESTION, has_store=has_store))
    links = " ".join(environment.world.links)
    click.echo(f"break and heal its links ({links}), for instance:")
    folder = environment.folder
    where = "" if folder == FOLDER else f" --folder {shlex.quote(str(folder))}"
    for fault in ("partner_api cut --for 5s", "store delay 800ms --for 1m", "store heal"):
        click.echo(f"  lab fault {fault}{where}")
    click.echo()
