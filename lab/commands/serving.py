"""What every `lab serve` shares: its options, its life until a signal, and the lines that it tells."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from lab.clock import Clock
from lab.commands.real_loop import run_real
from lab.context import RunContext
from lab.errors import EnvironmentFault, ExitStatus, StateFault
from lab.journal.events import (
    Agent2Job,
    Agent2Request,
    Defect,
    Frame,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
)
from lab.journal.partner_events import IssuerRequest, PartnerRequest, StoreRequest
from lab.journal.writer import Entry, Journal
from lab.partner.model.words import Code
from lab.run.defects import catch_loop_errors
from lab.run.ending import Part, close_all
from lab.run.interrupts import SIGNALS

Start = Callable[[RunContext], Awaitable[Sequence[Part]]]

PORT = click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 takes a free one.")
JOURNAL = click.option(
    "--journal", type=click.Path(path_type=Path, dir_okay=False), help="Write the journal to this file (0600)."
)


def show_environment(values: Mapping[str, str], all_names: Sequence[str] = ()) -> None:
    """Print variables as a shell takes them; `all_names` are what the other side needs beside."""
    for name, value in values.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    left = [name for name in all_names if name not in values]
    if left:
        click.echo(f"# and {', '.join(left)} of its own or of `lab serve agent2`")
    sys.stdout.flush()


def serve_until_stopped(start: Start, journal: Path | None, *, on_asyncio: bool = False) -> ExitStatus:
    """Start the parts, tell what they do line by line, and end them at a signal."""
    return run_real(_until_stopped(start, journal), on_asyncio=on_asyncio)


@contextmanager
def life_of_a_server(path: Path | None) -> Iterator[tuple[RunContext, asyncio.Event]]:
    """The context of what stays until a signal sets the event, with a journal at `path` that is closed in the end.

    Inside the loop alone. A journal that cannot be written raises `EnvironmentFault`, as does a defect, at the end.
    A state that cannot be kept any more sets the event too: runs that nobody can end would be followed for ever.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    clock = Clock(loop.time, time.time_ns() // 1_000_000)
    try:
        journal = Journal(clock.now, path, keep=False)
    except OSError as error:
        raise EnvironmentFault(f"--journal {path}: {error.strerror}. Name a file that can be written.") from error
    # Nobody repeats a server's life by its seed, so its ids are nobody's to guess.
    ctx = RunContext(secrets.randbits(63), clock, journal, secret_seed=secrets.randbits(128))
    catch_loop_errors(ctx)

    def end_without_state(entry: Entry) -> None:
        if isinstance(entry.event, Defect) and isinstance(ctx.defects[-1], StateFault):
            stopped.set()

    journal.listen(end_without_state)
    try:
        yield ctx, stopped
    finally:
        journal.close()
    if ctx.defects:
        if isinstance(ctx.defects[0], EnvironmentFault):
            raise ctx.defects[0]
        raise EnvironmentFault(f"a defect of the lab: {type(ctx.defects[0]).__name__}")


async def _until_stopped(start: Start, path: Path | None) -> ExitStatus:
    with life_of_a_server(path) as (ctx, stopped):
        ctx.journal.listen(tell)
        parts = await start(ctx)
        ends = [asyncio.ensure_future(ended.wait()) for ended in (stopped, *_own_ends(parts))]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            for failure in await close_all(parts):
                ctx.fail(failure)
    return ExitStatus.HELD


def _own_ends(parts: Sequence[Part]) -> list[asyncio.Event]:
    """What is set when a part has ended by itself, such as a fixture whose time is over."""
    events = (getattr(part, "closed", None) for part in parts)
    return [event for event in events if isinstance(event, asyncio.Event)]


def tell(entry: Entry) -> None:
    """A line for what a person at the terminal wants to see; never content."""
    words = _words(entry.event)
    if words:
        # Whoever read it may have gone; the double goes on.
        with suppress(OSError):
            click.echo(f"{entry.t:9.3f}  {words}", err=True)


def _words(event: object) -> str:
    match event:
        case SocketOpened():
            return f"socket {event.conn} opened"
        case SocketRefused():
            return f"socket refused: HTTP {event.status}, {event.reason}"
        case SocketClosed():
            return f"socket {event.conn} closed: {event.code} by {event.by}"
        case SessionChanged():
            return f"session {event.state} on {event.conn}"
        case Frame():
            arrow = "->" if event.direction == "la-to-cp" else "<-"
            return f"{arrow} {event.type or 'no frame'} seq {event.seq if event.seq is not None else '?'}"
        case Agent2Request():
            return f"{event.method} {event.route} {event.status}"
        case Agent2Job():
            return f"job {event.job_id} {event.state}"
        case PartnerRequest() | StoreRequest() | IssuerRequest():
            return partner_words(event)
        case Defect() if event.error == StateFault.__name__:
            return "the state cannot be kept any more: ending"
        case Defect():
            return f"a defect of the lab: {event.error}"
        case _:
            return ""


def partner_words(event: PartnerRequest | StoreRequest | IssuerRequest) -> str:
    """A request of the partner leg in a line."""
    match event:
        case PartnerRequest():
            # A member's name, which the caller's fixed text does not tell (PRIV-021)
            why = event.facts.get("why") if event.code == Code.CHAT_INVALID else None
            code = f" {event.code}" if event.code else ""
            return f"{event.route} {event.status}{code}{f': {why}' if why else ''}"
        case StoreRequest():
            what = event.tool or event.method or event.http
            return f"store {what} {event.status}{f' refused: {event.refused}' if event.refused else ''}"
        case IssuerRequest():
            return f"issuer {event.route} {event.status}{f' {event.code}' if event.code else ''}"
