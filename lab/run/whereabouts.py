"""Which of a gateway's instances a local agent is at: a link that was moved may have led it to another one."""

from __future__ import annotations

from collections.abc import Mapping

from lab.gateway.server import GatewayServer
from lab.scenario.model import LocalAgentSpec, Scenario


def gateway_of(
    scenario: Scenario, gateways: Mapping[str, GatewayServer], agent: LocalAgentSpec, agent_id: str
) -> GatewayServer:
    """The instance at which an agent is ready, else the one that it was given."""
    root = scenario.gateways[agent.gateway].root
    instances = [gateways[name] for name, spec in scenario.gateways.items() if spec.root == root]
    ready = (gateway for gateway in instances if gateway.core.is_ready(agent_id))
    return next(ready, gateways[agent.gateway])
