"""`lab up`: an environment in a child, its tour in real shells, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cli import fault as fault_command
from lab.cli import run_command_line
from lab.cli import up as up_command
from lab.commands.up import FOLDER
from lab.up.environment import PORTS
from lab.up.files import CONTROL, KEYS, SHELL
from tests.command_line import PATIENCE, ROOT, Child, environment, lab

SCENARIO = ROOT / "scenarios" / "partner-onboarding.yaml"
LAST_LINE = "lab fault store heal"


class Up:
    """A running environment. Its folder is `.orca/logs` below its workspace."""

    def __init__(self, child: Child, workspace: Path) -> None:
        self.child = child
        self.workspace = workspace
        self.folder = workspace / ".orca" / "logs"

    @property
    def keys(self) -> dict[str, str]:
        """The private file."""
        found: dict[str, str] = json.loads((self.folder / KEYS).read_text("utf-8"))
        return found

    @property
    def tour(self) -> str:
        """The commands as they were printed."""
        found = re.search(
            r"the tour, for a second terminal in this folder:\n\n(.*?)\nbreak and heal", self.child.text, re.S
        )
        assert found is not None, self.child.text
        return found[1]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    workspace = tmp_path_factory.mktemp("workspace")
    temporary = tmp_path_factory.mktemp("temporary")
    arguments: list[str | Path] = ["up", SCENARIO, "--port", "0", "--ttl", "10m", "--journal", workspace / "j.jsonl"]
    with Child(arguments, cwd=workspace, env=environment(TMPDIR=str(temporary))) as child:
        child.until(LAST_LINE)
        yield Up(child, workspace)
        child.send(signal.SIGINT)
        assert child.end() == 0, child.text
    assert child.text.rstrip().endswith("ended")
    assert [*(workspace / ".orca" / "logs").iterdir()] == []
    assert [path for path in temporary.iterdir() if path.name.startswith("lab-")] == []
    assert (workspace / "j.jsonl").stat().st_mode & 0o777 == 0o600


def secrets_of(up: Up) -> list[str]:
    keys = ("provisioningKey", "chatKey", "staticCredential", "grantIssuerKey", "registerKey")
    return [up.keys[name] for name in keys] + [json.loads((up.folder / CONTROL).read_text("utf-8"))["key"]]


@pytest.mark.req("FX-034")
def test_what_it_prints(up: Up) -> None:
    """Where everything is, and no key."""
    text = up.child.text
    assert text.startswith("partner-onboarding · up for 10 min, with keys of its own")
    keys = up.keys
    assert f"{keys['apiOrigin']}/v1/orgs/{keys['organizationId']}/chat" in text
    assert f"{keys['apiOrigin']}/openapi.json" in text
    assert keys["grantIssuerUrl"] in text
    assert "break and heal its links (store issuer partner_api)" in text
    assert [secret for secret in secrets_of(up) if secret in text] == []
    assert "--folder" not in text


def test_its_folder_is_that_of_lab_fault() -> None:
    """So that it need not be named."""
    for command in (up_command, fault_command):
        assert next(option.default for option in command.params if option.name == "folder") == FOLDER


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "sh"])
def test_the_tour_ends_in_a_streamed_answer(shell: str, up: Up) -> None:
    """As it is printed, in each shell that this machine has."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run(
        [shell, "-c", up.tour], cwd=up.workspace, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.count("event: text") >= 2
    assert "event: tool_started" in done.stdout or "event: tool" in done.stdout
    assert '"status":"completed"' in done.stdout
    assert "Product 9001" in "".join(re.findall(r'"text":"([^"]*)"', done.stdout))
    assert '"error"' not in done.stdout
    up.child.until("store catalog_get 200")
    assert "Product 9001" not in up.child.text


