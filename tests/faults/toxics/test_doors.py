"""Kinds that act before the upstream is asked."""

from __future__ import annotations

import pytest

from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import read_attributes
from lab.faults.toxics.stage import Door


@pytest.mark.parametrize(
    ("kind", "delay", "door"),
    [
        ("slow_connect", 1500, Door(1.5)),
        ("slow_connect", 0, Door(0.0)),
        ("slow_connect", -5, Door(0.0)),
        ("accept_then_drop", 250, Door(0.25, drops=True)),
        ("accept_then_drop", -5, Door(0.0, drops=True)),
    ],
)
def test_a_door_stands_for_its_delay(kind: str, delay: int, door: Door) -> None:
    make = KINDS[kind].door
    assert make is not None
    assert make(read_attributes(kind, KINDS[kind].attributes, {"delay": delay})) == door
