"""Whole turns a second through the partner API model, and what its readers of streams cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.children import Json, Meter, ServerChild, caller, server
from benchmarks.measure import Differ, Goal, Row, Sense, alternate, median_ratio, spread
from benchmarks.run_followers import measure_followers, measure_lateness

NAME = "partner"
GOAL = Goal(Sense.AT_LEAST, 0.5)
AT_ONCE = 8
SCRIPT = """\
script: one-call
about: a look into the catalogue and the answer, without any wait
iterations:
  - model: synthetic-1
    steps:
      - text: "I look it up. "
      - tool: { name: catalog_get, input: { productId: 9001 } }
    usage: { input: 4200, output: 160 }
  - model: synthetic-1
    steps:
      - text: { of: "Product 9001 is in the catalogue, and its details are as the store has them.", events: 5 }
    usage: { input: 4920, output: 250 }
"""

Call = Callable[..., Json]


def measure(quick: bool, folder: Path) -> list[Row]:
    """Store, partner API and client are processes of their own, as are the two of the baseline."""
    with server("store", journal=str(folder / "store.jsonl")) as store, caller("benchmarks.partner_load") as call:
        rows = _turns(quick, folder, store, call)
        rows += measure_lateness(NAME, quick, folder, store, call)
        return rows + measure_followers(NAME, quick, folder, store)


def _turns(quick: bool, folder: Path, store: ServerChild, call: Call) -> list[Row]:
    """From a message to the last event of its stream, with one tool call at the store in between."""
    turns, rounds = (AT_ONCE, 2) if quick else (200, 7)
    order = {"journal": str(folder / "partner.jsonl"), "folder": str(folder), "script": SCRIPT}
    asked = call(kind="exchanges", era="2025", **store.said)["exchanges"]
    with server("partner", store=store.said, conversations=AT_ONCE, **order) as model:
        first = call(kind="turns", count=1, **{**model.said, "conversations": model.said["conversations"][:1]})
        told = {"accepted": first["accepted"], "events": first["events"], "exchanges": asked}
        with (
            server("bare answers", answers=[one["answer"] for one in asked]) as bare_store,
            server("bare turns", store=bare_store.said["url"], **told) as bare,
        ):
            routes = {"messages": "/messages", "events": "/events"}
            plain = {**model.said, "url": bare.said["url"], "conversations": [routes] * AT_ONCE}
            kinds: set[str] = set()
            took: dict[tuple[str, int], list[float]] = {}

            def rate(said: Json, at_once: int) -> float:
                each = turns // at_once
                given: dict[str, Any] = {**said, "conversations": said["conversations"][:at_once], "count": each}
                answer = call(kind="turns", **given)
                kinds.update(answer["kinds"])
                took.setdefault((said["url"], at_once), []).append(float(answer["median"]))
                return each * at_once / float(answer["seconds"])

            own, base = Meter(model), Meter(bare)
            behind = Meter(store)
            taken = alternate(
                rounds,
                (
                    lambda: behind.measure(lambda: own.measure(lambda: rate(model.said, 1))),
                    lambda: base.measure(lambda: rate(plain, 1)),
                    lambda: rate(model.said, AT_ONCE),
                    lambda: rate(plain, AT_ONCE),
                ),
            )
    if len(kinds) != 1:
        raise Differ(f"{len(kinds)} different sequences of events")
    cpu = [meter.cpu_seconds * 1e3 / (turns * rounds) for meter in (own, base, behind)]
    one, plain_one = (took[said["url"], 1] for said in (model.said, plain))
    return [
        _against("turns/s one after the other, against bare handlers", taken[0], taken[1]),
        _against(f"turns/s of {AT_ONCE} conversations, against bare handlers", taken[2], taken[3]),
        Row(NAME, "· CPU a turn", cpu[0], "ms", None, f"bare: {cpu[1]:.2g} ms; the store's: {cpu[2]:.2g} ms"),
        Row(
            NAME, "· one turn", min(one) * 1e3, "ms", None, f"bare: {min(plain_one) * 1e3:.3g} ms; best of the medians"
        ),
    ]


def _against(what: str, own: tuple[float, ...], base: tuple[float, ...]) -> Row:
    return Row(NAME, what, median_ratio(own, base), "×", GOAL, f"{spread(own)} / {spread(base)} a second")