def test_the_tour_of_an_agent_without_a_store(tmp_path: Path) -> None:
    """It ends in an answer too, and what it says of `lab fault` finds its folder."""
    folder = tmp_path / "the keys"
    scenario = ROOT / "scenarios" / "partner" / "conversation-only.yaml"
    with Child(["up", scenario, "--port", "0", "--folder", folder], cwd=tmp_path, env=environment()) as child:
        child.until(LAST_LINE)
        assert child.text.count(f"--folder '{folder}'") == 3
        tour = Up(child, tmp_path).tour
        done = subprocess.run(
            ["sh", "-c", tour], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        assert '"status":"completed"' in done.stdout
        assert '"error"' not in done.stdout


def test_a_driver_finds_it_by_its_private_file(up: Up, tmp_path: Path) -> None:
    """FX-017: `lab run --partner fixture` in the same workspace."""
    done = lab("run", SCENARIO, "--partner", "fixture", "--out", tmp_path, cwd=up.workspace)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_one_in_the_same_folder(up: Up, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.stat().st_mtime_ns for path in up.folder.iterdir())
    assert run_command_line(["up", str(SCENARIO), "--port", "0", "--folder", str(up.folder)]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert f"(pid {up.child.process.pid}) is there. End it, or name another --folder." in told.err
    assert sorted(path.stat().st_mtime_ns for path in up.folder.iterdir()) == before


def test_its_files_are_its_owners_alone(up: Up) -> None:
    assert {path.name: path.stat().st_mode & 0o777 for path in up.folder.iterdir()} == {
        KEYS: 0o600,
        SHELL: 0o600,
        CONTROL: 0o600,
    }


def test_its_time_is_over(tmp_path: Path) -> None:
    """FX-011: it ends by itself, and takes its keys along."""
    done = lab("up", SCENARIO, "--port", "0", "--ttl", "1s", "--folder", tmp_path / "f")
    assert done.returncode == 0, done.stderr
    assert "up for 1 s" in done.stdout
    assert "its time of 1 s is over; `lab up` starts a new one, with new keys" in done.stderr
    assert [*(tmp_path / "f").iterdir()] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_starts(number: signal.Signals, tmp_path: Path) -> None:
    """At the very first line that it prints; nothing stays."""
    with Child(["up", SCENARIO, "--port", "0", "--folder", tmp_path / "f"]) as child:
        child.until("up for 30 min")
        child.send(number)
        assert child.end() == 0, child.text
    assert [*(tmp_path / "f").iterdir()] == []


def three_free_ports() -> int:
    """The first of three ports in a row that nobody has."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            try:
                for further in (port + 1, port + 2):
                    socket.create_server(("127.0.0.1", further)).close()
            except (OSError, OverflowError):
                continue
            return port


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """Status 3 in a line that names it; nothing is left behind."""
    port = three_free_ports()
    with socket.create_server(("127.0.0.1", port)):
        done = lab(
            "up", SCENARIO, "--port", str(port - 5), "--folder", tmp_path / "f",
            "--journal", tmp_path / "j", TMPDIR=str(tmp_path),
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "partner_api" in done.stderr
    assert f"127.0.0.1:{port}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "f").exists() or [*(tmp_path / "f").iterdir()] == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("lab-")] == []


@pytest.mark.req("FX-034")
def test_the_base_is_3000_and_0_is_any(capfd: pytest.CaptureFixture[str]) -> None:
    """The ports behind it are the environment's; see `test_fixed_ports_are_where_they_were_asked_for`."""
    assert next(option.default for option in up_command.params if option.name == "port") == 3000
    assert (PORTS["partner_api"], PORTS["store"]) == (5, 6)
    assert run_command_line(["up", "--help"]) == 0
    assert "0 takes free ones" in " ".join(capfd.readouterr().out.split())


@pytest.mark.req("FX-034")
def test_fixed_ports_are_where_they_were_asked_for(tmp_path: Path) -> None:
    port = three_free_ports()
    with Child(["up", SCENARIO, "--port", str(port - 5), "--folder", tmp_path]) as child:
        child.until(LAST_LINE)
        keys = json.loads((tmp_path / KEYS).read_text("utf-8"))
        assert keys["apiOrigin"] == f"http://127.0.0.1:{port}"
        assert keys["grantIssuerUrl"] == f"http://127.0.0.1:{port + 2}/grants"
        assert f"http://127.0.0.1:{port + 1}/mcp" in child.text
        child.send(signal.SIGINT)
        assert child.end() == 0


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["scenarios/chat-answer.yaml"], 2, "`lab up` is for scenarios of the partner leg"),
        (["scenarios/none.yaml"], 2, "none.yaml"),
        ([str(SCENARIO), "--ttl", "100ms"], 2, "--ttl: seen 0.1 s, due 1 s to 24 h"),
        ([str(SCENARIO), "--ttl", "25h"], 2, "--ttl"),
        ([str(SCENARIO), "--ttl", "soon"], 2, "--ttl"),
        ([str(SCENARIO), "--port", "65529"], 2, "--port"),
        ([str(SCENARIO), "--port", "0", "--journal", "/proc/none/j"], 3, "--journal /proc/none/j"),
        ([str(SCENARIO), "--port", "0", "--folder", "/proc/none/f"], 3, "/proc/none"),
    ],
)
def test_what_cannot_be_brought_up(
    arguments: list[str], status: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence; nothing is started."""
    if "--folder" not in arguments:
        arguments = [*arguments, "--folder", str(tmp_path / "f")]
    done = lab("up", *arguments, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_another_partner_api_is_not_brought_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(
        "scenario: other\nabout: x\npartner_api: { use: fixture }\nsteps:\n  - membership: { user: anna }\n"
    )
    assert run_command_line(["up", str(file), "--folder", str(tmp_path / "f")]) == 2
    assert "starts the lab's own partner API; the scenario uses another" in capfd.readouterr().err
