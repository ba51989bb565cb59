"""A real program as the system under test: started, watched and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import secrets as system_dice
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError, SutFault, UsageError
from lab.journal.events import SutChanged
from lab.private_files import open_private
from lab.sut.family import RUN_TOKEN, Family, send
from lab.sut.launch import Launch
from lab.sut.output import DEFAULT_BOUNDS, LineCutter, OutputBounds, OutputRecord

READ_BYTES = 4 * 1024
"""Taken at once, so that a flood of short lines does not hold the event loop for long."""
DRAIN_SECONDS = 0.5
"""How long the output of a dead program is awaited: a child of its may hold the pipe for ever."""
POLL_SECONDS = 0.02
KILL_SECONDS = 5.0
"""How long processes may take to vanish after SIGKILL; the kernel may hold one in a system call."""
QUOTED_CHARACTERS = 400
"""Of each line that a death report quotes."""


class SutProcess:
    """One life of a program. For a restart, make another.

    `secrets` and the values of `canaries` (by id) are hidden in all that is kept of the output; the ids of canaries
    that the program wrote are journalled. The caller awaits `stop()` in the end, also after a death.
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        launch: Launch,
        log_path: Path,
        secrets: Sequence[str],
        canaries: Mapping[str, str],
        bounds: OutputBounds = DEFAULT_BOUNDS,
    ) -> None:
        self.exited = asyncio.Event()
        """Set when the program itself is gone and what it wrote has been read."""
        self.name = name
        self._ctx = ctx
        self._launch = launch
        self._log_path = log_path
        self._secrets = secrets
        self._canaries = canaries
        self._bounds = bounds
        # Not from the run's dice: two runs with one seed must not take each other's processes for their own.
        self._token = system_dice.token_hex(16)
        self._family = Family(self._token)
        self._output: OutputRecord | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._pipes: list[asyncio.ReadTransport] = []
        self._pumps: list[asyncio.Task[None]] = []
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._killed: set[int] = set()
        self._began = 0.0
        self._lived = 0.0

    @property
    def pid(self) -> int | None:
        """The program's process id, None before its start."""
        return self._process.pid if self._process else None

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the number of the signal that ended it; None while it runs."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Start the program in a session of its own.

        A command or folder that is not there raises `UsageError`, a refusal of the system `SutFault` or
        `EnvironmentFault`. When this fails or is cancelled, nothing of the program is left.
        """
        if self._output is not None:
            raise MisuseError(f"{self.name} was started twice; a SutProcess has one life.")
        _check_startable(self.name, self._launch)
        self._output = self._open_output()
        try:
            self._process = await self._spawn(self._output)
            self._began = self._ctx.now()
            self._family.lead(self._process.pid)
            self._ctx.journal.record("sut", SutChanged(self.name, "started"))
        except BaseException:
            await self._kill()
            await self._close()
            raise
        self._watch = asyncio.get_running_loop().create_task(self._watch_exit(self._process))

    async def kill(self) -> None:
        """SIGKILL, now, to the program and all that it started; returns when all is over."""
        if self._process is not None and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(self._process, graceful=False))
        await self.stop()

    def pause(self) -> None:
        """SIGSTOP to the program and all that it started."""
        self._family.look()
        send(self._family.alive(), signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT to the program and all that it started."""
        send(self._family.alive(), signal.SIGCONT)

    async def stop(self) -> None:
        """End the program and all that it started: the stop signal, the grace, then SIGKILL.

        Returns when all is over; may be called again, also at once. Cancelled, it kills without grace.
        """
        if self._process is None:
            return
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(self._process))
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            await self._kill()
            await asyncio.shield(self._ending)
            raise

    def death_report(self) -> str:
        """How the program ended and its last lines, secrets hidden: for people, after `exited`."""
        code = self.returncode
        if code is None or self._output is None or not self.exited.is_set():
            raise MisuseError(f"{self.name} has not ended; there is no death to report.")
        lines = [line[:QUOTED_CHARACTERS] for line in self._output.last_lines()]
        quoted = "".join(f"\n  {line}" for line in lines)
        head = f"{self.name} ended with {_words(code)} after {self._lived:.1f} s"
        return f"{head}; its last lines:{quoted}" if lines else f"{head} without a word of output."

    def _open_output(self) -> OutputRecord:
        try:
            log = open_private(self._log_path)
        except OSError as error:
            raise EnvironmentFault(
                f"the log of {self.name} cannot be written at {self._log_path}: {error.strerror}."
            ) from error
        return OutputRecord(
            self.name,
            log,
            self._ctx.now,
            lambda event: self._ctx.journal.record("sut", event),
            self._secrets,
            self._canaries,
            self._bounds,
        )

    async def _spawn(self, output: OutputRecord) -> asyncio.subprocess.Process:
        """Start the program, its two streams on pipes of our own, so that its end does not wait for theirs."""
        writers: list[int] = []
        try:
            for stream in ("out", "err"):
                writers.append(await self._open_pipe(stream, output))
            return await asyncio.create_subprocess_exec(
                *self._launch.command,
                cwd=self._launch.cwd,
                env={**self._launch.environment, RUN_TOKEN: self._token},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writers[0],
                stderr=writers[1],
                start_new_session=True,
            )
        except OSError as error:
            raise SutFault(
                f"{self.name} could not be started: `{self._launch.command[0]}`: {error.strerror}."
            ) from error
        finally:
            for writer in writers:
                os.close(writer)

    async def _open_pipe(self, stream: str, output: OutputRecord) -> int:
        """A pipe whose reading end is pumped into `output`; its writing end is returned."""
        loop = asyncio.get_running_loop()
        read, write = os.pipe()
        reader = asyncio.StreamReader()
        try:
            pipe, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
            )
        except BaseException:
            os.close(write)
            raise
        self._pipes.append(pipe)
        self._pumps.append(loop.create_task(_pump(reader, LineCutter(stream, output), output)))
        return write

    async def _watch_exit(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._lived = self._ctx.now() - self._began
        await asyncio.wait(self._pumps, timeout=DRAIN_SECONDS)
        if self._ending is None:
            self._ctx.journal.record("sut", SutChanged(self.name, "exited", _detail(code)))
        self.exited.set()

    async def _end(self, process: asyncio.subprocess.Process, *, graceful: bool = True) -> None:
        """What `stop` and `kill` do, once."""
        was_alive = process.returncode is None
        try:
            # Before the signal, since a child of a dead process has lost its parent.
            self._family.look()
            if was_alive and graceful:
                self._ctx.journal.record("sut", SutChanged(self.name, "stopping"))
                send(self._family.in_group(), self._launch.stop_signal)
                await self._until_left(self._launch.grace)
        finally:
            try:
                await self._kill()
                if self._watch is not None:
                    await asyncio.wait((self._watch,), timeout=KILL_SECONDS)
                if graceful and (was_alive or self._killed):
                    self._record_end(process.returncode, len(self._killed))
            finally:
                await self._close()

    async def _until_left(self, grace: float) -> None:
        """Wait until all that got the stop signal are gone, for `grace` seconds at most."""
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        while loop.time() < end:
            if not self._family.in_group():
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _kill(self) -> None:
        """SIGKILL to the whole family until none is left. The first round never waits."""
        loop = asyncio.get_running_loop()
        end = loop.time() + KILL_SECONDS
        while loop.time() < end:
            self._family.look()
            alive = self._family.alive()
            if not alive:
                break
            self._killed.update(process.pid for process in alive)
            send(alive, signal.SIGKILL)
            await asyncio.sleep(POLL_SECONDS)

    def _record_end(self, code: int | None, killed: int) -> None:
        detail = _detail(code)
        if killed:
            detail["killed"] = killed
        left = len(self._family.alive())
        if left:
            detail["left"] = left
        self._ctx.journal.record("sut", SutChanged(self.name, "killed" if killed else "stopped", detail))

    async def _close(self) -> None:
        """Let go of pipes and log; a failure to record output is raised here."""
        for pipe in self._pipes:
            pipe.close()
        try:
            if self._process is not None and self._watch is None:
                await self._process.wait()
            # With its pipe closed each pump comes to an end, whoever may hold the other side.
            for result in await asyncio.gather(*self._pumps, return_exceptions=True):
                if isinstance(result, EnvironmentFault):
                    raise result
        finally:
            if self._output is not None:
                self._output.close()


def _check_startable(name: str, launch: Launch) -> None:
    """Say plainly what is missing before the system says it in its own words."""
    program = launch.command[0]
    if not launch.cwd.is_dir():
        raise UsageError(f"{name} cannot be started: there is no folder {launch.cwd} to start it in.")
    if "/" in program:
        file = launch.cwd / program
        if not file.is_file():
            raise UsageError(f"{name} cannot be started: there is no program {file}.")
        if not os.access(file, os.X_OK):
            raise UsageError(f"{name} cannot be started: {file} is not executable; see `chmod +x`.")
    elif shutil.which(program, path=launch.environment.get("PATH", os.defpath)) is None:
        raise UsageError(f"{name} cannot be started: no program `{program}` is on its PATH.")


async def _pump(reader: asyncio.StreamReader, cutter: LineCutter, output: OutputRecord) -> None:
    try:
        while data := await reader.read(READ_BYTES):
            cutter.feed(data)
            output.flush()
            await asyncio.sleep(0)
        cutter.end()
        output.flush()
    except OSError as error:
        raise EnvironmentFault(f"a log could not be written: {error.strerror}. Free some space.") from error


def _detail(code: int | None) -> dict[str, int | str]:
    if code is None:
        return {}
    return {"code": code} if code >= 0 else {"signal": _signal_name(-code)}


def _words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
