"""What no gateway may send."""

from __future__ import annotations

import json

import pytest

from lab.gateway.junk import JUNK, junk
from lab.scenario.shape import scenario_schema

TENANT, LARGEST = "0a0a0a0a-0000-4000-8000-00000000000a", 49152


def test_oversize_is_one_byte_above_the_largest_frame() -> None:
    text = junk("oversize", TENANT, LARGEST)
    assert isinstance(text, str)
    assert len(text.encode()) == LARGEST + 1
    assert json.loads(text)["schemaVersion"] == 2


def test_no_json_is_none() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(junk("no-json", TENANT, LARGEST))


def test_an_unknown_type_is_a_frame_of_the_tenant_in_all_else() -> None:
    frame = json.loads(junk("unknown-type", TENANT, LARGEST))
    assert (frame["type"], frame["tenantId"]) == ("no.such.type", TENANT)


def test_binary_is_bytes() -> None:
    assert isinstance(junk("binary", TENANT, LARGEST), bytes)


def test_a_scenario_has_the_same_words() -> None:
    assert tuple(scenario_schema()["$defs"]["inject"]["properties"]["junk"]["enum"]) == JUNK
