"""Which instance of a gateway an agent is at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.run.whereabouts import gateway_of
from lab.scenario.model import GatewaySpec
from tests.run.made import scenario

SPECS = {"gateway": GatewaySpec("gateway"), "b": GatewaySpec("b", instance_of="gateway"), "c": GatewaySpec("c")}


@pytest.mark.parametrize(
    ("ready", "found"), [((), "gateway"), (("gateway",), "gateway"), (("b", "c"), "b"), (("c",), "gateway")]
)
def test_an_agent_is_where_it_is_ready_else_where_it_was_sent(ready: tuple[str, ...], found: str) -> None:
    """Another gateway is never its own."""
    made = scenario(gateways=SPECS)
    gateways: dict[str, Any] = {
        name: SimpleNamespace(core=SimpleNamespace(is_ready=lambda _agent, name=name: name in ready)) for name in SPECS
    }
    agent = made.local_agents["local_agent"]
    assert gateway_of(made, cast(Any, gateways), agent, "id") is gateways[found]
