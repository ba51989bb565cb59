"""Every name that a scenario declares, gathered before anything is checked.

Gathered from the tree as it was written, so that a participant or job whose declaration has a mistake of its own is
still known, and its uses are not reported as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.faults.plan import FAULT_KINDS, Acts
from lab.scenario.partner_names import PARTICIPANTS, PartnerNames, gather_partner, is_partner_leg
from lab.scenario.yaml_places import ListNode, MapNode, Node, ScalarNode

GATEWAY = "gateway"
AGENT2 = "agent2"
LOCAL_AGENT = "local_agent"


@dataclass(frozen=True)
class Names:
    """What can be referred to. `jobs` and `faults` map a name to the index of the step that declares it."""

    gateways: tuple[str, ...]
    agent2s: tuple[str, ...]
    local_agents: tuple[str, ...]
    links: tuple[str, ...]
    jobs: Mapping[str, int]
    faults: Mapping[str, int]
    fault_ids: Mapping[int, str]
    """The id of the fault of each fault step, by the step's index."""
    targets: Mapping[str, str]
    """Where each link leads."""
    roots: Mapping[str, str]
    """For each gateway the one that it is an instance of: itself, if no other."""
    partner: PartnerNames
    """What the partner leg declares beside; empty in a scenario of the chat leg."""

    @property
    def link_targets(self) -> tuple[str, ...]:
        """Before whom a link can stand."""
        return (*self.gateways, *self.agent2s) or PARTICIPANTS


def gather(root: Node) -> Names:
    """The names that the scenario `root` declares."""
    partner_leg = is_partner_leg(root)
    gateways = () if partner_leg else participants(root, GATEWAY)
    agent2s = () if partner_leg else participants(root, AGENT2)
    targets = PARTICIPANTS if partner_leg else gateways + agent2s
    links = _member(root, "links")
    fault_ids = _fault_ids(root)
    faults: dict[str, int] = {}
    for index, name in fault_ids.items():
        faults.setdefault(name, index)
    jobs: dict[str, int] = {}
    for index, assign in _steps(root, "assign"):
        job = _text(assign, "job")
        if job is not None:
            jobs.setdefault(job, index)
    return Names(
        gateways=gateways,
        agent2s=agent2s,
        local_agents=() if partner_leg else participants(root, LOCAL_AGENT),
        links=tuple(links.members) if isinstance(links, MapNode) else targets,
        jobs=jobs,
        faults=faults,
        fault_ids=fault_ids,
        targets=_targets(links, targets),
        roots={name: _text_at(_gateway_node(root, name), "instance_of") or name for name in gateways},
        partner=gather_partner(root),
    )


def _targets(links: Node | None, participants: tuple[str, ...]) -> Mapping[str, str]:
    if not isinstance(links, MapNode):
        return {name: name for name in participants}
    return {name: _text_at(link, "to") or name for name, link in links.members.items()}


def _gateway_node(root: Node, name: str) -> Node | None:
    several = _member(root, f"{GATEWAY}s")
    return _member(several, name) if several is not None else _member(root, GATEWAY)


def _text_at(node: Node | None, name: str) -> str | None:
    return _text(node, name) if isinstance(node, MapNode) else None


def participants(root: Node, role: str) -> tuple[str, ...]:
    """The names of the participants of `role`; without a declaration one of the role's own name."""
    several = _member(root, f"{role}s")
    return tuple(several.members) if isinstance(several, MapNode) and several.members else (role,)


def fault_kind(fault: MapNode) -> str | None:
    """The kind that a fault step names, as far as it can be told."""
    if "do" in fault.members:
        return _text(fault, "do")
    if "toxics" in fault.members:
        return "toxic"
    kinds = (name for name in fault.members if name in FAULT_KINDS and FAULT_KINDS[name].acts is not Acts.FRAME)
    return next(kinds, None)


def _fault_ids(root: Node) -> dict[int, str]:
    """Each fault's id. One without `id` is named after its kind, with the first number that is free."""
    faults = list(_steps(root, "fault"))
    given = {index: _text(fault, "id") for index, fault in faults}
    taken = {name for name in given.values() if name is not None}
    ids: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for index, fault in faults:
        name = given[index]
        kind = fault_kind(fault) or "fault"
        while name is None:
            numbers[kind] = numbers.get(kind, 0) + 1
            numbered = f"{kind}-{numbers[kind]}"
            name = None if numbered in taken else numbered
        ids[index] = name
    return ids


def _steps(root: Node, kind: str) -> Iterator[tuple[int, MapNode]]:
    steps = _member(root, "steps")
    if not isinstance(steps, ListNode):
        return
    for index, step in enumerate(steps.items):
        body = _member(step, kind)
        if isinstance(body, MapNode):
            yield index, body


def _member(node: Node, name: str) -> Node | None:
    return node.members.get(name) if isinstance(node, MapNode) else None


def _text(node: MapNode, name: str) -> str | None:
    member = node.members.get(name)
    return member.value if isinstance(member, ScalarNode) and isinstance(member.value, str) else None
