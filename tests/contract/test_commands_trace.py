"""`lab contract trace` as a user has it: tables, exit statuses, and what it asks for."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.contract.commands import contract
from lab.contract.trace_grades import Closing
from lab.contract.trace_listener import CONNECTS_SECONDS
from lab.contract.trace_run import chosen_traces, for_peer
from lab.contract.traces import TRACES_FOLDER, Side
from lab.errors import ContractError, UsageError
from tests.command_line import Child, environment, lab, shown_environment
from tests.contract.test_traces import BY_NAME, CHAT, FOLDER, NAMES


def run(*arguments: str) -> Result:
    return CliRunner().invoke(contract, ["trace", *arguments])


def test_a_trace_is_played_against_both_doubles() -> None:
    result = run("valid-resume-continues-seq", "--against", "reference")
    assert result.exit_code == 0, result.output
    head, *rows, tally = result.output.splitlines()
    assert head.split() == ["trace", "peer", "grade", "seen", "close"]
    assert [row.split()[:3] for row in rows] == [
        ["valid-resume-continues-seq", "gateway", "pass"],
        ["valid-resume-continues-seq", "agent", "pass"],
    ]
    assert tally == "2 pass"


def test_what_a_peer_would_have_to_break_itself_is_unknown() -> None:
    result = run("invalid-seq-gap", "--as", "agent", "--json")
    assert result.exit_code == 4
    (case,) = json.loads(result.output)["results"]
    assert (case["grade"], case["peer"], case["due"]) == ("unknown", "gateway", "seq_gap by la")


def test_a_wrong_peer_gives_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.protocol.checks.FrameChecks._check_tenant", lambda *_: None)
    result = run("invalid-tenant-mismatch", "--as", "agent")
    assert result.exit_code == 1
    assert "fail        acked accepted" in result.output
    assert result.output.endswith("1 fail\n")


def test_a_bad_close_is_marked_and_changes_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.contract.trace_line.Line._closing", closed_badly)
    result = run("invalid-tenant-mismatch", "--as", "agent", "--json")
    assert result.exit_code == 0, result.output
    (case,) = json.loads(result.output)["results"]
    assert case["close"] == {"words": "1011 by peer, due is 4412", "asDue": False}


async def closed_badly(*_: object) -> Closing:
    return Closing(1011, "peer", clean=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such-trace",), "no-such-trace is no trace of revision 2.3. Say all, or one of:"),
        ((CHAT, "--revision", "2.2"), "is no trace of revision 2.2"),
        (("all", "--against", "http://x"), "due is reference, agent, or the ws:// address of a gateway"),
        (("all", "--against", "ws://x/", "--as", "gateway"), "the lab can only be the agent"),
        (("all", "--against", "agent", "--as", "agent"), "the lab can only be the gateway"),
        (("all", "--listen", "0", "--against", "reference"), "--listen waits for an agent"),
        (("all", "--against", ""), "--against '': due is reference, agent, or the ws:// address of a gateway"),
        (("all", "--against", "ws://"), "it names no host; due is a gateway's address"),
        (("all", "--against", "ws://:80/"), "it names no host"),
        (("all", "--against", "ws://[::1"), "its host cannot be read"),
        (("all", "--against", f"ws://{'a' * 64}/"), "its host is no name"),
        (("all", "--against", "ws://127.0.0.1:99999/"), "its port is no number from 1 to 65535"),
        (("all", "--against", "ws://127.0.0.1:0/"), "its port is no number from 1 to 65535"),
        (("all", "--against", "ws://127.0.0.1:abc/"), "its port is no number from 1 to 65535"),
        (("all", "--against", "ws://127.0.0.1:/"), "its port is no number from 1 to 65535"),
        (("all", "--against", "ws://127.0.0.1:1/#frag"), "a # has no meaning in it"),
        (("all", "--against", "ws://127.0.0.1:1/a b"), "it has a blank or a control character"),
        (
            ("all", "--against", "ws://me:pass@x/"),
            "--against 'ws://...@x/': a credential belongs into LAB_GATEWAY_TOKEN",
        ),
        (("all", "--against", "WS://x/"), "LAB_GATEWAY_TOKEN, LAB_TENANT_ID, LAB_AGENT_ID not set"),
        (("all", "--against", "wss://[::1]:1/a?b"), "LAB_GATEWAY_TOKEN, LAB_TENANT_ID, LAB_AGENT_ID not set"),
        (("all", "--against", "ws://x/"), "LAB_GATEWAY_TOKEN, LAB_TENANT_ID, LAB_AGENT_ID not set"),
    ],
)
def test_wrong_usage_says_what_is_due(arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAB_GATEWAY_TOKEN", "LAB_TENANT_ID", "LAB_AGENT_ID"):
        monkeypatch.delenv(name, raising=False)
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)


def test_help_and_docs_tell_how_long_an_agent_may_take_to_connect() -> None:
    shown = " ".join(run("--help").output.split())
    assert f"Your agent may take {CONNECTS_SECONDS:g} s for each connection, whatever --patience says" in shown
    docs = Path(__file__).parents[2] / "docs" / "traces.md"
    told = " ".join(docs.read_text("utf-8").split())
    assert f"that lasts {CONNECTS_SECONDS:g} s for each trace's connection" in told


def test_a_folder_whose_traces_cannot_be_read_is_named(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "c")
    path = tmp_path / "c" / TRACES_FOLDER / "invalid-seq-gap.json"
    path.write_text("{}")
    with pytest.raises(ContractError):
        chosen_traces(tmp_path / "c", "2.3", "all")
    done = lab("contract", "trace", "all", "--contract", tmp_path / "c")
    assert done.returncode == 2
    assert f"error: {path}: " in done.stderr


def test_all_means_what_counts_for_the_revision_and_the_peer() -> None:
    assert len(chosen_traces(FOLDER, "2.3", "all")) == 25
    older = chosen_traces(FOLDER, "2.0", "all")
    assert tuple(trace.name for trace in older) == NAMES
    assert len(for_peer(older, Side.CP)) + len(for_peer(older, Side.LA)) == len(NAMES) + 4
    only = (BY_NAME["invalid-seq-gap"],)
    assert for_peer(only, Side.CP) == only


def test_somebodys_gateway_is_judged_over_its_address() -> None:
    with Child(["serve", "gateway"]) as gateway:
        gateway.until("jobs are given over HTTP")
        told = shown_environment(gateway.text)
        done = play_against(told, told["LAB_GATEWAY_TOKEN"])
        wrong = play_against(told, "no")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass        refused with seq_replayed" in done.stdout
    assert told["LAB_GATEWAY_TOKEN"] not in done.stdout + done.stderr
    assert wrong.returncode == 4
    assert "the upgrade was refused with HTTP 401" in wrong.stdout


def play_against(told: Mapping[str, str], token: str) -> subprocess.CompletedProcess[str]:
    return lab(
        *("contract", "trace", "invalid-seq-repeated", "--against", told["LAB_GATEWAY_WS_URL"]),
        LAB_GATEWAY_TOKEN=token,
        LAB_TENANT_ID=told["LAB_TENANT_ID"],
        LAB_AGENT_ID=told["LAB_AGENT_ID"],
    )


def test_somebodys_agent_is_judged_when_it_connects(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with Child(["contract", "trace", "invalid-seq-gap", "--listen", "0"]) as trace:
        trace.until("of its own")
        told = shown_environment(trace.text)
        told["LAB_WORKSPACES"] = json.dumps([{"workspaceId": "ws-main", "path": str(tmp_path / "workspace")}])
        told["LAB_STATE_DIR"] = str(tmp_path / "state")
        with Child(["serve", "local-agent"], env=environment(**told)):
            assert trace.end() == 0, trace.text
    assert "pass        refused with seq_gap" in trace.text
    assert "4408 by peer" in trace.text
