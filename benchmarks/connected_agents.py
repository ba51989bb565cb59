"""What connected agents cost the gateway double: memory after many frames each, and a thousand that heartbeat."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.children import ask, client, server
from benchmarks.measure import Goal, Row, Sense

NAME = "agents"
MEMORY_GOAL = Goal(Sense.AT_MOST, 200.0)
FRAMES_EACH = 512
HEARTBEAT_SECONDS = 5.0
"""Six times as often as agents must, so that a short measure sees many."""


def measure(quick: bool, folder: Path) -> list[Row]:
    """Both measures; the clients are in another process, so all memory and CPU is the gateway's."""
    return [*_memory(quick, folder), *_heartbeats(quick, folder)]


def _memory(quick: bool, folder: Path) -> list[Row]:
    agents, frames = (4, 16) if quick else (200, FRAMES_EACH)
    with server("gateway", journal=str(folder / "memory.jsonl"), agents=agents + 1) as double:
        said = double.said
        one, *others = said["agents"]
        order = {"url": said["url"], "tenant": said["tenant"], "frames": frames}
        # What the first agent ever costs is not what a further one does.
        ask("frames", agents=[one], **order)
        before = double.resident_bytes()
        with client("frames", agents=others, stay=True, **order) as child:
            child.answer()
            each = (double.resident_bytes() - before) / len(others) / 1024
    detail = f"{len(others)} agents, {frames} frames of 1 KB each; journal in its file only"
    return [Row(NAME, "resident memory an agent", each, "KiB", MEMORY_GOAL, detail)]


def _heartbeats(quick: bool, folder: Path) -> list[Row]:
    agents, every, seconds = (8, 0.5, 1.0) if quick else (1000, HEARTBEAT_SECONDS, 15.0)
    with server("gateway", journal=str(folder / "beats.jsonl"), agents=agents) as double:
        said = double.said
        order = {"url": said["url"], "tenant": said["tenant"], "agents": said["agents"]}
        with client("beats", every=every, seconds=seconds, **order) as child:
            connected = child.answer()
            before, began = double.cpu_seconds(), time.perf_counter()
            done = child.answer()
            share = (double.cpu_seconds() - before) / (time.perf_counter() - began)
    expected = agents * seconds / every
    detail = (
        f"a beat every {every:g} s each, {done['beats']} in {seconds:g} s; connected in {connected['connecting']:.1f} s"
    )
    return [
        Row(NAME, f"heartbeats answered, {agents} agents", done["beats"] / expected, "of those due", None, detail),
        Row(NAME, "· CPU share of one core", share * 100, "%"),
        Row(
            NAME,
            "· answer, 99 of 100 within",
            done["p99"] * 1000,
            "ms",
            None,
            f"slowest {done['slowest'] * 1000:.0f} ms",
        ),
    ]
