"""Which slip each shipped scenario catches: every slip in every scenario of `scenarios/`, on the virtual clock.

`python -m tests.bugs.shipped --write` runs them all (ten minutes) and writes `shipped.yaml`, which the table shows.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from lab.laws import ALL_LAWS, Status
from lab.run.figures import FIGURE_NAMES
from lab.run.runner import RunOptions, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.loader import load_scenario
from lab.sim.guards import Limits
from lab.sim.run import run_virtual
from tests.bugs.plants import all_plants, planted
from tests.scenario.legs import CHAT_FILES, FOLDER

RECORD: Final = Path(__file__).with_name("shipped.yaml")
LIMITS: Final = Limits(wall_seconds=60.0)


@dataclass(frozen=True)
class Caught:
    """A slip that a scenario sees: by which of its heads (laws, else step or expectation)."""

    slip: str
    by: tuple[str, ...]


def scenario_names() -> list[str]:
    """The scenarios of the chat leg that come with the lab: the slips are its programs'."""
    return sorted(path.stem for path in CHAT_FILES)


def caught(name: str, slip: str) -> Caught | None:
    """What a shipped scenario says of a slip; None when it passes, or does not reach the slip."""
    scenario = load_scenario(
        FOLDER / f"{name}.yaml", known_laws=[law.id for law in ALL_LAWS], known_figures=FIGURE_NAMES
    )
    seed = scenario.seed if scenario.seed is not None else 1
    with tempfile.TemporaryDirectory() as out, planted(all_plants()[slip].put) as patch:
        options = RunOptions(Path(out), seed, clock="virtual")
        result = run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), seed, limits=LIMITS)
    if result.verdict.outcome is Outcome.PASS or not patch.reached:
        return None
    broken = [one.law.id for one in result.verdict.judged if one.status is Status.BROKEN]
    heads = dict.fromkeys(finding.head for finding in result.verdict.findings)
    return Caught(slip, tuple(broken) or tuple(heads))


def recorded() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """By scenario: the slips that it catches, and by what."""
    loaded: Mapping[str, Mapping[str, Sequence[str]]] = yaml.safe_load(RECORD.read_text("utf-8"))
    return loaded


def alone(record: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """By scenario: the slips that no other shipped scenario catches."""
    return {
        name: [slip for slip in slips if not any(slip in others for other, others in record.items() if other != name)]
        for name, slips in record.items()
    }


def rarest(record: Mapping[str, Mapping[str, Sequence[str]]], name: str) -> str:
    """The slip of a scenario that fewest others catch."""
    return min(record[name], key=lambda slip: (sum(slip in slips for slips in record.values()), slip))


def _row(name: str) -> tuple[str, dict[str, list[str]]]:
    found = [caught(name, slip) for slip in sorted(all_plants())]
    return name, {one.slip: list(one.by) for one in found if one is not None}


def write() -> None:
    """Run everything and write the record."""
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=4) as pool:
        record: dict[str, dict[str, list[str]]] = {}
        for name, row in pool.imap_unordered(_row, scenario_names()):
            record[name] = row
            print(f"{name}: {len(row)} slips", flush=True)
    RECORD.write_text(yaml.safe_dump(record, sort_keys=True, width=120, default_flow_style=None), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
