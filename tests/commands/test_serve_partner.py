"""`lab serve store` and `lab serve partner`: two programs that find each other by what they print."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lab.cli import run_command_line
from lab.commands.serve_partner import NEEDED
from lab.commands.serving import partner_words
from lab.journal.partner_events import IssuerRequest, PartnerRequest, StoreRequest
from tests.command_line import PATIENCE, ROOT, Child, environment, shown_environment

STORE_NAMES = [
    "LAB_GRANT_ISSUER_KEY",
    "LAB_GRANT_ISSUER_URL",
    "LAB_GRANT_REGISTER_KEY",
    "LAB_GRANT_REGISTER_URL",
    "LAB_ORGANIZATION_ID",
    "LAB_STORE_CREDENTIAL",
    "LAB_STORE_SERVER_ID",
    "LAB_STORE_URL",
]
PARTNER_NAMES = [
    "LAB_AGENT_ID",
    "LAB_PARTNER_API_ORIGIN",
    "LAB_PARTNER_CHAT_KEY",
    "LAB_PARTNER_CONTROL_KEY",
    "LAB_PARTNER_PROVISIONING_KEY",
    "LAB_PARTNER_TEAM",
]
SCRIPT = ROOT / "fixtures" / "partner" / "product-9001.yaml"
WORKSPACE = "PARTNER_CHAT_FIXTURE_WORKSPACE"


def test_two_programs_and_a_driver(tmp_path: Path) -> None:
    """What one prints starts the other, and its private file lets `lab run` drive both to an answer."""
    journal, output = tmp_path / "store.jsonl", tmp_path / ".orca" / "logs" / "server-chat-fixture.json"
    with Child(["serve", "store", "--answers", "sse", "--journal", journal]) as store:
        store.until("LAB_GRANT_REGISTER_KEY")
        told = shown_environment(store.text)
        assert sorted(told) == STORE_NAMES
        with Child(["serve", "partner", "--script", SCRIPT, "--output", output], env=environment(**told)) as partner:
            partner.until("LAB_AGENT_ID")
            more = shown_environment(partner.text)
            assert sorted(more) == PARTNER_NAMES
            assert output.stat().st_mode & 0o777 == 0o600
            with Child(
                ["run", "scenarios/partner-onboarding.yaml", "--partner", "fixture", "--out", tmp_path / "out"],
                env=environment(**{WORKSPACE: str(tmp_path)}),
            ) as run:
                assert run.end() == 0, run.text
            partner.until("POST /conversations 201")
            store.until("store catalog_get 200")
            partner.send(signal.SIGINT)
            assert partner.end() == 0, partner.text
            assert partner.text.count(more["LAB_PARTNER_CHAT_KEY"]) == 1
        assert not output.exists()
        store.send(signal.SIGTERM)
        assert store.end() == 0, store.text
    assert store.text.count(told["LAB_STORE_CREDENTIAL"]) == 1
    kept = journal.read_text("utf-8")
    assert journal.stat().st_mode & 0o777 == 0o600
    assert [told[name] for name in told if name.endswith(("KEY", "CREDENTIAL")) and told[name] in kept] == []


def test_a_state_outlives_its_program(tmp_path: Path) -> None:
    """FX-026: keys are the same after a restart."""
    told = {
        "LAB_ORGANIZATION_ID": "org",
        "LAB_STORE_SERVER_ID": "srv",
        "LAB_STORE_URL": "http://127.0.0.1:9/mcp",
        "LAB_STORE_CREDENTIAL": "credential",
        "LAB_AGENT_ID": "agent",
    }
    keys = []
    for _ in range(2):
        with Child(["serve", "partner", "--state", tmp_path / "s.sqlite"], env=environment(**told)) as partner:
            partner.until("LAB_AGENT_ID")
            shown = shown_environment(partner.text)
            keys.append([shown[name] for name in PARTNER_NAMES if name.endswith("KEY")])
            assert shown["LAB_AGENT_ID"] == "agent"
            partner.send(signal.SIGTERM)
            assert partner.end() == 0, partner.text
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    "words",
    [["store", "--port"], ["store", "--issuer-port"], ["partner", "--port"]],
    ids=["store", "issuer", "partner"],
)
def test_a_taken_port(words: list[str]) -> None:
    """Status 3, with the port and what to do; the other part is gone too."""
    given = dict.fromkeys(NEEDED, "x")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Child(["serve", *words, str(port)], env=environment(**given)) as child:
            assert child.end() == 3
    assert f"cannot listen on 127.0.0.1:{port}" in child.text
    assert child.text.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "given", "status", "told"),
    [
        (["partner"], {}, 2, "LAB_ORGANIZATION_ID, LAB_STORE_SERVER_ID, LAB_STORE_URL, LAB_STORE_CREDENTIAL missing"),
        (["partner"], {"LAB_ORGANIZATION_ID": "x"}, 2, "LAB_STORE_SERVER_ID, LAB_STORE_URL, LAB_STORE_CREDENTIAL miss"),
        (["partner", "--script", "none.yaml"], None, 2, "none.yaml"),
        (["partner", "--state", "/proc/none/s"], None, 3, "Name a place that can be written, with --state."),
        (["partner", "--output", "/proc/none/o"], None, 3, "/proc/none"),
        (["partner", "--journal", "/proc/none/j"], None, 3, "--journal /proc/none/j"),
        (["store", "--journal", "/proc/none/j"], {}, 3, "--journal /proc/none/j"),
        (["store", "--answers", "xml"], {}, 2, "--answers"),
        (["store", "--issuer-port", "70000"], {}, 2, "70000"),
    ],
)
def test_what_cannot_be_served(
    arguments: list[str],
    given: dict[str, str] | None,
    status: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A sentence, and nothing that goes on."""
    for name in [name for name in os.environ if name.startswith("LAB_")]:
        monkeypatch.delenv(name)
    for name, value in (dict.fromkeys(NEEDED, "x") if given is None else given).items():
        monkeypatch.setenv(name, value)
    assert run_command_line(["serve", *arguments]) == status
    captured = capfd.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_an_environment_that_is_none(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """PA-060: only the two names; production is the word of the contract, and everything else a mistake."""
    for name in NEEDED:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("PARTNER_API_ENVIRONMENT", "staging")
    assert run_command_line(["serve", "partner"]) == 2
    assert "staging" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (PartnerRequest("GET", "GET /conversations", 200), "GET /conversations 200"),
        (PartnerRequest("GET", "unknown", 404, code="CHAT_UNAVAILABLE"), "unknown 404 CHAT_UNAVAILABLE"),
        (
            PartnerRequest("PUT", "PUT /x", 400, code="CHAT_INVALID", facts={"why": "role is missing"}),
            "PUT /x 400 CHAT_INVALID: role is missing",
        ),
        (
            PartnerRequest("PUT", "PUT /x", 403, code="EXECUTION_DENIED", facts={"why": "lease"}),
            "PUT /x 403 EXECUTION_DENIED",
        ),
        (StoreRequest("POST", "2025", "tools/call", 200, tool="catalog_get"), "store catalog_get 200"),
        (StoreRequest("POST", "2025", "initialize", 200), "store initialize 200"),
        (StoreRequest("DELETE", "2025", None, 204), "store DELETE 204"),
        (
            StoreRequest("POST", "2025", None, 403, tool="catalog_get", refused="expired"),
            "store catalog_get 403 refused: expired",
        ),
        (IssuerRequest("grants", 200), "issuer grants 200"),
        (IssuerRequest("grants", 404, code="not_found"), "issuer grants 404 not_found"),
    ],
)
def test_what_a_terminal_shows_of_a_request(event: PartnerRequest | StoreRequest | IssuerRequest, line: str) -> None:
    assert partner_words(event) == line


@pytest.mark.req("MCP-007")
def test_a_store_by_https_writes_what_to_trust(tmp_path: Path) -> None:
    """Of this start alone, and never how not to look."""
    ca = tmp_path / "ca.pem"
    with Child(["serve", "store", "--tls", ca]) as store:
        store.until("SSL_CERT_FILE")
        url = shown_environment(store.text)["LAB_STORE_URL"]
        assert f"NODE_EXTRA_CA_CERTS={ca} " in store.text
        assert "REJECT_UNAUTHORIZED" not in store.text
        with pytest.raises(urllib.error.HTTPError, match="401") as served:
            urllib.request.urlopen(url, b"{}", PATIENCE, context=ssl.create_default_context(cafile=ca))
        served.value.close()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(url, b"{}", PATIENCE, context=ssl.create_default_context())
        store.send(signal.SIGINT)
        assert store.end() == 0, store.text
    assert "PRIVATE KEY" not in ca.read_text()
