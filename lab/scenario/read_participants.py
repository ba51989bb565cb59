"""Reads who takes part in a scenario: gateways, agent2s, local agents and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.contract.chosen import contract_in_use
from lab.scenario.findings import words
from lab.scenario.model import Agent2Spec, GatewaySpec, LinkSpec, LocalAgentSpec
from lab.scenario.names import AGENT2, GATEWAY, LOCAL_AGENT
from lab.scenario.reading import Reading, duration, mapping, project_file, reference, text, texts, whole
from lab.scenario.yaml_places import MapNode, ScalarNode, plain

RESERVED = ("job", "fault")
"""Words that begin a condition, so no local agent can have them as its name."""


def read_gateways(reading: Reading, root: MapNode) -> Mapping[str, GatewaySpec]:
    """The gateway doubles by name. An instance is one of a gateway that is none itself."""
    gateways = {name: _gateway(name, node, line) for name, node, line in _declared(root, GATEWAY)}
    firsts = [name for name, spec in gateways.items() if spec.instance_of is None]
    for name, node, _ in _declared(root, GATEWAY):
        word = gateways[name].instance_of
        if word is not None and word not in firsts:
            message = f"`{word}` is no gateway that `{name}` can be an instance of; there are {words(firsts)}."
            reading.findings.add(node.members["instance_of"], message, word=word, among=firsts)
    return gateways


def read_agent2s(reading: Reading, root: MapNode) -> Mapping[str, Agent2Spec]:
    """The agent2 doubles by name. A script for a kind that the double does not take is a mistake."""
    return {name: _agent2(reading, name, node, line) for name, node, line in _declared(root, AGENT2)}


def read_local_agents(reading: Reading, root: MapNode) -> Mapping[str, LocalAgentSpec]:
    """The local agents by name."""
    return {name: _local_agent(reading, name, node, line) for name, node, line in _declared(root, LOCAL_AGENT)}


def read_links(reading: Reading, root: MapNode) -> Mapping[str, LinkSpec]:
    """The links by name; without `links`, one before each gateway and agent2."""
    declared = mapping(root, "links")
    if declared is None:
        return {name: LinkSpec(name, to=name, line=root.place.line) for name in reading.names.links}
    links = {
        name: _link(reading, name, node, declared.keys[name].line)
        for name, node in declared.members.items()
        if isinstance(node, MapNode)
    }
    taken: dict[tuple[str, str | None], str] = {}
    for name, link in links.items():
        other = taken.setdefault((link.to, link.of), name)
        if other != name:
            message = f"link `{other}` already stands before `{link.to}`; narrow one of them with `of`."
            reading.findings.add(declared.members[name], message, place=declared.keys[name])
    return links


def check_participant_names(reading: Reading, root: MapNode) -> None:
    """No two participants share a name, and a local agent's name is none of the words of conditions."""
    seen: dict[str, str] = {}
    for role in (GATEWAY, AGENT2, LOCAL_AGENT):
        several = mapping(root, f"{role}s")
        for name in several.members if several else (role,):
            node = several.members[name] if several else root.members.get(role, root)
            place = several.keys[name] if several else root.keys.get(role, root.place)
            other = seen.setdefault(name, role)
            if other != role:
                message = f"a participant called `{name}` is already there, as {other}."
                reading.findings.add(node, message, place=place)
            if role == LOCAL_AGENT and name in RESERVED:
                message = (
                    f"`{name}` cannot be the name of a local agent; conditions begin with {words(RESERVED, ' and ')}."
                )
                reading.findings.add(node, message, place=place)


def _declared(root: MapNode, role: str) -> Iterator[tuple[str, MapNode, int]]:
    """The participants of `role`: name, members and the line they begin at."""
    several = mapping(root, f"{role}s")
    if several is None:
        one = mapping(root, role) or MapNode(root.place, (role,), {}, {})
        yield role, one, root.keys.get(role, root.place).line
        return
    for name, node in several.members.items():
        if isinstance(node, MapNode):
            yield name, node, several.keys[name].line


def _gateway(name: str, node: MapNode, line: int) -> GatewaySpec:
    limits = mapping(node, "limits")
    return GatewaySpec(
        name,
        tenant_mode=text(node, "tenant_mode") or GatewaySpec.tenant_mode,
        signature=text(node, "signature") != "off",
        revision=text(node, "revision") or contract_in_use().revision,
        limits={limit: whole(limits, limit) or 0 for limit in limits.members} if limits else {},
        line=line,
        protocol_v2=text(node, "protocol_v2") != "off",
        instance_of=text(node, "instance_of"),
    )


def _agent2(reading: Reading, name: str, node: MapNode, line: int) -> Agent2Spec:
    kinds = texts(node, "kinds") if "kinds" in node.members else Agent2Spec.kinds
    scripts: dict[str, Path] = {}
    written = mapping(node, "scripts")
    for kind, script in written.members.items() if written else ():
        if kind not in kinds and written:
            message = f"a script for `{kind}`, which is not among its kinds: {words(kinds)}."
            reading.findings.add(script, message, place=written.keys[kind])
        path = project_file(reading, script) if isinstance(script, ScalarNode) else None
        if path is not None:
            scripts[kind] = path
    health = mapping(node, "health")
    delay = duration(reading.findings, health, "delay", most=reading.deadline) if health else None
    return Agent2Spec(name, kinds=kinds, scripts=scripts, line=line, health_delay=delay or 0.0)


def _local_agent(reading: Reading, name: str, node: MapNode, line: int) -> LocalAgentSpec:
    settings = mapping(node, "settings")
    values: dict[str, Any] = {key: plain(value) for key, value in settings.members.items()} if settings else {}
    return LocalAgentSpec(
        name,
        use=text(node, "use") or LocalAgentSpec.use,
        gateway=reference(reading, node, "gateway", "gateway", reading.names.gateways),
        agent2=reference(reading, node, "agent2", "agent2", reading.names.agent2s),
        signature_mode=text(node, "signature") or LocalAgentSpec.signature_mode,
        revision=text(node, "revision") or contract_in_use().revision,
        settings=values,
        line=line,
        clock=duration(reading.findings, node, "clock") or 0.0,
    )


def _link(reading: Reading, name: str, node: MapNode, line: int) -> LinkSpec:
    names = reading.names
    targets = names.link_targets
    what = "gateway or agent2" if names.gateways else "participant of the partner leg"
    to = text(node, "to")
    if to is None and name not in targets:
        message = f"link `{name}` has no `to`, and no {what} is called so; there are {words(targets)}."
        reading.findings.add(node, message, word=name, among=targets)
    elif to is not None:
        reference(reading, node, "to", what, targets)
    of = reference(reading, node, "of", "local agent", names.local_agents) if "of" in node.members else None
    delay = duration(reading.findings, node, "delay", most=reading.deadline) or 0.0
    return LinkSpec(name, to=to or name, of=of, delay=delay, line=line)
