"""Tool calls a second at the store double, on both wires, against a bare aiohttp handler that sends the same bytes."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.children import Meter, ServerChild, caller, server
from benchmarks.measure import Differ, Goal, Row, Sense, alternate, median_ratio, spread

NAME = "store"
GOAL = Goal(Sense.AT_LEAST, 0.5)
WIRES = {"2025": "with a session", "2026": "stateless"}
AT_ONCE = 4
"""Connections side by side, so that the server never waits for its client."""

Plan = tuple[ServerChild, str, str]
"""A server, the wire that is spoken, and the path."""


def measure(quick: bool, folder: Path) -> list[Row]:
    """The store judges credential, grant and headers of each call, runs its tool and journals it to a file."""
    calls, rounds = (20, 2) if quick else (2000, 7)
    marks = count()
    with server("store", journal=str(folder / "store.jsonl")) as double, caller("benchmarks.partner_load") as call:
        turns = {era: call(kind="exchanges", era=era, **double.said)["exchanges"] for era in WIRES}
        answers = [one["answer"] for turn in turns.values() for one in turn if "tools/call" in one["body"]]
        with server("bare answers", answers=answers) as bare:
            results: set[tuple[str, str]] = set()

            def rate(plan: Plan) -> float:
                child, era, path = plan
                order = {**double.said, "url": child.said["url"], "era": era, "path": path, "mark": str(next(marks))}
                begin = child is double and era == "2025"
                answer = call(kind="calls", count=calls, at_once=AT_ONCE, begin=begin, **order)
                results.update((era, result) for result in answer["results"])
                return calls / float(answer["seconds"])

            plans: list[Plan] = [
                (child, era, path)
                for number, era in enumerate(WIRES)
                for child, path in ((double, "/mcp"), (bare, f"/{number}"))
            ]
            # Warm: both servers have met their first connection.
            for plan in plans:
                rate(plan)
            meters = [Meter(child) for child, _, _ in plans]
            taken = alternate(
                rounds,
                [partial(meter.measure, partial(rate, plan)) for meter, plan in zip(meters, plans, strict=True)],
            )
    if len(results) != len(WIRES):
        raise Differ(f"{len(results)} different results on {len(WIRES)} wires")
    micros = [meter.cpu_seconds * 1e6 / (calls * rounds) for meter in meters]
    rows = []
    for place, (era, how) in enumerate(WIRES.items()):
        own, base = taken[2 * place], taken[2 * place + 1]
        detail = f"{spread(own)} / {spread(base)} a second"
        rows += [
            Row(NAME, f"tools/call/s, {era} {how}, against a bare handler", median_ratio(own, base), "×", GOAL, detail),
            Row(NAME, f"· CPU a call, {era}", micros[2 * place], "µs", None, f"bare: {micros[2 * place + 1]:.0f} µs"),
        ]
    return rows
