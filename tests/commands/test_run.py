"""`lab run`, in this process: what it refuses, its exit statuses, and what it prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lab.agent2.server import Agent2Server
from lab.cli import run_command_line
from lab.commands import run as command
from lab.errors import EnvironmentFault
from lab.gateway.server import GatewayServer
from lab.run import world
from lab.run.identity import Identity, draw_identity
from tests.command_line import ROOT, make_project

READY = "steps:\n  - wait: { for: local_agent.ready, within: 5s }\n"
CHAT = "agent2: { kinds: [chat], scripts: { chat: fixtures/agent2/short-answer.yaml } }\n"
FIX = "agent2: { kinds: [fix], scripts: { fix: fixtures/agent2/fix.yaml } }\n"


@dataclass
class Done:
    """A finished command."""

    status: int
    out: str
    err: str


Lab = Callable[..., Done]


@pytest.fixture
def lab(capfd: pytest.CaptureFixture[str]) -> Lab:
    def call(*arguments: str | Path) -> Done:
        status = run_command_line(["run", *map(str, arguments)])
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    def make(**scenarios: str) -> Path:
        monkeypatch.chdir(make_project(tmp_path, **scenarios))
        return tmp_path

    return make


# What is wrong before it begins: 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["scenarios/none.yaml"], "scenarios/none.yaml: there is no such file or folder."),
        (["scenarios/one.yaml", "--set", "gateway.tenant_mod=hosted"], "Did you mean `gateway.tenant_mode`?"),
        (["scenarios/one.yaml", "--set", "=x"], "`=x` is not of the form NAME=VALUE"),
        (["scenarios/one.yaml", "--set", "novalue"], "`novalue` is not of the form NAME=VALUE"),
        (["scenarios/one.yaml", "--seed", "-1"], "--seed"),
        (["scenarios/one.yaml", "--local-agent", "lab-refrence"], "Did you mean `lab-reference`?"),
        (["scenarios/one.yaml", "--local-agent", ""], "there is no profile"),
        (
            ["scenarios/one.yaml", "--junit", "no/such/folder/j.xml"],
            "--junit no/such/folder/j.xml: no file can be made",
        ),
        (["scenarios/one.yaml", "--tag", "smok"], "no scenario has the tag smok; there are: smoke"),
        (["scenarios/mine.yaml", "--local-agent", "lab-reference"], "this scenario needs the reference agent"),
        (["scenarios/wrong.yaml"], "scenarios/wrong.yaml:4:5: steps[0]"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(
    project: Callable[..., Path], lab: Lab, arguments: list[str], told: str
) -> None:
    """Status 2, one clear text, no run folder."""
    folder = project(
        one=f"tags: [smoke]\n{READY}", mine=f"requires: [reference]\n{READY}", wrong="steps:\n  - wayt: {}\n"
    )
    done = lab(*arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--local-agent", "deepdebug-local-agent"], "has blanks that only you can fill"),
        (["--local-agent", "lab-reference", "--set", "sut.none=1"], "`sut.none` is no blank of profile"),
        (["--local-agent", "./not-there x"], "there is no program"),
    ],
)
def test_what_only_the_run_can_know(project: Callable[..., Path], lab: Lab, arguments: list[str], told: str) -> None:
    """A blank left open, a program that is not there: status 2 all the same."""
    project(one=f"{CHAT}{READY}")
    done = lab("scenarios/one.yaml", *arguments)
    assert done.status == 2
    assert told in done.out + done.err
    assert "LAB FAILED" not in done.out
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize("script", [b"\xff\xfe", b"script: mine\nabout: x\nsteps: 7\n"])
def test_a_script_that_agent2_could_not_play(project: Callable[..., Path], lab: Lab, script: bytes) -> None:
    """Status 2 before any run begins, those of other scenarios too."""
    mine = "agent2: { kinds: [chat], scripts: { chat: fixtures/agent2/mine.yaml } }\n"
    folder = project(one=READY, two=f"{mine}{READY}")
    (folder / "fixtures/agent2/mine.yaml").write_bytes(script)
    done = lab("scenarios")
    assert (done.status, done.out) == (2, "")
    assert "fixtures/agent2/mine.yaml:" in done.err
    assert not (folder / "runs").exists()


def test_a_run_folder_that_cannot_be_made(lab: Lab) -> None:
    """Status 3, one sentence."""
    done = lab(ROOT / "scenarios" / "chat-answer.yaml", "--out", "/proc/none")
    assert (done.status, done.out) == (3, "")
    assert done.err.endswith("Name another place with --out.\n")
    assert done.err.count("\n") == 1


# Statuses 1 and 4


def test_the_runner_can_fail(lab: Lab, tmp_path: Path) -> None:
    """Status 1 for each scenario that must fail, with the place, and the summary counts them."""
    done = lab(ROOT / "tests/scenarios/valid-fail", "--out", tmp_path, "--junit", tmp_path / "all.xml")
    assert (done.status, done.err) == (1, "")
    assert "0 of 4 scenarios passed" in done.out
    for words in (
        "seen   12 events, contiguous",
        "due    count 13",
        "not within 0.5 s: its session went ready",
        "AGENT_UNSUPPORTED was due",
        "turn 2: a text of",
        "tests/scenarios/valid-fail/wrong-count.yaml:16",
    ):
        assert words in done.out
    suites = ET.parse(tmp_path / "all.xml").getroot().findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["expected-refusal", "step-deadline", "wrong-count", "wrong-turn"]
    assert all(len(suite.findall("testcase/failure")) == 1 for suite in suites)
    assert (tmp_path / "all.xml").stat().st_mode & 0o777 == 0o600


def test_what_had_to_happen_and_did_not(project: Callable[..., Path], lab: Lab) -> None:
    """Status 4: a fault that never fires, and a law that had nothing to judge."""
    project(
        fault=f"{READY}  - fault: {{ frame: job.cancel, from: gateway, nth: 1, do: drop, id: never }}\n",
        law=f"{READY}must_judge: [resume-rules]\n",
    )
    done = lab("scenarios", "--json")
    document = json.loads(done.out)
    assert (done.status, document["exitStatus"]) == (4, 4)
    findings = {run["scenario"]: [one["head"] for one in run["findings"]] for run in document["runs"]}
    assert findings == {"fault": ["fault"], "law": ["must_judge"]}
    assert [run["exitStatus"] for run in document["runs"]] == [4, 4]


def test_an_agent_without_what_the_scenario_requires(project: Callable[..., Path], lab: Lab) -> None:
    """Not applicable, status 4, instead of a step that fails."""
    assign = '  - assign: { job: q1, kind: chat, input: "Why?" }\n'
    project(chat=f"requires: [job.chat]\n{FIX}{READY}{assign}")
    done = lab("scenarios/chat.yaml")
    assert done.status == 4
    assert "not applicable: local_agent does not announce job.chat" in done.out
    assert "FAIL" not in done.out
    assert lab("scenarios/chat.yaml", "--set", "agent2.kinds=[fix, chat]").status == 0


def test_a_step_on_a_job_that_was_refused(project: Callable[..., Path], lab: Lab) -> None:
    """The scenario goes wrong in a sentence, whatever the step."""
    refused = '  - assign: { job: q1, kind: chat, input: "Why?", fails: AGENT_UNSUPPORTED }\n'
    steps = {
        "stream": "stream: { job: q1, until: done }",
        "session": "session: { job: q1 }",
        "result": "result: { job: q1 }",
        "cancel": "cancel: { job: q1 }",
        "approve": "approve: { job: q1, decision: deny }",
        "wait": "wait: { for: job.q1.ended }",
    }
    project(**{name: f"{FIX}{READY}{refused}  - {step}\n" for name, step in steps.items()})
    done = lab("scenarios")
    assert done.status == 1
    assert done.out.count("seen   job q1 was never assigned: the gateway refused it") == len(steps)


# What it prints


def test_json_is_one_document_and_nothing_else(lab: Lab, tmp_path: Path) -> None:
    """On standard output; standard error is silent."""
    done = lab(ROOT / "tests/scenarios/valid-pass", "--out", tmp_path, "--json", "--seed", "11")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["exitStatus"] == 0
    assert [run["scenario"] for run in document["runs"]] == ["chat", "idle-only"]
    for run in document["runs"]:
        assert run == json.loads((Path(run["folder"]) / "result.json").read_text("utf-8"))
        assert run["seed"] == 11
        assert Path(run["folder"]).name.endswith("-11")


BROKEN = "expect:\n  - figures.frames: 0\n"


@pytest.mark.parametrize(
    ("arguments", "file"), [(("--junit", "/dev/full"), "/dev/full"), (("--json", "--junit", "/dev/full"), "/dev/full")]
)
def test_a_verdict_stands_when_a_file_cannot_be_written(
    project: Callable[..., Path], lab: Lab, arguments: tuple[str, ...], file: str
) -> None:
    """Status 3, and both are said: what could not be written, and what the run came to."""
    project(one=f"{READY}{BROKEN}")
    done = lab("scenarios/one.yaml", *arguments)
    assert done.status == 3
    assert f"{file} could not be written: No space left on device." in done.err
    assert "The verdict stands: one FAIL (runs/one/" in done.err
    if "--json" in arguments:
        assert json.loads(done.out)["runs"][0]["outcome"] == "fail"
    else:
        assert "FAIL  expectation   figures.frames" in done.out


def test_no_further_run_begins_when_the_files_of_one_cannot_be_written(
    project: Callable[..., Path], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would have no room either; the verdict of the one is said."""

    def full(*_result: object) -> None:
        raise EnvironmentFault("no room.")

    project(one=f"{READY}{BROKEN}", two=READY)
    monkeypatch.setattr(command, "_write_views", full)
    done = lab("scenarios")
    assert done.status == 3
    assert "FAIL  expectation   figures.frames" in done.out
    assert "two ·" not in done.out
    assert "lab: no room. The verdict stands: one FAIL (" in done.err


