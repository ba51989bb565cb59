"""Every revision against every other, core against core: what both have works, and what one lacks it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from lab.protocol.agent_side import AgentConnection
from lab.protocol.capabilities import BROUGHT_BY, of_revision
from lab.protocol.contract import Contract, contract_of, default_contract_folder
from lab.protocol.events import Event, Received
from lab.protocol.frames import Draft
from lab.protocol.gateway_side import GatewayConnection, GatewayPolicy
from tests.protocol.sides import (
    CONTRACT,
    JOB,
    WORKSPACE,
    Members,
    agent_outbox,
    gateway_outbox,
    new_agent,
    new_gateway,
    outputs,
    take,
    text,
    uuid,
)

REVISIONS = ("2.0", "2.1", "2.2", "2.3")
ALL = tuple(BROUGHT_BY)
REQUEST = uuid(77)
ASKED = uuid(78)


def contract(revision: str) -> Contract:
    return contract_of(default_contract_folder(), revision)


def sides(gateway: str, agent: str) -> tuple[GatewayConnection, AgentConnection]:
    """Both sides, each with all that its revision has."""
    there = contract(gateway)
    here = contract(agent)
    policy = GatewayPolicy(capabilities=ALL)
    return (
        new_gateway(policy, contract=there, fresh=lambda: gateway_outbox(there)),
        new_agent(contract=here, outbox=agent_outbox(contract=here), capabilities=of_revision(ALL, agent)),
    )


class Wire:
    """Carries frames to and fro until nobody has any, and keeps them."""

    def __init__(self, gateway: GatewayConnection, agent: AgentConnection) -> None:
        self.gateway, self.agent = gateway, agent
        self.to_agent: list[Members] = []
        self.to_gateway: list[Members] = []
        self.events: list[Event] = []
        self.closes: list[int] = []

    def carry(self) -> None:
        while True:
            down, closed = outputs(self.gateway)
            up, ended = outputs(self.agent)
            self.closes += [code for code in (closed, ended) if code is not None]
            if not down and not up:
                return
            self.to_agent += down
            self.to_gateway += up
            for frame in down:
                self.events += take(self.agent, text(frame))
            for frame in up:
                self.events += take(self.gateway, text(frame))

    @property
    def received(self) -> list[str]:
        return [event.frame.type for event in self.events if isinstance(event, Received)]


def wired(gateway: str, agent: str) -> Wire:
    """Both sides after the handshake."""
    wire = Wire(*sides(gateway, agent))
    wire.agent.start(0, {})
    wire.carry()
    return wire


def assign(kind: str = "fix", chars: int = 1, **more: Any) -> Draft:
    inputs = [{"inline": "a" * chars, "transient": True}]
    return Draft(
        "job.assign", {"jobId": JOB, "kind": kind, "inputs": inputs, "llm": {"alias": "default"}, **more}, WORKSPACE
    )


@pytest.mark.req("CP-018", "CT-061", "CT-062", "HS-032")
@pytest.mark.parametrize("agent", REVISIONS)
@pytest.mark.parametrize("gateway", REVISIONS)
def test_a_pair_uses_what_both_have_and_nobody_refuses_anything(gateway: str, agent: str) -> None:
    wire = wired(gateway, agent)
    listed = wire.gateway.capabilities
    assert set(listed) == {*of_revision(ALL, gateway)} & {*of_revision(ALL, agent)}
    down = [assign(), assign(chars=4096)]
    up = [Draft("job.event", {"jobId": JOB, "state": "running"}, WORKSPACE)]
    if "job.options" in listed:
        down.append(assign(options={"mode": "quick"}))
    if "job.chat" in listed:
        down.append(assign("chat"))
    if "job.inline.16k" in listed:
        down.append(assign(chars=16384))
    if "policy.check" in listed:
        up.append(Draft("policy.check", {"jobId": JOB, "actionType": "write_file"}, WORKSPACE, ASKED))
        down.append(Draft("policy.decision", {"decision": "deny"}, WORKSPACE, ASKED))
    down.append(Draft("content.request", {"kind": "job.stream", "ref": JOB}, WORKSPACE, REQUEST))
    for draft in up:
        wire.agent.send(draft, 1)
    for draft in down:
        wire.gateway.send(draft, 1)
    wire.carry()
    wire.agent.send_content(REQUEST, WORKSPACE, "application/json", b"{}", 1)
    wire.carry()
    assert wire.closes == []
    assert sorted(wire.received) == sorted([*(draft.type for draft in (*up, *down)), "content.response"])
    broken = [
        (frame["type"], found)
        for reader, frames in ((agent, wire.to_agent), (gateway, wire.to_gateway))
        for frame in frames
        if (found := contract(reader).check_frame(frame["type"], frame)) is not None
    ]
    assert broken == []


@pytest.mark.req("CP-019", "CP-020", "CP-034")
@pytest.mark.parametrize(
    ("gateway", "agent", "draft", "refused"),
    [
        pytest.param("2.3", "2.2", assign("chat"), ("schema_violation", 4402), id="chat"),
        pytest.param("2.3", "2.2", assign(chars=4097), ("schema_violation", 4402), id="inline-4097"),
        pytest.param("2.1", "2.0", assign(options={"mode": "quick"}), ("schema_violation", 4402), id="options"),
        pytest.param(
            "2.2",
            "2.1",
            Draft("policy.decision", {"decision": "deny"}, WORKSPACE, REQUEST),
            ("unknown_type", 4401),
            id="policy.decision",
        ),
    ],
)
def test_what_an_older_agent_lacks_costs_the_connection(
    gateway: str, agent: str, draft: Draft, refused: tuple[str, int]
) -> None:
    """So a gateway asks first: nothing below its gates keeps such a frame from being sent."""
    wire = wired(gateway, agent)
    wire.gateway.send(draft, 1)
    wire.carry()
    errors = [frame["payload"]["code"] for frame in wire.to_gateway if frame["type"] == "error"]
    assert (errors, wire.closes[:1]) == ([refused[0]], [refused[1]])


def test_the_newest_revision_is_among_them() -> None:
    assert CONTRACT.revision == REVISIONS[-1]
