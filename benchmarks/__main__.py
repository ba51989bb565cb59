"""Run the benchmarks: `python -m benchmarks [--quick] [--only NAME]… [--out DIR]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError

from benchmarks import (
    agent2_events,
    chat_answer,
    connected_agents,
    fault_engine,
    gateway_frames,
    help_start,
    partner_turns,
    simulated,
    store_calls,
)
from benchmarks.children import ChildFailed
from benchmarks.measure import Differ, Row, machine, table

Measure = Callable[[bool, Path], list[Row]]

BENCHMARKS: Mapping[str, Measure] = {
    module.NAME: module.measure
    for module in (
        gateway_frames,
        agent2_events,
        store_calls,
        partner_turns,
        help_start,
        chat_answer,
        connected_agents,
        simulated,
        fault_engine,
    )
}


def run(names: Sequence[str], quick: bool, out: Path) -> list[Row]:
    """Measure, print the table, and leave the figures as JSON below `out`."""
    rows: list[Row] = []
    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as scratch:
        for name in names:
            print(f"{name} …", file=sys.stderr, flush=True)
            folder = Path(scratch) / name
            folder.mkdir()
            rows += BENCHMARKS[name](quick, folder)
    print(table(rows))
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{started:%Y%m%dT%H%M%SZ}.json"
    document = {
        "at": f"{started:%Y-%m-%dT%H:%M:%SZ}",
        "quick": quick,
        "machine": machine(),
        "rows": [row.to_json() for row in rows],
    }
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{file}")
    return rows


def main() -> None:
    """The command line. A missed goal is told, and is no failure: figures differ from machine to machine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the lab costs.")
    parser.add_argument("--quick", action="store_true", help="a few iterations: shows that it runs, measures nothing")
    parser.add_argument("--only", action="append", choices=tuple(BENCHMARKS), help="one benchmark; repeatable")
    parser.add_argument("--out", type=Path, default=Path("runs/bench"), help="where the figures go (runs/bench)")
    options = parser.parse_args()
    try:
        run(options.only or tuple(BENCHMARKS), options.quick, options.out)
    except (ChildFailed, Differ, CalledProcessError) as failure:
        # What the child itself had to say stands above.
        sys.exit(f"no figures: {failure}")


if __name__ == "__main__":
    main()
