"""The gate before a live partner API."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import NotApplicable, UsageError
from lab.partner.client.fixture_output import FixtureOutput
from lab.partner.client.issuer import IssuerTarget
from lab.run.partner.live import admitted_key, is_near, live_key_of, target_of
from tests.command_line import ROOT

ISSUER = IssuerTarget("https://store.example/grants", "issuer-key", None, None)
FAR = "https://api.example"
NEAR = "http://127.0.0.1:3005"


def output(environment: str = "test", issuer: IssuerTarget | None = ISSUER) -> FixtureOutput:
    return FixtureOutput(
        NEAR, "org", "lab", environment, "https://93.184.216.34/mcp", 1, "chat", "provisioning", "static", issuer
    )


@pytest.mark.parametrize(
    ("origin", "near"),
    [
        (NEAR, True),
        ("http://[::1]:3005", True),
        ("http://localhost:3005", True),
        ("http://partner:3005", True),
        ("http://192.168.1.4:3005", True),
        (FAR, False),
        ("http://8.8.8.8", False),
        ("https://localhost.example", False),
    ],
)
def test_what_is_near(origin: str, near: bool) -> None:
    assert is_near(origin) is near


@pytest.mark.req("PA-029")
def test_what_a_target_is_called() -> None:
    assert target_of(output(), NEAR) == "fixture-mock"
    assert target_of(output(issuer=None), NEAR) == "fixture"
    assert target_of(output(), FAR) == "live"
    assert target_of(output("production"), NEAR) == "live"


@pytest.mark.req("PA-033", "PA-034")
def test_a_live_one_needs_an_approval_and_a_key_of_its_own() -> None:
    with pytest.raises(NotApplicable, match="live partner API, which stands behind its operator's gate and is skipped"):
        admitted_key(output(), FAR, None)
    with pytest.raises(NotApplicable):
        admitted_key(output("production"), NEAR, None)
    for key in ("chat", "provisioning"):
        with pytest.raises(UsageError, match="needs one of its own"):
            admitted_key(output(), FAR, key)
    assert admitted_key(output(), FAR, "approved") == "approved"
    assert admitted_key(output(), NEAR, "approved") == "chat"


@pytest.mark.req("PA-033")
def test_an_approval_is_whole() -> None:
    assert live_key_of({}) is None
    assert live_key_of({"LAB_PARTNER_LIVE_CHAT_KEY": "key"}) is None
    with pytest.raises(UsageError, match="something else than APPROVED"):
        live_key_of({"LAB_PARTNER_LIVE": "yes", "LAB_PARTNER_LIVE_CHAT_KEY": "key"})
    with pytest.raises(UsageError, match="needs LAB_PARTNER_LIVE_CHAT_KEY"):
        live_key_of({"LAB_PARTNER_LIVE": "APPROVED"})
    assert live_key_of({"LAB_PARTNER_LIVE": "APPROVED", "LAB_PARTNER_LIVE_CHAT_KEY": "key"}) == "key"


@pytest.mark.req("GR-005")
def test_the_labs_issuer_is_for_tests_alone() -> None:
    """It never serves a live API, and says so wherever it is named."""
    with pytest.raises(UsageError, match="the lab's own is for tests alone"):
        admitted_key(output(issuer=None), FAR, "approved")
    for place, words in {
        "docs/partner.md": "The grant issuer exists for\ntests alone",
        "lab/commands/serve_partner.py": "grant issuer (for tests only)",
        "lab/up/environment.py": "grant issuer, for tests only",
    }.items():
        assert words in (ROOT / Path(place)).read_text("utf-8"), place
