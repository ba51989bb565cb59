"""The fault proxies' engine against direct loopback and, where LAB_TOXIPROXY_BIN names one, a Toxiproxy server."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.children import caller, server
from benchmarks.measure import Goal, Row, Sense, alternate, median_ratio, spread

NAME = "faults"
BINARY = "LAB_TOXIPROXY_BIN"
THROUGHPUT = Goal(Sense.AT_LEAST, 2.0)
ADDED = Goal(Sense.AT_MOST, 0.6)
CONNECTIONS = Goal(Sense.AT_LEAST, 1.2)

KIB = 1024
SIZES = (1 * KIB, 48 * KIB)
DELAY_MS = 1
DELAY = [{"type": "latency", "stream": "downstream", "attributes": {"latency": DELAY_MS, "jitter": 0}}]
AT_ONCE = 4

DIRECT, ENGINE, DELAYED = "direct", "engine", "engine, latency"
TOXIPROXY, TOXIPROXY_DELAYED = "toxiproxy", "toxiproxy, latency"

Series = tuple[float, ...]


@dataclass(frozen=True)
class Figures:
    """By what is measured and by target, a value for each round."""

    throughput: Mapping[str, Series]
    round_trip: Mapping[int, Mapping[str, Series]]
    connections: Mapping[str, Series]

    def added(self, target: str, size: int, asked: float = 0.0) -> Series:
        """Seconds that a round trip takes longer than a direct one, and than what a toxic was `asked` to add."""
        taken = self.round_trip[size]
        return tuple(one - direct - asked for one, direct in zip(taken[target], taken[DIRECT], strict=True))


def measure(quick: bool, _folder: Path) -> list[Row]:
    """Client, upstream and each proxy in processes of their own; all targets take turns in each round."""
    with _targets(os.environ.get(BINARY)) as ports:
        taken = _taken(quick, ports)
    rows = [_against_direct(taken.throughput, ENGINE, "MB/s", 1e6)]
    rows += [_against_direct(taken.throughput, DELAYED, f"MB/s with a latency of {DELAY_MS} ms", 1e6)]
    rows += [row for size in SIZES for row in _latency(taken, size)]
    rows += [_against_direct(taken.connections, ENGINE, "connections/s", 1)]
    if TOXIPROXY in ports:
        rows += _against_toxiproxy(taken)
    return rows


@contextmanager
def _targets(binary: str | None) -> Iterator[Mapping[str, int]]:
    """The port of each target."""
    with ExitStack() as stack:
        ports: dict[str, int] = {}

        def start(target: str, kind: str, **order: Any) -> Mapping[str, Any]:
            said = stack.enter_context(server(kind, **order)).said
            ports[target] = said["port"]
            return said

        start(DIRECT, "upstream")
        behind = {"upstream": ports[DIRECT]}
        start(ENGINE, "engine", toxics=[], **behind)
        start(DELAYED, "engine", toxics=DELAY, **behind)
        if binary:
            start(TOXIPROXY, "toxiproxy", toxics=[], binary=binary, **behind)
            start(TOXIPROXY_DELAYED, "toxiproxy", toxics=DELAY, binary=binary, **behind)
        yield ports


def _taken(quick: bool, ports: Mapping[str, int]) -> Figures:
    rounds = 2 if quick else 7
    with caller("benchmarks.fault_load") as call:

        def each(kind: str, **order: int) -> Mapping[str, Series]:
            def one(port: int) -> float:
                return float(call(kind=kind, port=port, **order)["value"])

            # Warm: each target has met its first connection.
            for port in ports.values():
                one(port)
            measures = [lambda port=port: one(port) for port in ports.values()]
            return dict(zip(ports, alternate(rounds, measures), strict=True))

        count = 20 if quick else 1000
        return Figures(
            each("download", bytes=(1 << 20) if quick else (1 << 28)),
            {size: each("echo", bytes=size, count=count) for size in SIZES},
            each("connect", count=count, at_once=AT_ONCE),
        )


def _against_direct(taken: Mapping[str, Series], target: str, what: str, unit: float) -> Row:
    detail = _pair(taken[target], taken[DIRECT], unit)
    return Row(NAME, f"{what} against direct", median_ratio(taken[target], taken[DIRECT]), "×", None, detail)


def _latency(taken: Figures, size: int) -> list[Row]:
    """A row with nothing on, and one beyond what a toxic was asked for."""
    words = f"at {size // KIB} KiB"
    trips = taken.round_trip[size]
    ratio = median_ratio(trips[ENGINE], trips[DIRECT])
    late = taken.added(DELAYED, size, DELAY_MS / 1000)
    return [
        Row(
            NAME,
            f"added latency {words}, there and back",
            statistics.median(taken.added(ENGINE, size)) * 1e6,
            "µs",
            None,
            f"{_pair(trips[ENGINE], trips[DIRECT], 1e-6)} µs, {ratio:.1f} × direct",
        ),
        Row(
            NAME,
            f"· late {words} under a latency of {DELAY_MS} ms",
            statistics.median(late) * 1e6,
            "µs",
            None,
            f"{spread([value * 1e6 for value in late])} µs",
        ),
    ]


def _against_toxiproxy(taken: Figures) -> list[Row]:
    def faster(series: Mapping[str, Series], ours: str, theirs: str, what: str, unit: float, goal: Goal | None) -> Row:
        ratio = median_ratio(series[ours], series[theirs])
        return Row(NAME, f"{what} against Toxiproxy", ratio, "×", goal, _pair(series[ours], series[theirs], unit))

    def added(size: int) -> Row:
        ours, theirs = taken.added(ENGINE, size), taken.added(TOXIPROXY, size)
        what = f"added latency at {size // KIB} KiB against Toxiproxy"
        return Row(NAME, what, median_ratio(ours, theirs), "×", ADDED, f"{_pair(ours, theirs, 1e-6)} µs")

    delayed = f"· MB/s with a latency of {DELAY_MS} ms"
    return [
        faster(taken.throughput, ENGINE, TOXIPROXY, "MB/s", 1e6, THROUGHPUT),
        *map(added, SIZES),
        faster(taken.connections, ENGINE, TOXIPROXY, "connections/s", 1, CONNECTIONS),
        faster(taken.throughput, DELAYED, TOXIPROXY_DELAYED, delayed, 1e6, None),
    ]


def _pair(values: Sequence[float], others: Sequence[float], unit: float) -> str:
    return " / ".join(spread([value / unit for value in series]) for series in (values, others))
