"""One run of chat-answer in this process, timed phase by phase: `python -m benchmarks.chat_phases OUT`.

The marks come from the run's own journal, so nothing of the lab is replaced.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from lab.journal.writer import Entry, Journal
    from lab.scenario.model import Scenario

SCENARIO = Path("scenarios/chat-answer.yaml")
SEED = 7


@dataclass
class Marks:
    """Moments of a run, in seconds of `time.perf_counter`."""

    at: dict[str, float] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """The first time counts, except for what is told again until the last."""
        now = time.perf_counter()
        if name == "last step":
            self.at[name] = now
        else:
            self.at.setdefault(name, now)

    def see(self, entry: Entry) -> None:
        """Mark what an entry of the journal says."""
        event = entry.event
        if event.kind == "run.started":
            self.note("run")
        elif event.kind == "step.started":
            self.note("built")
        elif event.kind == "session" and getattr(event, "state", "") == "ready":
            self.note("ready")
        elif event.kind == "step.ended":
            self.note("last step")
        elif event.kind == "run.ended":
            self.note("ended")


def run(out: Path) -> dict[str, float]:
    """The seconds of each phase, in order."""
    marks = Marks()
    # From the process's own start on: the interpreter's is a part of what a user waits for.
    before = time.time() - psutil.Process(os.getpid()).create_time()
    marks.note("imports")
    from lab.commands.loading import load
    from lab.report.junit import junit_text
    from lab.report.page import page_text
    from lab.report.result import result_json
    from lab.run.runner import RunOptions, run_scenario

    marks.note("load")
    scenario = load(SCENARIO, {})
    marks.note("set out")

    def listen(_scenario: Scenario, _seed: int, journal: Journal) -> None:
        journal.listen(marks.see)

    result = asyncio.run(run_scenario(scenario, RunOptions(out, SEED), listen))
    marks.note("judged")
    json.dumps(result_json(result), indent=2)
    junit_text([result])
    page_text(result)
    marks.note("told")
    if result.verdict.outcome.exit_status != 0:
        raise SystemExit("the run did not hold")
    at = marks.at
    # The agent may be ready before the first step begins to wait for it.
    ready = max(at["ready"], at["built"])
    return {
        "interpreter": before,
        "imports": at["load"] - at["imports"],
        "load the scenario": at["set out"] - at["load"],
        "open folder and journal": at["run"] - at["set out"],
        "build the world": at["built"] - at["run"],
        "wait for ready": ready - at["built"],
        "steps": at["last step"] - ready,
        "close": at["ended"] - at["last step"],
        "judge the laws": at["judged"] - at["ended"],
        "make the reports": at["told"] - at["judged"],
    }


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
