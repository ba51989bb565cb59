"""The terminal's view of a run: a line a step while it goes on, and the verdict at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.status import Status
from rich.text import Text

from lab.journal.events import StepEnded, StepStarted
from lab.journal.writer import Entry, Journal
from lab.report.moments import Moment, Moments
from lab.report.target import target_of_run
from lab.report.words import HEADS, MEANINGS, details, figures_line, grouped, headline, laws_line, notice_line
from lab.run.folder import latest
from lab.run.runner import RunResult
from lab.run.verdict import Finding, Outcome
from lab.scenario.model import Scenario

TITLE_WIDTH = 30
MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "interrupted": ("■", "yellow")}
FAULT_MARK = ("⚡", "yellow")
STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red"}
FINDINGS_SHOWN = 8
"""Broken promises of which the first finding is printed; the others are counted, and stand in the report."""


class PatientConsole(Console):
    """A console whose reader may go away, or whose disk may be full: the run goes on in silence."""

    failure: OSError | None = None
    """Why it fell silent, unless its reader went away."""

    def on_broken_pipe(self) -> None:
        """Called by rich when the pipe is closed; its own way would end the program."""
        self._fall_silent()

    def say(self, text: Text) -> None:
        """Print without wrapping; never raises for what the other side does."""
        try:
            self.print(text, soft_wrap=True, highlight=False)
        except OSError as error:
            self.failure = error
            self._fall_silent()

    def _fall_silent(self) -> None:
        self.quiet = True
        # What is left in the buffer must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


class ConsoleReport:
    """Prints to `console`. On a terminal the step that runs is shown with a spinner."""

    def __init__(self, console: PatientConsole, clock: str = "real") -> None:
        self._console = console
        self._clock = clock
        self._started: dict[int, tuple[StepStarted, float]] = {}
        self._status: Status | None = None

    def listen(self, scenario: Scenario, seed: int, journal: Journal) -> None:
        """Begin with a scenario."""
        title = Text(f"{scenario.name} · {scenario.about}", style="bold")
        title.append(f"      seed {seed} · {self._clock} clock", style="dim")
        self._print(title)
        journal.listen(self._take)

    def _take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, StepStarted):
            self._started[event.index] = (event, entry.t)
            if self._console.is_terminal and self._clock == "real":
                self._status = self._console.status(f"{event.title} …")
                self._status.start()
        elif isinstance(event, StepEnded):
            self.pause()
            self._step(event, entry.t)

    def pause(self) -> None:
        """Take the spinner away, so that something else can be printed."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _step(self, ended: StepEnded, t: float) -> None:
        started, since = self._started[ended.index]
        mark, style = MARKS[ended.outcome]
        if started.step == "fault" and ended.outcome == "done":
            mark, style = FAULT_MARK
        line = Text("  ")
        line.append(mark, style=style)
        line.append(f" {started.title:<{TITLE_WIDTH}} {t - since:6.1f} s   ")
        line.append(ended.note.splitlines()[0] if ended.note else "", style="dim" if ended.outcome == "done" else "red")
        line.rstrip()
        self._print(line)

    def result(self, result: RunResult) -> None:
        """The verdict, what broke, and where the files are."""
        self.pause()
        verdict = result.verdict
        target = target_of_run(result.entries)
        for line in (*((target.line(),) if target else ()), laws_line(verdict), figures_line(verdict.figures)):
            self._print(Text(f"  {line}", style="dim"))
        groups = grouped(verdict.findings)
        moments = Moments(result.entries)
        told: dict[str, tuple[int, ...]] = {}
        for group in groups[:FINDINGS_SHOWN]:
            finding = group[0]
            # One law's frames once, and those of the same entries once for all laws.
            new = finding.head not in told and finding.entries not in told.values()
            told.setdefault(finding.head, finding.entries)
            self._finding(finding, str(result.scenario.file), moments, moments.around(finding) if new else ())
            if len(group) > 1:
                self._print(Text(f"      … and {len(group) - 1} more of {group[0].head}", style="dim"))
        hidden = len(groups) - FINDINGS_SHOWN
        if hidden > 0:
            self._print(Text(f"… and {hidden} more broken promises in the report"))
        for notice in verdict.notices:
            self._print(Text("NOTE  ", style="bold yellow").append(notice_line(notice), style="default"))
        self._last_line(result)

    def _finding(self, finding: Finding, scenario_file: str, moments: Moments, around: Sequence[Moment]) -> None:
        line = Text(f"{HEADS[finding.outcome]:<5} ", style=STYLES.get(finding.outcome, "bold yellow"))
        line.append(headline(finding), style="default")
        self._print(line)
        for word, text in details(finding, scenario_file):
            row = Text(f"      {word:<6} ", style="dim")
            row.append(text.strip().replace("\n", f"\n{' ' * 13}"), style="default")
            self._print(row)
        if around:
            self._print(Text(f"      {moments.legend}", style="dim"))
        for moment in around:
            self._print(Text(f"      {moment.line()}", style="default" if moment.own else "dim"))

    def _last_line(self, result: RunResult) -> None:
        outcome = result.verdict.outcome
        line = Text(HEADS[outcome], style=STYLES.get(outcome, "bold yellow"))
        took = "" if result.clock == "real" else f" of simulated time in {result.wall_seconds:.1f} s"
        line.append(f"  {result.seconds:.1f} s{took}   {_shown(latest(result.folder))}", style="default")
        line.append(f"   again: {result.repeat_command}", style="dim")
        self._print(line)
        if outcome is not Outcome.PASS:
            page = _shown(latest(result.folder) / "report.html")
            self._print(Text(f"      {MEANINGS[outcome]}; the whole story: {page}"))
            rule = next((finding.head for finding in result.verdict.findings if finding.requirements), None)
            if rule is not None:
                self._print(Text(f"      the rules behind a law: lab explain {rule}"))

    def _print(self, text: Text) -> None:
        self._console.say(text)


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
