"""How the partner API's own fixture script is started: its command line, its variables and its ports. Pure.

The script is the API's; what it does inside, and on which database, is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from lab.errors import NotApplicable, UsageError

SCRIPT: Final = Path("api/scripts/partner-chat-smoke.mjs")
"""Below the workspace's root (FX-001)."""
OPT_IN: Final = "PARTNER_CHAT_SMOKE_OPT_IN"
OPTED_IN: Final = "TEST_ONLY"
WORKSPACE: Final = "PARTNER_CHAT_FIXTURE_WORKSPACE"
MCP_PORT: Final = "PARTNER_CHAT_FIXTURE_MCP_PORT"
EXTRA_CA: Final = "NODE_EXTRA_CA_CERTS"
_NO_VALIDATION: Final = "NODE_TLS_REJECT_UNAUTHORIZED"

API_OFFSET: Final = 5
MCP_OFFSET: Final = 6
"""FX-005: behind the API port of the workspace."""
PORTS_TRIED: Final = 50
"""FX-023: how many ports behind a taken one are looked at."""


class Mode(StrEnum):
    """What the script is asked for; the value is its option without the dashes."""

    CHECK = "check"
    TEST = "test"
    FIXTURE_MOCK = "fixture-mock"
    FIXTURE = "fixture"

    @property
    def stays(self) -> bool:
        """Whether it is a fixture, which stays and can be driven."""
        return self in (Mode.FIXTURE_MOCK, Mode.FIXTURE)


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is. `node` is the interpreter's path; `store_url` is the MCP URL of the private input file, if any."""

    node: str | None
    has_script: bool
    store_url: str | None
    is_free: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class ScriptStart:
    """A start of the script in `workspace`. `ports` are those of the fixture: its API, and its mock MCP."""

    mode: Mode
    workspace: Path
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, int] | None = None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """All variables of the process: nothing of an earlier start, and never one that ends TLS validation."""
        own = (OPT_IN, WORKSPACE, MCP_PORT, EXTRA_CA, _NO_VALIDATION)
        return {**{name: value for name, value in inherited.items() if name not in own}, **self.variables}


def plan_script(mode: Mode, workspace: Path, api_port: int, machine: Machine, ca_file: Path | None) -> ScriptStart:
    """The start of a mode. `api_port` is the port that the workspace has reserved for its API.

    Raises `NotApplicable` without Node or without the script (FX-040), `UsageError` for a relative workspace (FX-021),
    a missing input file (FX-004), a missing CA file of an HTTPS store (FX-015) and a port that is taken (FX-022).
    """
    if not workspace.is_absolute():
        raise UsageError(f"the workspace {workspace} is relative; an absolute path is due.")
    if machine.node is None:
        raise NotApplicable(
            "skipped: there is no `node` in PATH to run the fixture with; `--partner reference` needs none"
        )
    if not machine.has_script:
        raise NotApplicable(f"skipped: {workspace} has no {SCRIPT}; `--partner reference` drives the lab's own model")
    command = (machine.node, str(SCRIPT), f"--{mode}")
    variables = {WORKSPACE: str(workspace)}
    if mode is Mode.CHECK:
        return ScriptStart(mode, workspace, command, variables)
    variables[OPT_IN] = OPTED_IN
    if not mode.stays:
        return ScriptStart(mode, workspace, command, variables)
    if mode is Mode.FIXTURE:
        variables |= _store_variables(machine.store_url, ca_file)
    ports = _ports(api_port, machine.is_free)
    if ports[1] != api_port + MCP_OFFSET:
        variables[MCP_PORT] = str(ports[1])
    return ScriptStart(mode, workspace, command, variables, ports)


def _store_variables(store_url: str | None, ca_file: Path | None) -> dict[str, str]:
    if store_url is None:
        raise UsageError(
            "the private input file of the store is missing: start `lab run … --partner fixture` first, which writes "
            "it and waits for the fixture."
        )
    if not store_url.startswith("https://"):
        return {}
    if ca_file is None:
        raise UsageError("the store is at an HTTPS address: name the file of its certificate authority with --ca.")
    return {EXTRA_CA: str(ca_file.absolute())}


def _ports(api_port: int, is_free: Callable[[int], bool]) -> tuple[int, int]:
    api = api_port + API_OFFSET
    if not is_free(api):
        raise UsageError(f"port {api}, the fixture's, is taken. End what has it, or name another base with --api-port.")
    first = api_port + MCP_OFFSET
    mcp = next((port for port in range(first, min(first + PORTS_TRIED, 65_536)) if is_free(port)), None)
    if mcp is None:
        raise UsageError(f"port {first}, the mock MCP's, is taken, and so are {PORTS_TRIED} behind it.")
    return api, mcp
