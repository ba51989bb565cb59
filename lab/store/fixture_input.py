"""The private input file with which a fixture of the real API finds the store (FX-012 to FX-014)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import UsageError
from lab.private_files import replace_private
from lab.store.catalogue import PROVEN_PRODUCT
from lab.store.rpc import JsonObject
from lab.store.tools import ToolSet

# FX-012: below the workspace's root
FIXTURE_INPUT = Path(".orca/logs/store-fixture-input.json")

# FX-036: the proven call (MCP-004)
DEFAULT_TOOL = "catalog_get"
DEFAULT_INPUT: JsonObject = {"productId": PROVEN_PRODUCT}

# FX-037: an exact address of this machine, with a port and a path, and nothing beside them
_LOOPBACK_URL = re.compile(r"https?://(?:127\.0\.0\.1|\[::1\]|localhost):([1-9][0-9]{0,4})/[A-Za-z0-9._~/-]*")
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class FixtureInput:
    """What the file says: where the store is, with which credential, and the call that proves it."""

    mcp_transport_url: str
    static_credential: str = field(repr=False)
    tool_name: str = DEFAULT_TOOL
    tool_input: JsonObject = field(default_factory=lambda: dict(DEFAULT_INPUT))


def write_fixture_input(path: Path, given: FixtureInput, tools: ToolSet, registered_ports: Collection[int]) -> None:
    """Write the file with mode 0600, in one step.

    What a fixture would refuse raises `UsageError` and writes nothing: a URL that is no loopback URL of a registered
    port, a tool that is not approved and read-only, an input that the tool does not take. A disk that refuses raises
    `EnvironmentFault`.
    """
    port = loopback_port(given.mcp_transport_url)
    if port not in registered_ports:
        raise UsageError(
            f"mcpTransportUrl has port {port}, which is not registered; registered are "
            f"{', '.join(map(str, sorted(registered_ports))) or 'none'}."
        )
    # MCP-008
    approved = tools.approved_reading()
    tool = tools.find(given.tool_name)
    if tool is None or given.tool_name not in approved:
        seen = given.tool_name[:_SHOWN_CHARACTERS]
        raise UsageError(f"toolName is `{seen}`; it must be approved and read-only: {', '.join(approved)}.")
    if not tool.takes(given.tool_input):
        raise UsageError(f"toolInput is not what the inputSchema of {tool.name} asks for.")
    if not given.static_credential:
        raise UsageError("staticCredential is empty; give the one that the store was started with.")
    text = json.dumps(
        {
            "mcpTransportUrl": given.mcp_transport_url,
            "staticCredential": given.static_credential,
            "toolName": given.tool_name,
            "toolInput": given.tool_input,
        },
        indent=2,
    )
    replace_private(path, text + "\n")


def loopback_port(url: str) -> int:
    """The port of an exact loopback URL; anything else raises `UsageError`."""
    found = _LOOPBACK_URL.fullmatch(url)
    if found is None or int(found[1]) > 65_535:
        raise UsageError(
            f"mcpTransportUrl is {_shown(url)}; due is http(s)://127.0.0.1:PORT/PATH, with [::1] or localhost "
            "for the address if you like, and no user, query or fragment."
        )
    return int(found[1])


def _shown(url: str) -> str:
    # What stands before an @ could be a password.
    return "a URL with a user in it" if "@" in url else repr(url[:_SHOWN_CHARACTERS])
