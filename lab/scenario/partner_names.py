"""The names that a scenario of the partner leg declares, gathered from the tree as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.scenario.partner_model import DEFAULT_AGENT
from lab.scenario.yaml_places import ListNode, MapNode, Node, ScalarNode

PARTNER_API = "partner_api"
STORE = "store"
ISSUER = "issuer"
PARTICIPANTS = (PARTNER_API, STORE, ISSUER)
"""The participants of the leg that a link can stand before; a scenario with any of them is of this leg."""

DECLARED_BY = {"conversation": "conversation", "message": "run", "attach": "file"}
"""Which member of which step declares a label: conversations, runs and files."""


@dataclass(frozen=True)
class PartnerNames:
    """The agents, and for each kind of label its names with the index of the step that declares it."""

    agents: tuple[str, ...] = ()
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By `conversation`, `run` and `file`."""


def is_partner_leg(root: Node) -> bool:
    """Whether the scenario `root` is of the partner leg."""
    return isinstance(root, MapNode) and any(name in root.members for name in PARTICIPANTS)


def gather_partner(root: Node) -> PartnerNames:
    """The names that the scenario `root` declares; none when it is of the chat leg."""
    if not isinstance(root, MapNode) or not is_partner_leg(root):
        return PartnerNames()
    labels: dict[str, dict[str, int]] = {kind: {} for kind in DECLARED_BY.values()}
    steps = root.members.get("steps")
    for index, step in enumerate(steps.items if isinstance(steps, ListNode) else ()):
        for word, member in DECLARED_BY.items():
            body = step.members.get(word) if isinstance(step, MapNode) else None
            label = body.members.get(member) if isinstance(body, MapNode) else None
            if isinstance(label, ScalarNode) and isinstance(label.value, str):
                labels[member].setdefault(label.value, index)
    return PartnerNames(_agents(root.members.get(PARTNER_API)), labels)


def _agents(api: Node | None) -> tuple[str, ...]:
    agents = api.members.get("agents") if isinstance(api, MapNode) else None
    return tuple(agents.members) if isinstance(agents, MapNode) and agents.members else (DEFAULT_AGENT,)
