"""The `lab` command in a child, as a user has it, and a small project to run it in."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAB = (sys.executable, "-m", "lab")
PATIENCE = 40.0
"""Seconds that a child may take for anything, on a busy machine."""


def environment(**more: str) -> dict[str, str]:
    """The caller's, with the project to be found from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}


def lab(
    *arguments: str | Path,
    cwd: Path = ROOT,
    before: Callable[[], None] | None = None,
    patience: float = PATIENCE,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. `before` acts in the child before it begins."""
    return subprocess.run(
        [*LAB, *map(str, arguments)],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
        preexec_fn=before,
        check=False,
    )


class Child:
    """A command that goes on; its output is read line by line. Use it as a context: it is killed at the end.

    `before` acts in the child before it begins.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*LAB, *map(str, arguments)],
            cwd=cwd,
            env=environment() if env is None else env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=before,
        )
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def until(self, part: str) -> str:
        """The next line that holds `part`."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line with {part!r} came, only {self.text}") from None
            if line is None:
                raise AssertionError(f"it ended without {part!r}: {self.text}")
            self.lines.append(line)
            if part in line:
                return line

    def send(self, number: signal.Signals) -> None:
        """A signal to the command itself."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Its exit status, once it is gone and all it said is in `text`."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while (line := self._queue.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        return status

    @property
    def text(self) -> str:
        """What was read so far."""
        return "".join(self.lines)


def make_project(folder: Path, **scenarios: str) -> Path:
    """A project of these scenarios by name, with the lab's fixtures and profiles."""
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    shutil.copytree(ROOT / "scenarios" / "profiles", folder / "scenarios" / "profiles")
    for name, text in scenarios.items():
        (folder / "scenarios" / f"{name}.yaml").write_text(f"scenario: {name}\nabout: About {name}\n{text}")
    return folder


def shown_environment(text: str) -> dict[str, str]:
    """What `export` lines set, as a shell would read them."""
    import shlex

    lines = [line for line in text.splitlines() if line.startswith("export ")]
    words = [shlex.split(line) for line in lines]
    assert all(len(parts) == 2 for parts in words)
    return dict(parts[1].split("=", 1) for parts in words)
