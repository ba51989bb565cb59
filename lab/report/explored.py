"""What an exploration tells: how far it is, each way to fail, and what came of it, as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.text import Text

from lab.explore.campaign import Campaign, Found
from lab.explore.search import Progress
from lab.report.console import PatientConsole
from lab.report.numbers import plural

TOLD_EACH = 5.0
"""Seconds between two lines of progress where there is no spinner."""


class Ending(StrEnum):
    """How an exploration came to its end."""

    DONE = "done"
    """Everything was tried, or the time was over."""
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """Something went wrong; the error says what."""


@dataclass(frozen=True)
class Asked:
    """What an exploration was asked for, and how many pairs of a fault and a moment it may strike."""

    file: Path
    seed: int
    runs: int
    out: Path
    strikable: int


def progress_line(asked: Asked, progress: Progress, seconds: float) -> str:
    """How far it is after so many seconds of the machine."""
    rate = progress.runs / max(seconds, 1e-9)
    return (
        f"{progress.runs} of {asked.runs} runs · {rate:.1f} runs/s · {progress.simulated:.0f} s simulated · "
        f"{len(progress.struck)} of {asked.strikable} (fault × moment) struck · {progress.failures} failed"
    )


def found_lines(found: Found) -> list[Text]:
    """A way to fail, as soon as it is there."""
    return [
        Text(f"FAIL  {', '.join(found.broken)}", "bold red"),
        *(Text(f"      {line}") for said in found.said for line in said.splitlines()),
        *(Text(f"      fault  {planned.fault.kind} {planned.fault.target}", "dim") for planned in found.plan),
        Text(f"      again: {found.command}"),
    ]


def summary_lines(asked: Asked, campaign: Campaign, seconds: float, ending: Ending) -> list[Text]:
    """What came of it, the verdict last."""
    found = campaign.found
    lines = [progress_line(asked, campaign.progress, seconds)]
    lines += [
        f"{', '.join(one.broken)}: {plural(more, 'more plan')} failed so"
        for one in found
        if (more := campaign.more(one))
    ]
    left_out = []
    if not_tried := asked.runs - campaign.progress.runs:
        left_out.append(f"{plural(not_tried, 'plan')} not tried")
    if large := sum(not one.small for one in found):
        left_out.append(f"{plural(large, 'way')} to fail not made small")
    if left_out:
        lines.append(f"left out: {', '.join(left_out)}")
    return [*(Text(f"  {line}", "dim") for line in lines), _verdict(asked, found, ending)]


def _verdict(asked: Asked, found: tuple[Found, ...], ending: Ending) -> Text:
    if found:
        return Text(f"FAIL  {plural(len(found), 'way')} to fail, in {asked.out}", "bold red")
    if ending is Ending.DONE:
        return Text("PASS  no plan broke a promise", "bold green")
    return Text(f"{ending.value.upper()}  no plan broke a promise", "bold red")


def exploration_json(asked: Asked, campaign: Campaign, seconds: float, ending: Ending) -> dict[str, Any]:
    """The same as JSON values."""
    progress = campaign.progress
    return {
        "scenario": str(asked.file),
        "seed": asked.seed,
        "ending": ending.value,
        "runs": progress.runs,
        "notTried": asked.runs - progress.runs,
        "failures": progress.failures,
        "seconds": round(seconds, 3),
        "simulatedSeconds": round(progress.simulated, 3),
        "struck": [
            {"fault": kind, "moment": moment, "times": count}
            for (kind, moment), count in sorted(progress.struck.items())
        ],
        "strikable": asked.strikable,
        "found": [
            {
                "plan": found.number,
                "broken": list(found.broken),
                "said": list(found.said),
                "faults": [f"{planned.fault.kind} {planned.fault.target}" for planned in found.plan],
                "small": found.small,
                "file": str(found.file),
                "again": found.command,
                "more": campaign.more(found),
            }
            for found in campaign.found
        ],
    }


class Live:
    """Progress: one line that changes, with a spinner, else a line now and then."""

    def __init__(self, console: PatientConsole, spins: bool) -> None:
        self._console = console
        self._status = console.status("…") if spins and console.is_terminal else None
        self._told = time.monotonic()

    def start(self) -> None:
        """Begin to spin."""
        if self._status is not None:
            self._status.start()

    def __call__(self, line: str) -> None:
        """Tell how far it is."""
        if self._status is not None:
            self._status.update(line)
        elif time.monotonic() - self._told >= TOLD_EACH:
            self._told = time.monotonic()
            self._console.say(Text(f"  {line}", "dim"))

    def stop(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def live(console: PatientConsole, *, spins: bool) -> Iterator[Live]:
    """Progress while the block lasts. A spinner is a thread, so `spins` is only for a process that runs no trial."""
    shown = Live(console, spins)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
