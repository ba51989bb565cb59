"""Loading a scenario with all that its words are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.agent2.script import load_script
from lab.contract.chosen import contract_folder
from lab.errors import ScenarioError, ScenarioErrors
from lab.laws import CHAT_LAWS, PARTNER_LAWS
from lab.protocol.contract import contract_of
from lab.run.figures import FIGURE_NAMES
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario


def load(path: Path, overrides: Mapping[str, str] | None = None) -> Scenario:
    """The scenario in a file; see `load_scenario` for what it raises."""
    return load_scenario(
        path,
        known_laws=[law.id for law in CHAT_LAWS],
        known_partner_laws=[law.id for law in PARTNER_LAWS],
        overrides=overrides,
        known_figures=FIGURE_NAMES,
    )


def check_scripts(scenario: Scenario) -> None:
    """Read the scripts that a scenario names for agent2; raises `ScenarioErrors` with the first mistake of each."""
    mistakes = []
    for path in dict.fromkeys(file for spec in scenario.agent2s.values() for file in spec.scripts.values()):
        try:
            load_script(path)
        except ScenarioError as error:
            mistakes.append(error)
    if mistakes:
        raise ScenarioErrors(tuple(mistakes))


def check_revisions(scenario: Scenario) -> None:
    """Raises `ContractError` for a contract that drifted, and for a revision of a party that it has not."""
    folder = contract_folder()
    revisions = [gateway.revision for gateway in scenario.gateways.values()]
    for revision in (*revisions, *(agent.revision for agent in scenario.local_agents.values())):
        contract_of(folder, revision)
