"""`lab fixture`: a script of the API's, played by a stand-in under a stand-in for Node."""

from __future__ import annotations

import json
import signal
import socket
import sys
from pathlib import Path

import pytest

from lab.commands.fixture import start_script
from lab.errors import SutFault
from lab.partner.client.fixture_output import FIXTURE_OUTPUT
from lab.run.partner.fixture_script import SCRIPT
from lab.store.fixture_input import FIXTURE_INPUT
from tests.command_line import Child, environment, lab

STAND_IN = """\
import json, os, pathlib, signal, socket, sys
given = {name: text for name, text in os.environ.items() if name.startswith(("PARTNER_CHAT", "NODE_"))}
told = {"arguments": sys.argv[1:], "folder": os.getcwd(), "variables": given}
pathlib.Path("told.json").write_text(json.dumps(told))
if sys.argv[1] == "--test":
    sys.exit(7)
if sys.argv[1].startswith("--fixture"):
    listening = socket.create_server(("127.0.0.1", 0))
    output = json.loads(pathlib.Path("output.json").read_text())
    output["apiOrigin"] = "http://127.0.0.1:%d" % listening.getsockname()[1]
    place = pathlib.Path(".orca/logs/server-chat-fixture.json")
    place.unlink(missing_ok=True)
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600))
    place.write_text(json.dumps(output))
    signal.pause()
"""
OUTPUT = {
    "apiOrigin": "http://127.0.0.1:9",
    "organizationId": "org",
    "namespace": "lab",
    "environment": "test",
    "provisioningKey": "key-one",
    "chatKey": "key-two",
    "destination": "https://93.184.216.34/mcp",
    "staticCredential": "key-three",
    "fixtureExpiresAt": "2999-01-01T00:30:00.000Z",
    "instanceId": "i-2",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """With the script, and with a file that an instance of yesterday has left."""
    folder = tmp_path / "tree"
    (folder / SCRIPT).parent.mkdir(parents=True)
    (folder / SCRIPT).write_text(STAND_IN)
    (folder / "output.json").write_text(json.dumps(OUTPUT))
    left = folder / FIXTURE_OUTPUT
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({**OUTPUT, "instanceId": "i-1"}))
    left.chmod(0o600)
    return folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `node` runs the stand-in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "node").symlink_to(sys.executable)
    return str(folder)


def told(workspace: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((workspace / "told.json").read_text())
    return found


def free_base() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
    return port - 5


@pytest.mark.req("FX-001")
def test_a_check_is_asked_for_without_an_opt_in(workspace: Path, path: str) -> None:
    done = lab("fixture", "check", "--workspace", workspace, PATH=path, PARTNER_CHAT_SMOKE_OPT_IN="TEST_ONLY")
    assert done.returncode == 0, done.stderr
    assert told(workspace) == {
        "arguments": ["--check"],
        "folder": str(workspace),
        "variables": {"PARTNER_CHAT_FIXTURE_WORKSPACE": str(workspace)},
    }


@pytest.mark.req("FX-002")
def test_a_test_that_fails_is_told(workspace: Path, path: str) -> None:
    done = lab("fixture", "test", "--workspace", workspace, PATH=path)
    assert done.returncode == 3
    assert "partner-chat-smoke.mjs --test ended with status 7" in done.stderr
    assert told(workspace)["variables"] == {
        "PARTNER_CHAT_FIXTURE_WORKSPACE": str(workspace),
        "PARTNER_CHAT_SMOKE_OPT_IN": "TEST_ONLY",
    }


@pytest.mark.req("FX-003", "FX-041")
def test_a_fixture_is_ready_with_a_file_of_its_own(workspace: Path, path: str) -> None:
    """The file of yesterday's instance is none; without the store's input file; and it ends with the command."""
    assert not (workspace / FIXTURE_INPUT).exists()
    arguments: list[str | Path] = ["fixture", "fixture-mock", "--workspace", workspace, "--api-port", str(free_base())]
    with Child(arguments, env=environment(PATH=path)) as child:
        child.until("the fixture is ready at http://127.0.0.1:")
        assert "127.0.0.1:9;" not in child.text
        assert [key for key in ("key-one", "key-two", "key-three") if key in child.text] == []
        child.send(signal.SIGINT)
        assert child.end() == 0, child.text


@pytest.mark.req("FX-041")
def test_a_file_of_the_old_instance_is_not_accepted(
    workspace: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "output.json").write_text(json.dumps({**OUTPUT, "instanceId": "i-1"}))
    monkeypatch.setenv("PATH", path)
    with pytest.raises(SutFault, match=r"no fixture wrote .* within 1 s"):
        start_script("fixture-mock", workspace, free_base(), None, 1.0)
    assert told(workspace)["arguments"] == ["--fixture-mock"]


@pytest.mark.req("FX-022")
def test_a_port_that_is_taken_stops_the_start(workspace: Path, path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        done = lab("fixture", "fixture-mock", "--workspace", workspace, "--api-port", str(port - 5), PATH=path)
    assert done.returncode == 2
    assert f"port {port}, the fixture's, is taken" in done.stderr
    assert not (workspace / "told.json").exists()


@pytest.mark.req("FX-004")
def test_the_store_mode_without_its_input_file(workspace: Path, path: str) -> None:
    done = lab("fixture", "fixture", "--workspace", workspace, PATH=path)
    assert done.returncode == 2
    assert "the private input file of the store is missing" in done.stderr
    assert not (workspace / "told.json").exists()


@pytest.mark.req("FX-040")
def test_without_node_it_is_skipped(workspace: Path, tmp_path: Path) -> None:
    done = lab("fixture", "check", "--workspace", workspace, PATH=str(tmp_path))
    assert done.returncode == 4
    assert "skipped: there is no `node` in PATH" in done.stderr
