"""`lab serve partner --state`: what a kill leaves, who may have the file, and what a disk that refuses comes to."""

from __future__ import annotations

import json
import resource
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from lab.cli import run_command_line
from tests.command_line import PATIENCE, Child, environment, shown_environment

STORE = {
    "LAB_ORGANIZATION_ID": "org",
    "LAB_STORE_SERVER_ID": "srv",
    "LAB_STORE_URL": "http://127.0.0.1:9/mcp",
    "LAB_STORE_CREDENTIAL": "credential",
}
QUICK = """
script: quick
about: One event
iterations: [{ model: synthetic-1, steps: [{ text: "of the script" }] }]
"""
SLOW = """
script: slow
about: Long enough for whatever comes between
when: { contains: slowly }
iterations: [{ model: synthetic-1, steps: [{ repeat: { count: 4000, every: 20ms, text: "event {n} " } }] }]
"""
FILE_LIMIT = 600_000
"""Bytes of the longest file in a child whose disk is small: more than an empty state with its log has."""

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass
class Caller:
    """Somebody who has the variables that a child printed."""

    shown: dict[str, str]

    def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, once: str = "", control: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer; `once` is the Idempotency-Key."""
        try:
            with self.open(method, path, body, once=once, control=control) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or b"{}")

    def open(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, once: str = "", control: bool = False
    ) -> Any:
        """The answer while it comes."""
        chat = f"/v1/orgs/{STORE['LAB_ORGANIZATION_ID']}/chat"
        key = "LAB_PARTNER_CONTROL_KEY" if control else "LAB_PARTNER_CHAT_KEY"
        headers = {"Authorization": f"Bearer {self.shown[key]}", "Content-Type": "application/json"}
        if once:
            headers["Idempotency-Key"] = once
        data = None if body is None else json.dumps(body).encode()
        url = self.shown["LAB_PARTNER_API_ORIGIN"] + ("" if control else chat) + path
        return OPENER.open(urllib.request.Request(url, data, headers, method=method), timeout=PATIENCE)

    def join(self) -> None:
        """The employee anna of the team, and an agent that needs no store."""
        until = (datetime.now(UTC) + timedelta(minutes=4)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        member = {"sourceRevision": 1, "role": "member", "active": True, "validUntil": until}
        assert self.ask("PUT", "/memberships", {**ANNA, **member})[0] == 200
        plain = {"agentId": self.shown["LAB_AGENT_ID"], "mcp": None, "profile": True}
        assert self.ask("POST", "/__lab/agents", plain, control=True)[0] == 200

    def converse(self, once: str = "create") -> tuple[int, dict[str, Any]]:
        """Open a conversation with the agent."""
        return self.ask("POST", "/conversations", {**ANNA, "agentId": self.shown["LAB_AGENT_ID"]}, once=once)

    def say(self, conversation: str, message: str) -> tuple[int, dict[str, Any]]:
        """Send a message, whose text is its key too."""
        return self.ask("POST", f"/conversations/{conversation}/messages", {**ANNA, "message": message}, once=message)

    def follow(self, conversation: str, run: str) -> Any:
        """The stream of a run's events."""
        return self.open("GET", f"/conversations/{conversation}/runs/{run}/events?{QUERY}")


ANNA = {"externalUserId": "anna", "externalTeamId": "shop"}
QUERY = "externalUserId=anna&externalTeamId=shop"


@pytest.fixture
def words(tmp_path: Path) -> list[str | Path]:
    """A model with two scripts and a state, as a command."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "quick.yaml").write_text(QUICK)
    (scripts / "slow.yaml").write_text(SLOW)
    return ["serve", "partner", "--script", scripts, "--state", tmp_path / "s.sqlite"]


def started(child: Child) -> Caller:
    child.until("LAB_AGENT_ID")
    return Caller(shown_environment(child.text))


@pytest.mark.req("MSG-010", "FX-026")
def test_a_kill_in_the_middle_of_a_turn(words: list[str | Path]) -> None:
    """The agent, its script and every receipt are there again; the turn that was under way is interrupted."""
    with Child(words, env=environment(**STORE)) as child:
        caller = started(child)
        agent = caller.shown["LAB_AGENT_ID"]
        caller.join()
        status, opened = caller.converse()
        assert status == 201
        conversation = opened["data"]["conversationId"]
        status, accepted = caller.say(conversation, "slowly")
        assert status == 202
        run = accepted["data"]["runId"]
        with caller.follow(conversation, run) as stream:
            while b"event 3 " not in stream.readline():
                pass
            child.send(signal.SIGKILL)
            assert child.end() == -signal.SIGKILL
    with Child(words, env=environment(**STORE)) as child:
        caller = started(child)
        assert caller.shown["LAB_AGENT_ID"] == agent
        status, told = caller.ask("GET", f"/conversations/{conversation}/runs/{run}?{QUERY}")
        assert (status, told["data"]["status"]) == (200, "interrupted")
        assert caller.converse() == (201, opened)
        assert caller.say(conversation, "slowly")[1]["data"]["runId"] == run
        again = caller.say(conversation, "Again")[1]["data"]["runId"]
        with caller.follow(conversation, again) as stream:
            assert b"of the script" in stream.read()
        child.send(signal.SIGTERM)
        assert child.end() == 0, child.text


@pytest.fixture
def holder(words: list[str | Path]) -> Iterator[Child]:
    with Child(words, env=environment(**STORE)) as child:
        started(child)
        yield child


def test_a_state_that_another_process_has(
    holder: Child, words: list[str | Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Status 3 with its pid and the lock; who had it first goes on, and a kill sets it free."""
    for name, value in STORE.items():
        monkeypatch.setenv(name, value)
    state = words[-1]
    assert run_command_line([*map(str, words)]) == 3
    said = capfd.readouterr().err
    assert f"The state {state} is in use by process {holder.process.pid}, which has locked {state}.lock." in said
    assert holder.process.poll() is None
    holder.send(signal.SIGKILL)
    assert holder.end() == -signal.SIGKILL
    with Child(words, env=environment(**STORE)) as child:
        started(child)


def test_a_state_of_another_organization(
    holder: Child, words: list[str | Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    holder.send(signal.SIGTERM)
    assert holder.end() == 0
    for name, value in {**STORE, "LAB_ORGANIZATION_ID": "other"}.items():
        monkeypatch.setenv(name, value)
    assert run_command_line([*map(str, words)]) == 2
    assert "is of the organization org, and LAB_ORGANIZATION_ID names other" in capfd.readouterr().err


def small_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


def test_a_disk_that_takes_no_more(words: list[str | Path]) -> None:
    """The server ends with status 3 and a sentence, and with it whoever follows."""
    with Child(words, env=environment(**STORE), before=small_disk) as child:
        caller = started(child)
        caller.join()
        conversation = caller.converse()[1]["data"]["conversationId"]
        run = caller.say(conversation, "slowly")[1]["data"]["runId"]
        with caller.follow(conversation, run) as stream, pytest.raises((IncompleteRead, ConnectionError)):
            stream.read()
        assert child.end() == 3, child.text
    said = child.text.splitlines()
    assert said[-1].startswith(f"lab: The state {words[-1]} cannot be kept: the disk ")
    assert "or another place: by --state of `lab serve partner`" in said[-1]
    assert said[-2].endswith("  the state cannot be kept any more: ending")
    assert "Traceback" not in child.text
    assert "defect" not in child.text
