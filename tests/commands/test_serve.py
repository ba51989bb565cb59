"""`lab serve` and an attached agent: programs of their own, each in a child."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from lab.journal.events import Agent2Job, Frame, SessionChanged
from lab.journal.reader import read_journal
from lab.sut.profile import LAB_ENVIRONMENT
from tests.command_line import LAB, PATIENCE, ROOT, Child, environment, lab, shown_environment

ENDS = (signal.SIGTERM, signal.SIGINT)


def shell_reads(text: str) -> dict[str, str]:
    """What a POSIX shell has after it evaluated the text."""
    names = sorted(shown_environment(text))
    script = text + "".join(f'printf "%s\\0" "${name}"\n' for name in names)
    done = subprocess.run(
        ["/bin/sh", "-c", script], env={}, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return dict(zip(names, done.stdout.split("\0"), strict=False))


def test_three_processes_reach_a_session(tmp_path: Path) -> None:
    """Each prints what the others need, and ends cleanly when it is told to."""
    journal = tmp_path / "gateway.jsonl"
    with Child(["serve", "gateway", "--tenant-mode", "hybrid", "--journal", journal]) as gateway:
        gateway.until("# and ")
        told = shell_reads("".join(line for line in gateway.lines if line.startswith("export ")))
        assert told == shown_environment(gateway.text)
        assert sorted(told) == [
            "LAB_AGENT_ID", "LAB_GATEWAY_TOKEN", "LAB_GATEWAY_WS_URL", "LAB_TENANT_ID", "LAB_TRUSTED_KEYS",
        ]  # fmt: skip
        others = [name for name, _ in LAB_ENVIRONMENT if name not in told]
        assert gateway.lines[-1] == f"# and {', '.join(others)} of its own or of `lab serve agent2`\n"
        with Child(["serve", "agent2", "--kinds", "fix, chat"], env=environment(**told)) as agent2:
            agent2.until("export LAB_AGENT2_TOKEN")
            more = {
                **told,
                **shown_environment(agent2.text),
                "LAB_WORKSPACES": json.dumps([{"workspaceId": "main", "path": str(tmp_path)}]),
                "LAB_STATE_DIR": str(tmp_path / "state"),
                "LOCAL_AGENT_CHAT": "true",
            }
            with Child(["serve", "local-agent"], env=environment(**more)) as agent:
                gateway.until("session ready")
                agent2.until("/local/v1/health 200")
                agent.until("ready resumed=False")
                agent.send(signal.SIGINT)
                assert agent.end() == 0
                gateway.until("closed: 1000 by remote")
                secrets = [told["LAB_GATEWAY_TOKEN"], more["LAB_AGENT2_TOKEN"]]
                assert [secret for secret in secrets if secret in agent.text] == []
            agent2.send(signal.SIGTERM)
            assert agent2.end() == 0
        gateway.send(signal.SIGINT)
        assert gateway.end() == 0
        assert gateway.text.count(told["LAB_GATEWAY_TOKEN"]) == 1
    assert journal.stat().st_mode & 0o777 == 0o600
    first = json.loads(journal.read_text("utf-8").splitlines()[0])
    assert first["event"] == "socket.opened"
    assert told["LAB_GATEWAY_TOKEN"] not in journal.read_text("utf-8")


def test_attach_shows_an_environment_and_waits(tmp_path: Path) -> None:
    """An agent started with what a shell makes of it lets the scenario pass."""
    arguments = ["run", "scenarios/chat-answer.yaml", "--local-agent", "attach", "--out", str(tmp_path / "out")]
    with Child(arguments) as run:
        run.until("# start your Local Agent `local_agent` within 600 s with")
        run.until("LAB_SIGNATURE_MODE")
        told = shell_reads("".join(line for line in run.lines if line.startswith("export ")))
        state = {"LAB_STATE_DIR": str(tmp_path / "state"), "LOCAL_AGENT_CHAT": "true"}
        with Child(["serve", "local-agent"], env=environment(**told, **state)) as agent:
            assert run.end() == 0, run.text
            agent.send(signal.SIGTERM)
            assert agent.end() == 0
    assert "PASS" in run.text
    folder = tmp_path / "out" / "chat-answer" / "latest"
    events = [entry.event for entry in read_journal(folder / "journal.jsonl")]
    assert any(isinstance(event, Frame) for event in events)
    assert any(isinstance(event, SessionChanged) and event.state == "ready" for event in events)
    assert any(isinstance(event, Agent2Job) for event in events)
    kept = "".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())
    assert told["LAB_GATEWAY_TOKEN"] not in kept
    assert told["LAB_AGENT2_TOKEN"] not in kept


def test_attach_ends_with_ctrl_c_while_it_waits(tmp_path: Path) -> None:
    """Nobody came: status 130."""
    with Child(["run", "scenarios/chat-answer.yaml", "--local-agent", "attach", "--json", "--out", tmp_path]) as run:
        run.until("LAB_SIGNATURE_MODE")
        run.send(signal.SIGINT)
        assert run.end() == 130
    document = json.loads(run.text[run.text.index("{\n") :])
    assert document["runs"][0]["outcome"] == "interrupted"


@pytest.mark.parametrize("double", ["gateway", "agent2"])
def test_a_taken_port(double: str) -> None:
    """Status 3, with the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lab("serve", double, "--port", str(port))
    assert (done.returncode, done.stdout) == (3, "")
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["gateway", "--port", "70000"], 2, "70000"),
        (["gateway", "--journal", "/proc/none/j"], 3, "--journal /proc/none/j"),
        (["gateway", "--revision", "9"], 2, "--revision"),
        (["agent2", "--script", "chat"], 2, "due is KIND=FILE"),
        (["agent2", "--script", "chat=none.yaml"], 2, "none.yaml"),
        (["agent2", "--kinds", "fix", "--script", "chat=fixtures/agent2/short-answer.yaml"], 2, "none of --kinds: fix"),
        (["agent2", "--kinds", "fix,sing"], 2, "sing"),
        (["agent2", "--kinds", ","], 2, "--kinds"),
        (["local-agent"], 2, "LAB_TENANT_ID is not set"),
        (["nothing"], 2, "No such command"),
    ],
)
def test_what_cannot_be_served(
    arguments: list[str], status: int, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A sentence, before anything is started."""
    from lab.cli import run_command_line

    for name in [name for name in os.environ if name.startswith("LAB_")]:
        monkeypatch.delenv(name)
    assert run_command_line(["serve", *arguments]) == status
    captured = capfd.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_the_reader_of_a_server_may_go_away(tmp_path: Path) -> None:
    """It goes on serving, and ends with its own status."""
    read, write = os.pipe()
    server = subprocess.Popen(
        [*LAB, "serve", "gateway"], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=write, text=True
    )
    os.close(write)
    os.close(read)
    assert server.stdout is not None
    try:
        told = [server.stdout.readline() for _ in range(7)]
        url = next(line for line in told if "LAB_GATEWAY_WS_URL" in line).strip().partition("=")[2]
        port = int(url.rpartition(":")[2].partition("/")[0])
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                client.sendall(b"GET /agent HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
                client.sendall(b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n")
                assert b"401" in client.recv(100)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