def test_tags_choose(project: Callable[..., Path], lab: Lab) -> None:
    """A scenario with one of them runs."""
    project(one=f"tags: [smoke, a]\n{READY}", two=f"tags: [b]\n{READY}", three=READY)
    document = json.loads(lab("scenarios", "--json", "--tag", "b", "--tag", "smoke").out)
    assert [run["scenario"] for run in document["runs"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("scenario", "option", "said"),
    [
        ("chat-answer", ("--partner", "fixture"), "--partner says which partner API is driven, and no scenario"),
        (
            "partner-chat",
            ("--local-agent", "attach"),
            "--local-agent says which Local Agent is driven, and no scenario",
        ),
    ],
)
def test_what_no_scenario_here_drives_is_not_chosen(
    scenario: str, option: tuple[str, str], said: str, lab: Lab
) -> None:
    """Its user would take the pass of the lab's own part for their program's."""
    done = lab(ROOT / "scenarios" / f"{scenario}.yaml", *option)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_the_command_that_repeats_a_run_does(project: Callable[..., Path], lab: Lab) -> None:
    """Every option that changes the run is in it, quoted for a shell; a seed that was drawn is told."""
    project(one=READY)
    options = ["--set", "gateway.tenant_mode=hosted", "--set", "deadline=7s", "--out", "the runs", "--json"]
    first = json.loads(lab("scenarios/one.yaml", *options).out)["runs"][0]
    words = shlex.split(first["again"])
    assert words[:3] == ["lab", "run", "scenarios/one.yaml"]
    again = json.loads(lab(*words[2:], "--json").out)["runs"][0]
    assert (again["again"], again["seed"]) == (first["again"], first["seed"])
    assert Path(again["folder"]).parent == Path(first["folder"]).parent
    texts = [(Path(run["folder"]) / "scenario.yaml").read_text("utf-8") for run in (first, again)]
    assert texts[0] == texts[1]
    assert "hosted" in texts[0]
    other = json.loads(lab("scenarios/one.yaml", "--json").out)["runs"][0]
    assert other["seed"] != first["seed"]
    assert "--out" not in other["again"]


def test_the_repeat_command_names_blanks_without_their_values(tmp_path: Path) -> None:
    """A blank may hold a secret, and the command stands in the report."""
    made = command.RunCommand(
        (), 3, {"sut.checkout": "/a b", "seed": "4"}, "node 'my agent.js'", Path("runs"), None, False
    )
    from tests.run.made import scenario

    assert shlex.split(made._again(scenario(), 3)) == [
        "LAB_SUT_CHECKOUT=…",
        "lab", "run", "scenarios/made.yaml", "--seed", "3", "--local-agent", "node 'my agent.js'",
        "--set", "seed=4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "worst"),
    [([0, 4], 4), ([4, 1], 1), ([1, 2], 2), ([2, 3], 3), ([3, 130], 130), ([0, 0], 0)],
)
def test_the_worst_of_several_runs_counts(seen: list[int], worst: int) -> None:
    """The lab's own failure before a broken promise before the unknown."""
    assert next(status for status in command.SEVERITY if status in seen) == worst


def test_a_defect_of_the_lab_is_one_sentence(
    project: Callable[..., Path], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 3; its traceback lies in the folder, and the prompt that it held is not on the terminal."""

    def broken(*_args: Any) -> None:
        raise KeyError("the user's own words")

    project(one=f'{FIX}{READY}  - assign: {{ job: f1, kind: fix, input: "Mend it." }}\n')
    monkeypatch.setattr("lab.gateway.core.GatewayCore.assign", broken)
    done = lab("scenarios/one.yaml", "--out", "out")
    assert (done.status, done.err) == (3, "")
    assert "a defect of the lab: KeyError" in done.out
    assert "own words" not in done.out
    kept = Path("out/one/latest/defects.txt")
    assert "Traceback" in kept.read_text("utf-8")
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_part_that_cannot_end_spares_no_other(
    project: Callable[..., Path], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part is ended, every error is kept, and the run is the lab's failure."""
    ended: list[str] = []

    def fail_in(part: type[Any], error: Exception) -> None:
        original = part.close

        async def close(self: Any) -> None:
            await original(self)
            ended.append(part.__name__)
            raise error

        monkeypatch.setattr(part, "close", close)

    project(one=READY)
    fail_in(GatewayServer, RuntimeError("two"))
    fail_in(Agent2Server, ValueError("one"))
    done = lab("scenarios/one.yaml", "--out", "out")
    assert (done.status, ended) == (3, ["GatewayServer", "Agent2Server"])
    kept = Path("out/one/latest/defects.txt").read_text("utf-8")
    assert "RuntimeError: two" in kept
    assert "ValueError: one" in kept


# Secrets


def _captured(monkeypatch: pytest.MonkeyPatch) -> list[Identity]:
    identities: list[Identity] = []

    def draw(*arguments: Any) -> Identity:
        identities.append(draw_identity(*arguments))
        return identities[-1]

    monkeypatch.setattr(world, "draw_identity", draw)
    return identities


@pytest.mark.req("SEC-012")
@pytest.mark.parametrize("agent", ["reference", "lab-reference"])
def test_no_secret_and_no_content_in_anything_that_is_left_or_said(
    project: Callable[..., Path], lab: Lab, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """Tokens, canaries, the workspace's path, prompt and answer: in no file of the run and on no output."""
    identities = _captured(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    question = "Why does the zebra refuse the invoice?"
    folder = project(
        leak="agent2: { kinds: [chat], scripts: { chat: fixtures/agent2/leaky-answer.yaml } }\n"
        f'{READY}  - assign: {{ job: q1, kind: chat, input: "{question}" }}\n'
        "  - stream: { job: q1, until: done, within: 10s }\n  - session: { job: q1 }\n"
        "expect:\n  - session.q1.turns: [{ role: user, contains: zebra }, { contains: secret store }]\n"
    )
    done = lab("scenarios/leak.yaml", "--out", "out", "--local-agent", agent)
    assert done.status == 0, done.out + done.err
    (identity,) = identities
    (tenant_agent,) = identity.agents.values()
    words = {
        **identity.canaries,
        "token": tenant_agent.gateway_token,
        **{f"key {name}": key.encode().hex() for name, key in identity.signing_keys.items()},
        "prompt": identity.canaries["prompt"],
    }
    assert {"api_token", "password", "prompt", "workspace-path.local_agent"} <= set(words)
    texts = ["the payment key is kept in", "move it into the secret store", "in plain text"]
    left = {path: path.read_text("utf-8") for path in (folder / "out").rglob("*") if path.is_file()}
    assert len(left) >= 6
    for where, text in [("stdout", done.out), ("stderr", done.err), *left.items()]:
        for name, word in words.items():
            assert word not in text, (where, name)
        if Path(str(where)).name != "scenario.yaml":
            folded = text.lower()
            assert [word for word in (*texts, "zebra") if word in folded] == [], where
