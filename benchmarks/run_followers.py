"""Readers of a run's stream: how late an event reaches one, and what a thousand of them cost the model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.children import Json, ServerChild, client, server
from benchmarks.measure import Differ, Row

EVERY = 0.005
"""Seconds from one event to the next, so that each is sent by itself."""
LONG_EVERY = 0.02
LONG = 240
"""Events of the long answer, as many and as fast as in `fixtures/partner/long-answer.yaml`."""

Call = Callable[..., Json]


def measure_lateness(name: str, quick: bool, folder: Path, store: ServerChild, call: Call) -> list[Row]:
    """From the commit of an event to its arrival at the one follower, against an event that is just written."""
    count, rounds = (10, 2) if quick else (200, 7)
    script = _script(count, EVERY, 0.1)
    with _model(folder, "one", store, script) as model:
        stamps = {"stamps": str(folder / "one.json")}
        first = call(kind="follow", **model.said, **stamps)
        bare_stamps = {"stamps": str(folder / "bare.json")}
        told = {"accepted": first["accepted"], "events": first["events"]}
        with server("bare paced", every=EVERY, **told, **bare_stamps) as bare:
            route = {"messages": "/messages", "events": "/events"}
            plain = {**model.said, "url": bare.said["url"], "conversations": [route]}
            own, base = [], []
            for _ in range(rounds):
                own += call(kind="follow", **model.said, **stamps)["late"]
                base += call(kind="follow", **plain, **bare_stamps)["late"]
    if len(own) != len(base):
        raise Differ(f"{len(own)} events, and {len(base)} of the baseline")
    return [
        _late(name, "an event from commit to follower, median", own, base, 0.5),
        _late(name, "· 99 of 100 within", own, base, 0.99),
    ]


def measure_followers(name: str, quick: bool, folder: Path, store: ServerChild) -> list[Row]:
    """One run with a long answer, which begins once all follow."""
    count, events, wait = (8, 10, 0.3) if quick else (1000, LONG, 5.0)
    with _model(folder, "many", store, _script(events, LONG_EVERY, wait)) as model:
        before, spent, began = model.resident_bytes(), model.cpu_seconds(), time.perf_counter()
        with client("followers", count=count, stamps=str(folder / "many.json"), **model.said) as child:
            joined = child.answer()
            following = model.resident_bytes()
            done = child.answer()
            cpu, took = model.cpu_seconds() - spent, time.perf_counter() - began
            most = max(following, model.resident_bytes())
    if done["different"] != 1:
        raise Differ(f"{done['different']} different streams of one run")
    each = [(size - before) / count / 1024 for size in (following, most)]
    detail = f"median {done['median'] * 1e3:.0f} ms; {events} events each, all the same"
    alone = f"its script alone: {events * LONG_EVERY:.1f} s"
    cost = f"{cpu / took * 100:.0f} % of one core over {took:.1f} s; connected in {joined['connecting']:.1f} s"
    return [
        Row(name, f"the last of {count} followers behind the end", done["last"] * 1e3, "ms", None, detail),
        Row(name, "· the answer itself took", done["answer"], "s", None, alone),
        Row(name, "· CPU an event and follower", cpu * 1e6 / count / done["events"], "µs", None, cost),
        Row(name, "· resident memory a follower", each[0], "KiB", None, f"at the end: {each[1]:.0f} KiB"),
    ]


def _model(folder: Path, label: str, store: ServerChild, script: str) -> AbstractContextManager[ServerChild]:
    own = folder / label
    own.mkdir()
    files = {"journal": str(own / "partner.jsonl"), "folder": str(own), "stamps": str(folder / f"{label}.json")}
    return server("partner", store=store.said, conversations=1, script=script, **files)


def _script(count: int, every: float, wait: float) -> str:
    """`count` text events, `every` seconds apart, the first after `wait`."""
    ms = round(every * 1000)
    return (
        "script: long\nabout: many events\n"
        f"delays: {{ first_token: {round(wait * 1000)}ms }}\n"
        "iterations:\n  - model: synthetic-1\n    steps:\n"
        f'      - repeat: {{ count: {count}, every: {ms}ms, text: "line {{n}} of the long answer\\n" }}\n'
        "    usage: { input: 900, output: 2400 }\n"
    )


def _late(name: str, what: str, own: Sequence[float], base: Sequence[float], share: float) -> Row:
    ours, theirs = (_quantile(values, share) * 1e6 for values in (own, base))
    return Row(name, what, ours, "µs", None, f"bare: {theirs:.0f} µs, so {ours - theirs:.0f} µs added")


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]
