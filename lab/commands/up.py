"""`lab up`: the partner leg as an environment that stays until its time is over, with a tour to copy."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path

import click

from lab.clock import Clock
from lab.commands.loading import load
from lab.commands.serving import tell
from lab.context import RunContext
from lab.errors import EnvironmentFault, ExitStatus, UsageError
from lab.journal.writer import Journal
from lab.run.defects import catch_loop_errors
from lab.run.interrupts import SIGNALS
from lab.scenario.model import Scenario
from lab.up.environment import Environment, start_environment
from lab.up.files import check_free
from lab.up.tour import tour_text

QUESTION = "What does product 9001 cost?"
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
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    clock = Clock(loop.time, time.time_ns() // 1_000_000)
    try:
        journal = Journal(clock.now, path, keep=False)
    except OSError as error:
        raise EnvironmentFault(f"--journal {path}: {error.strerror}. Name a file that can be written.") from error
    ctx = RunContext(secrets.randbits(63), clock, journal, secret_seed=secrets.randbits(128))
    catch_loop_errors(ctx)
    try:
        environment = await start_environment(ctx, scenario, base_port, folder, ttl, os.getpid())
    except BaseException:
        journal.close()
        raise
    try:
        _show(environment, scenario, ttl)
        journal.listen(tell)
        try:
            async with asyncio.timeout(ttl):
                await stopped.wait()
            click.echo("ended", err=True)
        except TimeoutError:
            click.echo(f"its time of {ttl:g} s is over; `lab up` starts a new one, with new keys", err=True)
    finally:
        await environment.close()
        journal.close()
    if ctx.defects:
        raise EnvironmentFault(f"a defect of the lab: {type(ctx.defects[0]).__name__}")
    return ExitStatus.HELD


def _show(environment: Environment, scenario: Scenario, ttl: float) -> None:
    width = max(map(len, environment.endpoints))
    minutes = f"{ttl / 60:g} min" if ttl >= 60 else f"{ttl:g} s"
    click.echo(f"{scenario.name} · up for {minutes}, with keys of its own; Ctrl-C ends it and removes them\n")
    for what, where in environment.endpoints.items():
        click.echo(f"  {what.ljust(width)}  {where}")
    click.echo("\nthe tour, for a second terminal in this folder:\n")
    click.echo(tour_text(environment.shell, QUESTION))
    links = " ".join(environment.world.links)
    click.echo(f"break and heal its links ({links}), for instance:")
    click.echo("  lab fault partner_api cut --for 5s\n  lab fault store delay 800ms --for 1m\n  lab fault store heal\n")
