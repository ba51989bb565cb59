"""What a scenario needs of the lab's own parts, and so cannot be asked of another partner API (PA-055, FX-035)."""

from __future__ import annotations

from collections.abc import Iterator

from lab.scenario.model import FaultStep, Scenario
from lab.scenario.partner_model import GrantStep, IssuerSpec, PartnerSpec, StoreSpec, StoreStep
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.scenario.read_partner_steps import NEEDS_CONTROLS

STORE_FIGURES = ("figures.store_executed", "figures.store_refused")
ISSUER_FIGURES = ("figures.grants",)


def beyond(scenario: Scenario, *, own_store: bool) -> str | None:
    """What of the scenario another partner API cannot be brought to, in words; None when it applies.

    `own_store`: the lab plays store and issuer. Otherwise the fixture brings both along, and the lab sees neither.
    """
    spec = scenario.partner
    if spec is None:
        return None
    return next(_beyond(scenario, spec, own_store), None)


def _beyond(scenario: Scenario, spec: PartnerSpec, own_store: bool) -> Iterator[str]:
    if NEEDS_CONTROLS in scenario.requires:
        yield "it has no controls of the lab"
    if any(isinstance(step, FaultStep) and step.fault.service == PARTNER_API for step in scenario.steps):
        yield "it is not the lab's to strike"
    if len(spec.api.agents) > 1 or any(agent.mcp != "store" or not agent.profile for agent in spec.api.agents.values()):
        yield "its one known agent has a store and a profile, and the scenario needs another"
    if len(spec.api.teams) > 1:
        yield "only one team of it is known, and the scenario needs more"
    api = spec.api
    if api.mcp_era != api.__class__.mcp_era or api.checks_claims or api.status_after_error:
        yield "the scenario sets it up, and only the lab's own can be set up"
    if not own_store:
        yield from _beyond_its_fixture(scenario, spec)


def _beyond_its_fixture(scenario: Scenario, spec: PartnerSpec) -> Iterator[str]:
    store = spec.store
    changed = store.misbehave or (store.answers, store.refusal) != (StoreSpec.answers, StoreSpec.refusal)
    struck = {scenario.links[step.fault.link].to for step in _link_faults(scenario) if step.fault.link}
    struck |= {step.fault.service or "" for step in scenario.steps if isinstance(step, FaultStep)}
    if changed or STORE in struck or any(isinstance(step, StoreStep) for step in scenario.steps):
        yield "it calls a store of its own, and the scenario needs the lab's"
    if any(one.path in STORE_FIGURES for one in scenario.expect):
        yield "it calls a store of its own, and the scenario counts what reaches the lab's"
    minted = any(isinstance(step, GrantStep) and step.wrong for step in scenario.steps)
    if spec.issuer.ttl != IssuerSpec.ttl or ISSUER in struck or minted:
        yield "its grants are of an issuer of its own, and the scenario needs the lab's"
    if any(one.path in ISSUER_FIGURES for one in scenario.expect):
        yield "its grants are of an issuer of its own, and the scenario counts those of the lab's"


def _link_faults(scenario: Scenario) -> Iterator[FaultStep]:
    for step in scenario.steps:
        if isinstance(step, FaultStep) and step.fault.link in scenario.links:
            yield step
