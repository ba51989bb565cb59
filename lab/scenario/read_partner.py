"""Reads who takes part in the partner leg: partner API, store and issuer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.errors import UsageError
from lab.scenario.findings import words
from lab.scenario.names import AGENT2, GATEWAY, LOCAL_AGENT
from lab.scenario.partner_model import (
    DEFAULT_AGENT,
    DEFAULT_TEAM,
    IssuerSpec,
    MisbehaviourSpec,
    PartnerAgentSpec,
    PartnerApiSpec,
    PartnerSpec,
    StoreSpec,
)
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE, is_partner_leg
from lab.scenario.reading import Reading, duration, entries, mapping, project_file, text, texts, whole
from lab.scenario.yaml_places import MapNode, ScalarNode, plain
from lab.store.misbehaviour import Misbehaviour, Wrong

LEAST_TTL, MOST_TTL = 1.0, 1800.0
"""GR-011: how long a grant may live, in seconds."""

_CHAT_ROLES = tuple(name for role in (GATEWAY, AGENT2, LOCAL_AGENT) for name in (role, f"{role}s"))


def read_partner(reading: Reading, root: MapNode) -> PartnerSpec | None:
    """The participants of the partner leg; None when the scenario is of the chat leg. One scenario is of one leg."""
    if not is_partner_leg(root):
        return None
    for name in _CHAT_ROLES:
        if name in root.members:
            message = f"`{name}` is of the chat leg and `{PARTNER_API}`, `{STORE}` and `{ISSUER}` of the partner leg; "
            reading.findings.add(root.members[name], message + "a scenario is of one of them.", place=root.keys[name])
    return PartnerSpec(_api(reading, root), _store(reading, root), _issuer(reading, root))


def read_misbehaviour(reading: Reading, node: MapNode) -> tuple[MisbehaviourSpec, ...]:
    """The list `misbehave` of the store, or of a step that changes it."""
    return tuple(_misbehaviour(reading, one) for one in entries(node, "misbehave") if isinstance(one, MapNode))


def _misbehaviour(reading: Reading, node: MapNode) -> MisbehaviourSpec:
    seconds = duration(reading.findings, node, "for", most=reading.deadline)
    do = text(node, "do") or ""
    if (do == "slow") != (seconds is not None):
        message = "`slow` needs `for`: how long it takes." if seconds is None else f"`for` has no meaning for `{do}`."
        reading.findings.add(node, message)
    spec = MisbehaviourSpec(do, text(node, "method"), text(node, "tool"), whole(node, "nth"), seconds)
    spec = replace(spec, status=whole(node, "status"), line=node.place.line)
    try:
        misbehaviour_of(spec)
    except UsageError as error:
        reading.findings.add(node, f"{str(error).partition(': ')[2]}.")
    return spec


def misbehaviour_of(spec: MisbehaviourSpec) -> Misbehaviour:
    """The store's rule for what a scenario says. Raises `UsageError` for one that cannot be."""
    given = {"seconds": spec.seconds, "status": spec.status}
    more: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return Misbehaviour(Wrong(spec.do), method=spec.method, tool=spec.tool, nth=spec.nth, **more)


def _api(reading: Reading, root: MapNode) -> PartnerApiSpec:
    node = mapping(root, PARTNER_API) or MapNode(root.place, (PARTNER_API,), {}, {})
    teams = texts(node, "teams") or (DEFAULT_TEAM,)
    return PartnerApiSpec(
        use=text(node, "use") or PartnerApiSpec.use,
        teams=teams,
        agents=_agents(reading, node, teams),
        mcp_era=text(node, "mcp_era") or PartnerApiSpec.mcp_era,
        keep_alive=duration(reading.findings, node, "keep_alive") or PartnerApiSpec.keep_alive,
        keeps_state=_flag(node, "keeps_state"),
        checks_claims=_flag(node, "checks_claims"),
        status_after_error=_flag(node, "status_after_error"),
        line=root.keys.get(PARTNER_API, root.place).line,
    )


def _agents(reading: Reading, node: MapNode, teams: tuple[str, ...]) -> Mapping[str, PartnerAgentSpec]:
    written = mapping(node, "agents")
    if written is None:
        return {DEFAULT_AGENT: PartnerAgentSpec(DEFAULT_AGENT, teams[0])}
    return {
        name: _agent(reading, name, agent, teams)
        for name, agent in written.members.items()
        if isinstance(agent, MapNode)
    }


def _agent(reading: Reading, name: str, node: MapNode, teams: tuple[str, ...]) -> PartnerAgentSpec:
    team = text(node, "team") or teams[0]
    if team not in teams:
        message = f"no team is called `{team}`; there are {words(teams)}."
        reading.findings.add(node.members["team"], message, word=team, among=teams)
    script = node.members.get("script")
    return PartnerAgentSpec(
        name,
        team,
        mcp=text(node, "mcp") or PartnerAgentSpec.mcp,
        script=project_file(reading, script) if isinstance(script, ScalarNode) else None,
        profile=_flag(node, "profile", default=True),
    )


def _store(reading: Reading, root: MapNode) -> StoreSpec:
    node = mapping(root, STORE) or MapNode(root.place, (STORE,), {}, {})
    return StoreSpec(
        answers=text(node, "answers") or StoreSpec.answers,
        refusal=text(node, "refusal") or StoreSpec.refusal,
        misbehave=read_misbehaviour(reading, node),
        line=root.keys.get(STORE, root.place).line,
    )


def _issuer(reading: Reading, root: MapNode) -> IssuerSpec:
    node = mapping(root, ISSUER) or MapNode(root.place, (ISSUER,), {}, {})
    ttl = duration(reading.findings, node, "ttl")
    if ttl is not None and not LEAST_TTL <= ttl <= MOST_TTL:
        message = f"seen {ttl:g} s, due {LEAST_TTL:g} to {MOST_TTL:g} s."
        reading.findings.add(node.members["ttl"], message)
    return IssuerSpec(ttl or IssuerSpec.ttl, line=root.keys.get(ISSUER, root.place).line)


def _flag(node: MapNode, name: str, *, default: bool = False) -> bool:
    return plain(node.members[name]) is True if name in node.members else default
