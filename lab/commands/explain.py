"""`lab explain`: a law, a requirement, a wire code or a close code, in the words of the tables that define them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches

import click

from lab.contract.chosen import contract_folder
from lab.contract.requirements import Requirement, default_requirements_folder, load_requirements
from lab.errors import ExitStatus, UsageError
from lab.laws import ALL_LAWS, Law
from lab.protocol.contract import Contract
from lab.protocol.errors import ERROR_CODES, CloseCodes

Facts = Mapping[str, object]


def explain_command(identifier: str, as_json: bool) -> ExitStatus:
    """Print what `identifier` stands for; an unknown one raises `UsageError` with the nearest."""
    requirements = load_requirements(default_requirements_folder())
    facts = _facts(identifier, requirements)
    if facts is None:
        raise UsageError(_unknown(identifier, requirements))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return ExitStatus.HELD
    for name, value in facts.items():
        if isinstance(value, list):
            click.echo(f"{name}:")
            for item in value:
                click.echo(f"  {item}")
        elif value not in (None, ""):
            click.echo(f"{name}: {value}")
    return ExitStatus.HELD


def _facts(identifier: str, requirements: Mapping[str, Requirement]) -> Facts | None:
    for law in ALL_LAWS:
        if law.id == identifier:
            return _law_facts(law, requirements)
    requirement = requirements.get(identifier.upper())
    if requirement is not None:
        return _requirement_facts(requirement)
    return _code_facts(identifier)


def _law_facts(law: Law, requirements: Mapping[str, Requirement]) -> Facts:
    return {
        "law": law.id,
        "promise": law.sentence,
        "party": law.party,
        "requirements": [f"{name}  {requirements[name].rule}" for name in law.requirements],
    }


def _requirement_facts(requirement: Requirement) -> Facts:
    laws = [f"{law.id}  {law.sentence}" for law in ALL_LAWS if requirement.id in law.requirements]
    return {
        "requirement": requirement.id,
        "basis": requirement.basis,
        "rule": requirement.rule,
        "check": requirement.check,
        "source": requirement.source,
        "outside the lab": requirement.reason if requirement.scope == "outside" else None,
        "laws": laws,
    }


def _code_facts(identifier: str) -> Facts | None:
    closes = CloseCodes(Contract.load(contract_folder()).error_codes)
    name = closes.name(int(identifier)) if identifier.isascii() and identifier.isdigit() else identifier
    code = ERROR_CODES.get(name or "")
    if code is None:
        return None
    return {
        "code": code.name,
        "meaning": code.doc,
        "close code": closes.of(code.name),
        "ends the connection": "yes" if code.fatal else "no",
        "worth trying again": "yes" if code.retryable else "no",
        "at fault": code.at_fault,
    }


def _unknown(identifier: str, requirements: Mapping[str, Requirement]) -> str:
    known = {name.lower(): name for name in (*(law.id for law in ALL_LAWS), *requirements, *ERROR_CODES)}
    nearest = get_close_matches(identifier.lower(), known, n=1)
    hint = f" Did you mean `{known[nearest[0]]}`?" if nearest else ""
    return f"`{identifier}` is no law, requirement, wire code or close code.{hint}"
