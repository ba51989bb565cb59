"""A fault that is ordered beside a scenario's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.commands.loading import load
from lab.errors import UsageError
from lab.faults.plan import Fault
from lab.scenario.one_fault import LONGEST, read_fault_untrusted, read_participants
from tests.command_line import ROOT

SCENARIO = ROOT / "scenarios" / "partner" / "stream-cut.yaml"
"""Has a fault and labels of its own, which are nobody else's."""


def read(members: dict[str, Any], scenario: Path = SCENARIO) -> Fault:
    return read_fault_untrusted(read_participants(load(scenario)), members, "up-1")


@pytest.mark.parametrize(
    ("members", "kind", "target", "seconds"),
    [
        ({"link": "store", "cut": True}, "cut", "link store", None),
        ({"link": "store", "cut": True, "for": "5s", "id": "mine"}, "cut", "link store", 5.0),
        ({"link": "partner_api", "reset": True}, "reset", "link partner_api", None),
        ({"link": "partner_api", "heal": True}, "heal", "link partner_api", None),
        ({"link": "issuer", "delay": "800ms", "for": "1m"}, "delay", "link issuer", 60.0),
        ({"link": "store", "toxic": "bandwidth", "attributes": {"rate": 10}}, "toxic", "link store", None),
        ({"link": "store", "weather": "slow-mobile", "for": "1m"}, "weather", "link store", 60.0),
        ({"partner": "store", "crash": True, "for": "2s"}, "crash", "service store", 2.0),
        ({"link": "store", "cut": True, "for": "60m"}, "cut", "link store", LONGEST),
    ],
)
def test_the_words_of_a_step(members: dict[str, Any], kind: str, target: str, seconds: float | None) -> None:
    """Its id is the one that it is given here, whatever the order says."""
    fault = read(members)
    assert (fault.id, fault.kind, fault.target, fault.seconds) == ("up-1", kind, target, seconds)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({}, "the fault: `link` is missing."),
        ({"link": "stroe", "cut": True}, "the fault: link: no link is called `stroe`"),
        ({"link": "stroe", "cut": True}, "Did you mean `store`?"),
        ({"link": "store", "cut": "yes"}, "cut"),
        ({"link": "store", "cut": True, "for": "61m"}, "61m"),
        ({"link": "store", "cut": True, "for": None}, "for"),
        ({"link": "store", "cut": True, "reset": True}, ""),
        ({"link": "store", "weather": "monsoon", "for": "1s"}, "monsoon"),
        ({"link": "store", "cut": {"a": [1, {"b": 2}]}}, "cut"),
        ({"link": ["store"], "cut": True}, "link"),
        ({"link": "store", "move": "other"}, ""),
        ({"partner": "issuer", "crash": True}, "issuer"),
        ({"agent2": "agent2", "crash": True}, ""),
        ({"frame": "ack", "from": "gateway", "do": "drop"}, ""),
        ({"link": "store", "cut": True, "after": {"frame": "ack", "from": "gateway"}}, ""),
        ({"link": "*x", "cut": True}, ""),
        ({"link": "a: b\n- c", "cut": True}, ""),
        ({"x" * 5000: True}, ""),
    ],
)
def test_what_is_none(members: dict[str, Any], told: str) -> None:
    """Told in the words of the language, in place of a file's name."""
    with pytest.raises(UsageError) as refused:
        read(members)
    assert told in str(refused.value)
    assert all(line.startswith("the fault: ") for line in str(refused.value).splitlines())


def test_a_fault_is_of_its_scenario(tmp_path: Path) -> None:
    """Only links that stand can be broken."""
    file = tmp_path / "bare.yaml"
    file.write_text(
        "scenario: bare\nabout: x\npartner_api: {}\nlinks: { front: { to: partner_api } }\n"
        "steps: [ { membership: { user: anna } } ]\n"
    )
    assert read({"link": "front", "cut": True}, file).target == "link front"
    with pytest.raises(UsageError, match="store"):
        read({"link": "store", "cut": True}, file)
