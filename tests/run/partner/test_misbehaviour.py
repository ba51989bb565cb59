"""A store that was told to do wrong, and had no occasion to: that is no pass."""

from __future__ import annotations

import pytest

from lab.journal.events import RunEnded
from lab.journal.partner_events import StoreRequest
from lab.journal.writer import Entry
from lab.run.figures import Figures
from lab.run.partner.identity import ENVIRONMENT
from lab.run.verdict import Outcome, Verdict, reach_verdict
from lab.scenario.model import Scenario
from lab.scenario.partner_model import (
    IssuerSpec,
    MisbehaviourSpec,
    PartnerApiSpec,
    PartnerSpec,
    StoreSpec,
    StoreStep,
)
from tests.run.made import scenario


def verdict(rule: MisbehaviourSpec, *requests: StoreRequest, by_step: bool = False) -> Verdict:
    at_once, later = ((), (rule,)) if by_step else ((rule,), None)
    made: Scenario = scenario(
        gateways={},
        agent2s={},
        local_agents={},
        links={},
        partner=PartnerSpec(PartnerApiSpec(), StoreSpec(misbehave=at_once), IssuerSpec()),
        steps=(StoreStep(7, None, later),) if later else (),
    )
    events = [*requests, RunEnded("completed")]
    entries = [Entry(number, 0.1 * number, "store", event) for number, event in enumerate(events)]
    return reach_verdict(entries, made, (), (), Figures(), None, False)


def call(misbehaved: str | None = None, tool: str = "catalog_get") -> StoreRequest:
    return StoreRequest("POST", ENVIRONMENT, "tools/call", 200, tool, misbehaved=misbehaved)


@pytest.mark.parametrize("by_step", [False, True])
def test_a_rule_that_met_its_request(by_step: bool) -> None:
    rule = MisbehaviourSpec("reset", tool="catalog_get", nth=1)
    assert verdict(rule, call("reset"), by_step=by_step).outcome is Outcome.PASS


@pytest.mark.parametrize("by_step", [False, True])
def test_a_rule_that_met_none(by_step: bool) -> None:
    told = verdict(MisbehaviourSpec("reset", tool="catalog_gt", nth=2, line=5), call(), call(), by_step=by_step)
    assert told.outcome is Outcome.UNKNOWN
    (finding,) = told.findings
    assert (finding.head, finding.line) == ("fault", 5)
    assert finding.sentence == "the store had no occasion for reset"
    assert (finding.seen, finding.due) == ("the store got: catalog_get 2 times", "reset at catalog_gt #2")


def test_another_tool_s_misbehaviour_is_not_the_rule_s() -> None:
    rule = MisbehaviourSpec("reset", tool="order_lookup")
    assert verdict(rule, call("reset")).outcome is Outcome.UNKNOWN
