"""How the partner API's own script is started: a table of modes, ports and refusals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import NotApplicable, UsageError
from lab.partner.client.fixture_output import FIXTURE_OUTPUT
from lab.run.partner.fixture_script import Machine, Mode, ScriptStart, plan_script
from lab.store.fixture_input import FIXTURE_INPUT

WORKSPACE = Path("/work/tree")
STORE = "http://127.0.0.1:4006/mcp"
WHOLE = Machine("/usr/bin/node", True, STORE, lambda _port: True)
INHERITED = {
    "PATH": "/usr/bin",
    "PARTNER_CHAT_SMOKE_OPT_IN": "TEST_ONLY",
    "PARTNER_CHAT_FIXTURE_MCP_PORT": "1",
    "NODE_EXTRA_CA_CERTS": "/another.pem",
    "NODE_TLS_REJECT_UNAUTHORIZED": "no",
}


def start(
    mode: Mode, machine: Machine = WHOLE, workspace: Path = WORKSPACE, port: int = 4000, ca: Path | None = None
) -> ScriptStart:
    return plan_script(mode, workspace, port, machine, ca)


def taken(*ports: int) -> Machine:
    return replace(WHOLE, is_free=lambda port: port not in ports)


@pytest.mark.req("FX-001", "FX-002", "FX-003", "FX-004", "FX-021", "FX-015")
@pytest.mark.parametrize(
    ("mode", "opted_in"), [("check", False), ("test", True), ("fixture-mock", True), ("fixture", True)]
)
def test_each_mode_has_its_command_and_only_one_needs_no_opt_in(mode: str, opted_in: bool) -> None:
    """Whatever a shell had before; and TLS is validated in all of them."""
    made = start(Mode(mode))
    assert made.command == ("/usr/bin/node", "api/scripts/partner-chat-smoke.mjs", f"--{mode}")
    due = {"PATH": "/usr/bin", "PARTNER_CHAT_FIXTURE_WORKSPACE": "/work/tree"}
    assert made.environment(INHERITED) == {**due, **({"PARTNER_CHAT_SMOKE_OPT_IN": "TEST_ONLY"} if opted_in else {})}


@pytest.mark.req("FX-003", "FX-004")
def test_only_the_store_mode_needs_the_input_file() -> None:
    without = replace(WHOLE, store_url=None)
    assert start(Mode.FIXTURE_MOCK, without).ports == (4005, 4006)
    with pytest.raises(UsageError, match="the private input file of the store is missing"):
        start(Mode.FIXTURE, without)


@pytest.mark.req("FX-021")
def test_a_relative_workspace_is_refused() -> None:
    with pytest.raises(UsageError, match="the workspace tree is relative"):
        start(Mode.CHECK, workspace=Path("tree"))


@pytest.mark.req("FX-015")
def test_an_https_store_comes_with_its_own_authority(tmp_path: Path) -> None:
    encrypted = replace(WHOLE, store_url="https://127.0.0.1:4006/mcp")
    with pytest.raises(UsageError, match="--ca"):
        start(Mode.FIXTURE, encrypted)
    ca = tmp_path / "ca.pem"
    assert start(Mode.FIXTURE, encrypted, ca=ca).environment({})["NODE_EXTRA_CA_CERTS"] == str(ca)
    assert "NODE_EXTRA_CA_CERTS" not in start(Mode.FIXTURE, ca=ca).variables


@pytest.mark.req("FX-005", "FX-022", "FX-023")
@pytest.mark.parametrize(
    ("base", "used", "ports", "told"),
    [(3000, (), (3005, 3006), None), (4100, (), (4105, 4106), None), (3000, (3006, 3007), (3005, 3008), "3008")],
)
def test_ports_are_counted_from_the_workspaces(
    base: int, used: Collection[int], ports: tuple[int, int], told: str | None
) -> None:
    """A taken +6 is another port, which the script is told; +5 stays."""
    made = start(Mode.FIXTURE_MOCK, taken(*used), port=base)
    assert made.ports == ports
    assert made.variables.get("PARTNER_CHAT_FIXTURE_MCP_PORT") == told


@pytest.mark.req("FX-022")
def test_ports_that_cannot_be_had_stop_the_start() -> None:
    with pytest.raises(UsageError, match="port 4005, the fixture's, is taken"):
        start(Mode.FIXTURE, taken(4005))
    with pytest.raises(UsageError, match="port 4006, the mock MCP's, is taken, and so are 50 behind it"):
        start(Mode.FIXTURE, replace(WHOLE, is_free=lambda port: port == 4005))
    with pytest.raises(UsageError, match="port 65536, the mock MCP's"):
        start(Mode.FIXTURE, port=65_530)


@pytest.mark.req("FX-025")
def test_two_workspaces_share_nothing() -> None:
    """No port, no private file, and no database, of which the lab tells neither anything."""
    one, two = start(Mode.FIXTURE_MOCK), start(Mode.FIXTURE_MOCK, workspace=Path("/work/other"), port=4100)
    assert one.ports is not None
    assert two.ports is not None
    assert not set(one.ports) & set(two.ports)
    shared = set(one.variables.items()) & set(two.variables.items())
    assert shared == {("PARTNER_CHAT_SMOKE_OPT_IN", "TEST_ONLY")}
    files = [{made.workspace / FIXTURE_INPUT, made.workspace / FIXTURE_OUTPUT} for made in (one, two)]
    assert not files[0] & files[1]
    assert set(one.variables) == {"PARTNER_CHAT_SMOKE_OPT_IN", "PARTNER_CHAT_FIXTURE_WORKSPACE"}


@pytest.mark.req("FX-040")
def test_without_node_or_the_script_it_is_skipped_and_the_model_named() -> None:
    with pytest.raises(NotApplicable, match=r"skipped: there is no `node` in PATH .* `--partner reference`"):
        start(Mode.FIXTURE_MOCK, replace(WHOLE, node=None))
    with pytest.raises(NotApplicable, match=r"skipped: /work/tree has no api/.*\.mjs; `--partner reference`"):
        start(Mode.FIXTURE_MOCK, replace(WHOLE, has_script=False))
