"""Frames a second through the gateway double, against a bare websockets echo of the same bytes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.children import Meter, ServerChild, ask, server
from benchmarks.measure import Goal, Row, Sense, alternate, median_ratio, spread

NAME = "gateway"
GOAL = Goal(Sense.AT_LEAST, 0.5)


def measure(quick: bool, folder: Path) -> list[Row]:
    """The gateway validates, judges by its tap, acks and journals to a file each of the frames that it gets."""
    frames, rounds = (40, 2) if quick else (6000, 7)
    # A fresh agent each round: its numbers begin at 1 again.
    with (
        server("gateway", journal=str(folder / "gateway.jsonl"), agents=rounds + 1) as double,
        server("echo") as bare,
    ):
        agents = iter(double.said["agents"])

        def through_gateway() -> float:
            return _rate(double, next(agents), frames, tenant=double.said["tenant"])

        def through_echo() -> float:
            return _rate(bare, {"id": "", "token": ""}, frames)

        # Warm: both servers have met their first connection.
        through_gateway(), through_echo()
        gateway, echo = Meter(double), Meter(bare)
        own, base = alternate(rounds, (lambda: gateway.measure(through_gateway), lambda: echo.measure(through_echo)))
    micros = [meter.cpu_seconds * 1e6 / (frames * rounds) for meter in (gateway, echo)]
    detail = f"{spread(own)} / {spread(base)} a second"
    return [
        Row(NAME, "frames/s against echo", median_ratio(own, base), "×", GOAL, detail),
        Row(NAME, "· CPU a frame", micros[0], "µs", None, f"echo: {micros[1]:.0f} µs"),
    ]


def _rate(child: ServerChild, agent: dict[str, str], frames: int, **more: str) -> float:
    answer = ask("frames", url=child.said["url"], agents=[agent], frames=frames, **more)
    return frames / float(answer["seconds"])
