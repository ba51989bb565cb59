"""Every kind of toxic, by name: the only list of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lab.faults.specs import STREAMS, ToxicSpec
from lab.faults.toxics import (
    accept_then_drop,
    bandwidth,
    black_hole,
    cut_after,
    idle_close,
    latency,
    limit_data,
    noop,
    packet_loss,
    reset_peer,
    slicer,
    slow_close,
    slow_connect,
    timeout,
)
from lab.faults.toxics.attributes import Attributes, read_attributes
from lab.faults.toxics.stage import Kind

_MODULES = (
    latency,
    bandwidth,
    slow_close,
    timeout,
    reset_peer,
    slicer,
    limit_data,
    packet_loss,
    noop,
    slow_connect,
    accept_then_drop,
    black_hole,
    cut_after,
    idle_close,
)

KINDS: Mapping[str, Kind[Any]] = MappingProxyType({module.KIND.name: module.KIND for module in _MODULES})


def drawn_toxics() -> tuple[ToxicSpec, ...]:
    """The toxics that a plan of faults may draw: each kind's own choices, in the streams where they say something."""
    return tuple(
        ToxicSpec(kind.name, stream=stream, attributes=dataclasses.asdict(attributes))
        for kind in KINDS.values()
        for attributes in kind.drawn
        # A door acts before there is a stream.
        for stream in (STREAMS if kind.stage is not None else STREAMS[1:])
    )


def most_held(kind: str, attributes: Mapping[str, object]) -> float | None:
    """The most seconds by which such a toxic lets a byte come later; None where nothing bounds it.

    Raises `BadToxic` for attributes that cannot be.
    """
    base: Attributes = KINDS[kind].attributes
    return read_attributes(kind, base, attributes).most_held
