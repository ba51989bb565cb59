"""What cannot be asked of a partner API that the lab does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.run.partner.applicability import beyond
from tests.scenario.partner_texts import SHORT_PARTNER, partner_project
from tests.scenario.texts import load

STEP = "  - membership: { user: anna }\n"


def why(tmp_path: Path, old: str, new: str, *, own_store: bool) -> str | None:
    assert old in SHORT_PARTNER
    scenario = load(partner_project(tmp_path), "short", SHORT_PARTNER.replace(old, new))
    return beyond(scenario, own_store=own_store)


@pytest.mark.parametrize("own_store", [True, False])
def test_what_a_partner_s_server_does_can_be_asked_of_any(tmp_path: Path, own_store: bool) -> None:
    assert why(tmp_path, "{}", "{}", own_store=own_store) is None


@pytest.mark.req("PA-055", "FX-035")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("partner_api: {}", "partner_api: {}\nrequires: [controls]", "no controls"),
        (STEP, f"{STEP}  - fault: {{ partner: partner_api, crash: true, for: 1s }}\n", "not the lab's to strike"),
        ("{}", "{ agents: { talk: { mcp: none } } }", "needs another"),
        ("{}", "{ agents: { one: {}, two: {} } }", "needs another"),
        ("{}", "{ agents: { one: { profile: false } } }", "needs another"),
        ("{}", "{ teams: [shop, office] }", "only one team"),
        ("{}", '{ mcp_era: "2026" }', "can be set up"),
        ("{}", "{ checks_claims: true }", "can be set up"),
    ],
)
def test_what_only_the_lab_s_own_can_be_brought_to(tmp_path: Path, old: str, new: str, told: str) -> None:
    seen = why(tmp_path, old, new, own_store=True)
    assert seen is not None
    assert told in seen


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("partner_api: {}", "partner_api: {}\nstore: { answers: sse }", "a store of its own"),
        ("partner_api: {}", "partner_api: {}\nstore: { misbehave: [ { do: reset } ] }", "a store of its own"),
        (STEP, f"{STEP}  - store: {{ forget_sessions: true }}\n", "a store of its own"),
        (STEP, f"{STEP}  - fault: {{ link: store, cut: true, for: 1s }}\n", "a store of its own"),
        (STEP, f"{STEP}  - fault: {{ partner: store, crash: true, for: 1s }}\n", "a store of its own"),
        ("partner_api: {}", "partner_api: {}\nexpect: [ { figures.store_executed: 1 } ]", "counts what reaches"),
        ("partner_api: {}", "partner_api: {}\nexpect: [ { figures.grants: 1 } ]", "counts those of the lab's"),
        ("partner_api: {}", "partner_api: {}\nissuer: { ttl: 1s }", "an issuer of its own"),
        (STEP, f"{STEP}  - fault: {{ link: issuer, cut: true, for: 1s }}\n", "an issuer of its own"),
    ],
)
def test_what_needs_the_lab_s_store_or_issuer(tmp_path: Path, old: str, new: str, told: str) -> None:
    """It applies where the lab plays them, and not where a fixture brings its own."""
    assert why(tmp_path, old, new, own_store=True) is None
    seen = why(tmp_path, old, new, own_store=False)
    assert seen is not None
    assert told in seen
