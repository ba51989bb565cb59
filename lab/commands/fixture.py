"""`lab fixture`: the partner API's own fixture script, started as its contract says, until it ends or Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import click

from lab.commands.real_loop import run_real
from lab.errors import ExitStatus, SutFault
from lab.run.interrupts import SIGNALS
from lab.run.partner.fixture_script import SCRIPT, Machine, Mode, ScriptStart, plan_script
from lab.run.partner.foreign import ARRIVAL_SECONDS, fresh_fixture, left_instance, store_url_of, workspace_of

GRACE_SECONDS = 10.0
"""How long the script may take to end after a signal."""


def start_script(
    mode: str, workspace: Path | None, api_port: int, ca_file: Path | None, patience: float = ARRIVAL_SECONDS
) -> ExitStatus:
    """Start the script; a fixture is followed until it is ready, and then until it ends. See `plan_script` for errors.

    A script that fails, or a fixture that is not ready within `patience` seconds, raises `SutFault`.
    """
    folder = workspace_of(os.environ) if workspace is None else workspace
    machine = Machine(shutil.which("node"), (folder / SCRIPT).is_file(), store_url_of(folder), _is_free)
    start = plan_script(Mode(mode), folder, api_port, machine, ca_file)
    return run_real(_stay(start, patience), on_asyncio=True)


async def _stay(start: ScriptStart, patience: float) -> ExitStatus:
    before = left_instance(start.workspace)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    process = await asyncio.create_subprocess_exec(
        *start.command, cwd=start.workspace, env=start.environment(os.environ), stdin=asyncio.subprocess.DEVNULL
    )
    tasks = [asyncio.ensure_future(process.wait()), asyncio.ensure_future(stopped.wait())]
    try:
        if start.mode.stays:
            tasks.append(asyncio.ensure_future(_tell_ready(start, before, patience)))
        while not (tasks[0].done() or stopped.is_set()):
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done & set(tasks[2:]):
                task.result()
                tasks.remove(task)
    finally:
        for task in tasks:
            task.cancel()
        await _end(process)
    if stopped.is_set() or process.returncode == 0:
        return ExitStatus.HELD
    raise SutFault(f"{SCRIPT} --{start.mode} ended with status {process.returncode}; what it printed says why.")


async def _tell_ready(start: ScriptStart, before: str | None, patience: float) -> bool:
    found = await fresh_fixture(start.workspace, lambda: time.time_ns() // 1_000_000, before, patience)
    click.echo(f"the fixture is ready at {found.api_origin}; drive it with `lab run … --partner fixture`")
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except (OSError, OverflowError):
        return False
    return True
