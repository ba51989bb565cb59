"""SSE events a second from the agent2 double, against a bare aiohttp stream of the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from benchmarks.children import Json, Meter, ServerChild, ask, server
from benchmarks.measure import Differ, Goal, Row, Sense, alternate, median_ratio, spread

NAME = "agent2"
GOAL = Goal(Sense.AT_LEAST, 0.7)


def measure(quick: bool, folder: Path) -> list[Row]:
    """From the job's start to the stream's end, each line made, journalled and sent; then the sending alone."""
    events, rounds = (50, 2) if quick else (9000, 7)
    jobs = count(1)
    digests = set()
    with (
        server("agent2", journal=str(folder / "agent2.jsonl"), events=events) as double,
        server("stream", events=events) as bare,
    ):

        def rate(child: ServerChild, path: str, **more: str) -> float:
            answer: Json = ask("events", url=child.said["url"], path=path, token=child.said.get("token", ""), **more)
            digests.add(answer["sha256"])
            return events / float(answer["seconds"])

        def live() -> float:
            job = f"job-{next(jobs)}"
            return rate(double, f"/local/v1/jobs/{job}/stream", start=job)

        def again() -> float:
            return rate(double, "/local/v1/jobs/job-1/stream")

        def baseline() -> float:
            return rate(bare, "/stream")

        # Warm: both servers have met their first connection.
        live(), baseline()
        spent = live_meter, again_meter, base_meter = Meter(double), Meter(double), Meter(bare)
        made, read, base = alternate(
            rounds,
            (
                lambda: live_meter.measure(live),
                lambda: again_meter.measure(again),
                lambda: base_meter.measure(baseline),
            ),
        )
    if len(digests) != 1:
        raise Differ(f"{len(digests)} different streams")
    micros = [meter.cpu_seconds * 1e6 / (events * rounds) for meter in spent]
    cpu = f"sent again: {micros[1]:.1f} µs, stream: {micros[2]:.1f} µs"
    return [
        Row(NAME, "events/s made and sent against stream", median_ratio(made, base), "×", GOAL, _pair(made, base)),
        Row(NAME, "events/s sent again against stream", median_ratio(read, base), "×", GOAL, _pair(read, base)),
        Row(NAME, "· CPU an event, made and sent", micros[0], "µs", None, cpu),
    ]


def _pair(values: Sequence[float], baseline: Sequence[float]) -> str:
    return f"{spread(values)} / {spread(baseline)} a second"
