"""One fault beside a scenario's own, as somebody orders it while the scenario's participants run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from lab.errors import ScenarioError, ScenarioErrors, UsageError
from lab.faults.plan import Fault
from lab.scenario.findings import Findings
from lab.scenario.loader import DEFAULT_DEADLINE, project_root
from lab.scenario.model import FaultStep, Scenario
from lab.scenario.names import gather
from lab.scenario.partner_model import PartnerSpec
from lab.scenario.read_steps import read_steps
from lab.scenario.reading import Reading
from lab.scenario.shape import sound
from lab.scenario.yaml_places import MapNode, parse_untrusted

ORDERED = "the fault"
"""What errors name in place of a file."""

LONGEST = 3600.0
"""Seconds that an ordered fault may last."""

_STEP = "steps[0].fault"
_PARTICIPANTS = ("scenario", "about", "partner_api", "store", "issuer", "links")


@dataclass(frozen=True, slots=True)
class Participants:
    """Who takes part, as a scenario's file told when it was read."""

    scenario: Path
    root: MapNode
    partner: PartnerSpec | None


def read_participants(scenario: Scenario) -> Participants:
    """The participants of a scenario that was loaded just now. A file that is gone again raises `OSError`."""
    whole, _ = parse_untrusted(scenario.file.read_text("utf-8"), str(scenario.file))
    if not isinstance(whole, MapNode):
        raise UsageError(f"{scenario.file}: no mapping")
    kept = {name: node for name, node in whole.members.items() if name in _PARTICIPANTS}
    root = MapNode(whole.place, whole.path, kept, whole.keys)
    return Participants(scenario.file, root, scenario.partner)


def read_fault_untrusted(participants: Participants, members: Mapping[str, Any], fault_id: str) -> Fault:
    """The fault that `members` tell in the words of a `fault:` step, on the participants of a scenario.

    Raises `UsageError` with all that is wrong with it, in lines that name no place: nobody wrote the text.
    """
    try:
        return _read(participants, members, fault_id)
    except ScenarioErrors as wrong:
        raise UsageError("\n".join(map(_told, wrong.errors))) from None


def _told(error: ScenarioError) -> str:
    member = error.path.removeprefix(_STEP).lstrip(".")
    hint = f" Did you mean `{error.nearest}`?" if error.nearest else ""
    return f"{ORDERED}: {f'{member}: ' if member else ''}{error.message}{hint}"


def _read(participants: Participants, members: Mapping[str, Any], fault_id: str) -> Fault:
    text = yaml.safe_dump({"steps": [{"fault": dict(members)}]}, default_flow_style=None)
    ordered, _ = parse_untrusted(text, ORDERED)
    if not isinstance(ordered, MapNode):
        raise UsageError(f"{ORDERED}: no mapping of members such as `link` and `cut`")
    told = participants.root
    keys = {**told.keys, **ordered.keys}
    root = MapNode(told.place, told.path, {**told.members, "steps": ordered.members["steps"]}, keys)
    findings = Findings(ORDERED)
    fit = sound(root, findings)
    findings.report()
    if not isinstance(fit, MapNode):
        raise UsageError(f"{ORDERED}: nothing of it can be read")
    root_folder = project_root(participants.scenario)
    reading = Reading(findings, gather(fit), root_folder, max(DEFAULT_DEADLINE, LONGEST), (), None)
    steps = read_steps(reading, fit, None, participants.partner)
    findings.report()
    if len(steps) != 1 or not isinstance(steps[0], FaultStep):
        raise UsageError(f"{ORDERED}: due is one fault")
    return replace(steps[0].fault, id=fault_id)
