"""What an exploration tells, as text and as JSON."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
from rich.text import Text

from lab.commands.loading import load
from lab.explore.campaign import Campaign
from lab.explore.plan import Planned
from lab.explore.search import Budget, Tried
from lab.explore.trial import Trial
from lab.report import explored
from lab.report.console import PatientConsole
from lab.report.explored import Asked, Ending, exploration_json, found_lines, live, progress_line, summary_lines
from tests.explore.made import Trials, frame_fault

ROOT = Path(__file__).parents[2]
FAULT = frame_fault("a")
FAILED = Trial(("acks", "order"), ("acks broke", "order broke\nin two lines"), ("a",), 2.0)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    scenario = load(ROOT / "scenarios" / "fix-job.yaml")
    return Campaign(scenario, 3, tmp_path, Budget(5), Trials(lambda _: FAILED).workers, lambda _: None)


@pytest.fixture
def late(tmp_path: Path) -> Campaign:
    """One whose time is over before it begins."""
    scenario = load(ROOT / "scenarios" / "fix-job.yaml")
    return Campaign(scenario, 3, tmp_path, Budget(5, 0.0), Trials(lambda _: FAILED).workers, lambda _: None)


def fail(campaign: Campaign, times: int, fault: Planned = FAULT) -> None:
    for number in range(times):
        campaign.take(Tried(number, (fault,), FAILED))


def asked(runs: int, out: Path = Path("found")) -> Asked:
    return Asked(Path("scenarios/one.yaml"), 3, runs, out, 9)


def lines(campaign: Campaign, runs: int, ending: Ending = Ending.DONE) -> list[str]:
    return [line.plain for line in summary_lines(asked(runs), campaign, 2.0, ending)]


def test_how_far_it_is(campaign: Campaign) -> None:
    fail(campaign, 2)
    due = "2 of 5 runs · 0.5 runs/s · 4 s simulated · 1 of 9 (fault × moment) struck · 2 failed"
    assert progress_line(asked(5), campaign.progress, 4.0) == due


def test_a_way_to_fail(campaign: Campaign, tmp_path: Path) -> None:
    fail(campaign, 1)
    assert [line.plain for line in found_lines(campaign.found[0])] == [
        "FAIL  acks, order",
        "      acks broke",
        "      order broke",
        "      in two lines",
        "      fault  drop job.event #1 from local_agent",
        f"      again: lab run {tmp_path}/fix-job-found-3-0.yaml --clock virtual",
    ]


@pytest.mark.parametrize(("failed", "more"), [(2, "1 more plan failed so"), (3, "2 more plans failed so")])
def test_one_thing_has_no_s(campaign: Campaign, failed: int, more: str) -> None:
    fail(campaign, failed)
    _, told, verdict = lines(campaign, failed)
    assert told == f"  acks, order: {more}"
    assert verdict == "FAIL  1 way to fail, in found"


def test_what_is_left_out_is_told(late: Campaign) -> None:
    fail(late, 1, frame_fault("a", nth=3))
    assert lines(late, 5)[1] == "  left out: 4 plans not tried, 1 way to fail not made small"
    assert lines(late, 2)[1] == "  left out: 1 plan not tried, 1 way to fail not made small"
    assert lines(late, 1)[1] == "  left out: 1 way to fail not made small"


def test_without_a_failure_the_ending_is_the_verdict(campaign: Campaign) -> None:
    """Only what came to its end has passed."""
    told = [lines(campaign, 0, ending)[-1] for ending in Ending]
    assert told == [f"{word}  no plan broke a promise" for word in ("PASS", "INTERRUPTED", "STOPPED")]


def test_the_same_as_json(campaign: Campaign, tmp_path: Path) -> None:
    fail(campaign, 2)
    told = json.loads(json.dumps(exploration_json(asked(5), campaign, 2.0, Ending.INTERRUPTED)))
    assert told == {
        "scenario": "scenarios/one.yaml",
        "seed": 3,
        "ending": "interrupted",
        "runs": 2,
        "notTried": 3,
        "failures": 2,
        "seconds": 2.0,
        "simulatedSeconds": 4.0,
        "struck": [{"fault": "drop", "moment": "job.event from local_agent", "times": 2}],
        "strikable": 9,
        "found": [
            {
                "plan": 0,
                "broken": ["acks", "order"],
                "said": ["acks broke", "order broke\nin two lines"],
                "faults": ["drop job.event #1 from local_agent"],
                "small": True,
                "file": f"{tmp_path}/fix-job-found-3-0.yaml",
                "again": f"lab run {tmp_path}/fix-job-found-3-0.yaml --clock virtual",
                "more": 1,
            }
        ],
    }


@pytest.mark.parametrize(("spins", "threads"), [(True, 1), (False, 0)])
def test_only_a_spinner_is_a_thread(spins: bool, threads: int) -> None:
    console = PatientConsole(file=io.StringIO(), force_terminal=True, width=80)
    before = threading.active_count()
    with live(console, spins=spins) as shown:
        shown("far")
        assert threading.active_count() - before == threads


def test_without_a_spinner_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 4.9, 5.0, 5.0, 9.9, 10.0, 10.0])
    monkeypatch.setattr("lab.report.explored.time.monotonic", lambda: next(now))
    told: list[str] = []

    def say(text: Text) -> None:
        told.append(text.plain)

    console = PatientConsole(file=io.StringIO())
    monkeypatch.setattr(console, "say", say)
    shown = explored.Live(console, spins=True)
    for line in ("a", "b", "c", "d"):
        shown(line)
    assert told == ["  b", "  d"]
