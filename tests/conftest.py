"""Refuses, at collection, a requirement marker whose id the ledger does not have."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable

import pytest

from lab.contract.requirements import default_requirements_folder, load_requirements
from lab.errors import ContractError

_KNOWN = pytest.StashKey[Collection[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turns the report of a collector into an error when a test of it names an unknown id."""
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    if report.passed and (faults := _faults(collector.config, items)):
        report.outcome = "failed"
        report.longrepr = "\n".join(faults)
        report.result = []
    return report


def _faults(config: pytest.Config, items: Iterable[pytest.Item]) -> list[str]:
    named = [(item, marker.args) for item in items for marker in item.iter_markers("req")]
    if not named:
        return []
    try:
        known = _known(config)
    except ContractError as error:
        return [str(error)]
    faults = [f"{item.nodeid}: a req marker that names no id" for item, ids in named if not ids]
    faults.extend(
        f"{item.nodeid}: {id_!r} is not in the requirements ledger; correct the marker or add the entry"
        for item, ids in named
        for id_ in ids
        if id_ not in known
    )
    return faults


def _known(config: pytest.Config) -> Collection[str]:
    """The ids of the ledger, read once a session."""
    if _KNOWN not in config.stash:
        config.stash[_KNOWN] = frozenset(load_requirements(default_requirements_folder()))
    return config.stash[_KNOWN]
