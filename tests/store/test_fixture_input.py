"""The private input file: what it says, who may read it, and what is never written into one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.store.catalogue import make_catalogue
from lab.store.fixture_input import FIXTURE_INPUT, FixtureInput, loopback_port, write_fixture_input
from lab.store.tools import ToolSet, store_tools

TOOLS = ToolSet(store_tools(make_catalogue(7, 0)))
SECRET = "static-credential-of-the-test"
GIVEN = FixtureInput("http://127.0.0.1:3006/mcp", SECRET)


def write(root: Path, given: FixtureInput = GIVEN, ports: tuple[int, ...] = (3005, 3006)) -> Path:
    path = root / FIXTURE_INPUT
    write_fixture_input(path, given, TOOLS, ports)
    return path


@pytest.mark.req("FX-012", "FX-013", "FX-036", "PRIV-014")
def test_it_says_where_the_store_is_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert path.relative_to(tmp_path).as_posix() == ".orca/logs/store-fixture-input.json"
    assert json.loads(path.read_text()) == {
        "mcpTransportUrl": "http://127.0.0.1:3006/mcp",
        "staticCredential": SECRET,
        "toolName": "catalog_get",
        "toolInput": {"productId": 9001},
    }
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("FX-012", "PRIV-014")
def test_a_file_that_others_could_read_is_theirs_no_longer(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.chmod(0o644)
    write(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name], "nothing lies beside it"


GOOD = {
    "http://127.0.0.1:3006/mcp": 3006,
    "https://127.0.0.1:1/": 1,
    "http://[::1]:65535/mcp": 65535,
    "http://localhost:3006/a/b-c_d~e.f": 3006,
}
BAD = [
    "",
    "http://127.0.0.1/mcp",
    "http://127.0.0.1:3006",
    "http://127.0.0.1:0/mcp",
    "http://127.0.0.1:03006/mcp",
    "http://127.0.0.1:65536/mcp",
    "http://127.0.0.1:3006/mcp?x=1",
    "http://127.0.0.1:3006/mcp#x",
    "http://user@127.0.0.1:3006/mcp",
    "http://user:pass@127.0.0.1:3006/mcp",
    "http://127.0.0.1:3006@evil.example/mcp",
    "http://127.0.0.2:3006/mcp",
    "http://0.0.0.0:3006/mcp",
    "http://192.168.0.7:3006/mcp",
    "http://127.1:3006/mcp",
    "http://2130706433:3006/mcp",
    "http://[::ffff:127.0.0.1]:3006/mcp",
    "http://[0:0:0:0:0:0:0:1]:3006/mcp",
    "http://localhost.evil.example:3006/mcp",
    "http://LOCALHOST:3006/mcp",
    "HTTP://127.0.0.1:3006/mcp",
    "ftp://127.0.0.1:3006/mcp",
    "http://evil.example:3006/mcp",
    "http://127.0.0.1:3006/mcp\n",
    " http://127.0.0.1:3006/mcp",
    "http://127.0.0.1:３００６/mcp",
    "https://93.184.216.34/mcp",
]


@pytest.mark.req("FX-014", "FX-037", "MCP-006")
@pytest.mark.parametrize(("url", "port"), GOOD.items())
def test_an_exact_loopback_url_passes(tmp_path: Path, url: str, port: int) -> None:
    assert loopback_port(url) == port
    assert write(tmp_path, replace(GIVEN, mcp_transport_url=url), (port,)).exists()


@pytest.mark.req("FX-014", "FX-037", "MCP-006")
@pytest.mark.parametrize("url", BAD)
def test_any_other_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="mcpTransportUrl is") as caught:
        write(tmp_path, replace(GIVEN, mcp_transport_url=url))
    assert "pass" not in str(caught.value)
    assert not (tmp_path / FIXTURE_INPUT).exists()


@pytest.mark.req("FX-014", "FX-038", "MCP-006")
def test_a_port_that_nobody_registered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="port 3006, which is not registered; registered are 3005"):
        write(tmp_path, ports=(3005,))
    with pytest.raises(UsageError, match="registered are none"):
        write(tmp_path, ports=())


@pytest.mark.req("FX-014", "MCP-008")
@pytest.mark.parametrize("name", ["price_update", "unknown", "", "Catalog_Get"])
def test_a_tool_that_writes_or_is_not_listed_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="approved and read-only: catalog_get, catalog_search"):
        write(tmp_path, replace(GIVEN, tool_name=name))
    assert not (tmp_path / FIXTURE_INPUT).exists()


@pytest.mark.req("FX-036")
def test_an_input_that_the_tool_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="toolInput"):
        write(tmp_path, replace(GIVEN, tool_input={"productId": "9001"}))


def test_no_credential_is_refused_and_none_is_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="staticCredential"):
        write(tmp_path, replace(GIVEN, static_credential=""))
    assert SECRET not in repr(GIVEN)
