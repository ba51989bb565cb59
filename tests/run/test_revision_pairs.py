"""Every revision of a gateway with every revision of an agent, on the virtual clock, judged by all laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.commands.loading import load
from lab.journal.events import Frame
from lab.journal.reader import read_journal
from lab.laws.revisions import newer
from lab.protocol.contract import contract_of, default_contract_folder
from lab.run.runner import RunOptions, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.model import (
    ApproveStep,
    AssignStep,
    ContentStep,
    Expectation,
    ResultStep,
    Scenario,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step
from lab.sim.run import run_virtual
from tests.command_line import ROOT

REVISIONS = ("2.0", "2.1", "2.2", "2.3")
LAWS = ("gateway-within-peer-revision", "agent-within-peer-revision")
BASE = load(ROOT / "scenarios" / "revision-22-agent.yaml")
AGENT = "local_agent"
WITHIN = 10.0
PACE = 0.01


def refusal(gateway: str, agent: str, needs: str) -> str | None:
    """How a gateway refuses its caller what came with revision `needs`; None where both sides have it.

    One from before capabilities has its schemas alone (CP-009); a later one asks what the agent announced (CP-034).
    """
    if newer(needs, agent) and gateway != "2.0":
        return "AGENT_UNSUPPORTED"
    return "schema_violation" if newer(needs, gateway) else None


def steps(gateway: str, agent: str) -> Iterator[Step]:
    """Whatever the two can do is done, and the rest is refused before it is sent."""

    def assign(job: str, needs: str, kind: str = "fix", chars: int = 9, **options: object) -> AssignStep:
        return AssignStep(1, WITHIN, job, kind, ("a" * chars,), AGENT, options, fails=refusal(gateway, agent, needs))

    yield WaitStep(1, WITHIN, AGENT, "ready")
    # Capabilities came with 2.1, and an agent that has none gets work of a gateway that has none either (CP-007).
    plain = "2.0" if gateway == "2.0" else "2.1"
    yield assign("plain", plain, chars=4096)
    if refusal(gateway, agent, plain) is None:
        yield ApproveStep(1, WITHIN, "plain", "approve")
        yield ResultStep(1, WITHIN, "plain")
        # The request is of every revision: one agent finds no chat (CH-012), another serves no such content (CH-035).
        served = "internal" if agent == "2.3" else "protocol_unsupported"
        yield ContentStep(1, WITHIN, "plain", "job.stream", PACE, fails=served)
    yield assign("options", "2.1", mode="quick")
    if refusal(gateway, agent, "2.1") is None:
        yield ApproveStep(1, WITHIN, "options", "approve")
        yield ResultStep(1, WITHIN, "options")
    yield assign("long", "2.3", chars=16384)
    yield assign("chat", "2.3", "chat")
    if refusal(gateway, agent, "2.3") is None:
        yield ApproveStep(1, WITHIN, "long", "approve")
        yield ResultStep(1, WITHIN, "long")
        yield StreamStep(1, WITHIN, "chat", None)
        yield ResultStep(1, WITHIN, "chat")
        yield SessionStep(1, WITHIN, "chat")


def pair(gateway: str, agent: str) -> Scenario:
    sockets = ("errors", "refusals")
    return replace(
        BASE,
        gateways={name: replace(spec, revision=gateway) for name, spec in BASE.gateways.items()},
        local_agents={name: replace(spec, revision=agent) for name, spec in BASE.local_agents.items()},
        steps=tuple(steps(gateway, agent)),
        expect=tuple(Expectation(f"socket.{AGENT}.{name}", 0, 1) for name in sockets),
        must_judge=LAWS,
    )


@pytest.mark.req("CP-018", "HS-032")
@pytest.mark.parametrize("agent", REVISIONS)
@pytest.mark.parametrize("gateway", REVISIONS)
def test_a_pair_does_what_both_can(gateway: str, agent: str, tmp_path: Path) -> None:
    options = RunOptions(out=tmp_path, seed=7, clock="virtual", show=lambda _text: None)
    result = run_virtual(lambda: run_scenario(pair(gateway, agent), options, lambda *_: None), 7)
    assert result.verdict.outcome is Outcome.PASS, result.verdict.findings
    frames = [entry.event for entry in read_journal(result.folder / "journal.jsonl") if isinstance(entry.event, Frame)]
    assert {frame.facts["schema"] for frame in frames} == {"ok"}
    later = [
        (frame.direction, frame.type, since)
        for frame in frames
        if (since := frame.facts.get("since")) and newer(since, agent if frame.direction == "cp-to-la" else gateway)
    ]
    assert later == []
    types = {frame.type for frame in frames}
    for revision in (gateway, agent):
        assert types <= {*contract_of(default_contract_folder(), revision).types}


def test_what_is_refused_where() -> None:
    """The expectations above, told once in full: what came with 2.3."""
    told = {(gateway, agent): refusal(gateway, agent, "2.3") for gateway in REVISIONS for agent in REVISIONS}
    assert {pair for pair, code in told.items() if code is None} == {("2.3", "2.3")}
    assert {agent for (_, agent), code in told.items() if code == "AGENT_UNSUPPORTED"} == {"2.0", "2.1", "2.2"}
