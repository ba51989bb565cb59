"""A partner API that the lab does not start, found by its private file: here the model plays it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.clock import Clock
from lab.commands.loading import load
from lab.context import RunContext
from lab.errors import ExitStatus, SutFault, UsageError
from lab.grants.seal import Seal
from lab.grants.server import IssuerServer
from lab.journal.events import ParticipantDeclared, StepEnded
from lab.journal.writer import Journal
from lab.partner.client.fixture_output import FIXTURE_OUTPUT, FixtureRefused
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import AgentSettings, FixtureSettings, McpCandidate, PartnerSettings
from lab.report.page import page_text
from lab.report.result import result_json
from lab.run.partner.doubles import make_issuer, make_store
from lab.run.partner.foreign import (
    WORKSPACE_VARIABLE,
    await_fixture,
    found_fixture,
    fresh_fixture,
    left_instance,
    serving_of,
    store_url_of,
    workspace_of,
)
from lab.run.partner.identity import draw_partner_identity
from lab.run.partner.leg import foreign_of
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.scenario.model import Scenario
from lab.store.fixture_input import FIXTURE_INPUT
from lab.store.server import StoreServer
from lab.store.settings import CANONICAL_DESTINATION
from tests.command_line import ROOT, lab
from tests.run.partner.played import ASKED, told, written

NOW_MS = 1_767_225_600_000
PLAIN = ROOT / "scenarios" / "partner-onboarding.yaml"
"""Needs no controls, so that any partner API can be driven through it."""
TEAM = "Team 9"
"""Another than scenarios name."""
TURN = f"{ASKED}  - follow: {{ run: r1 }}\n  - history: {{ conversation: c1 }}\n"
SCRIPT = ROOT / "fixtures" / "partner" / "product-9001.yaml"


def real_context() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, int(datetime.now(UTC).timestamp() * 1000))
    return RunContext(8, clock, Journal(clock.now))


def fixture_of(
    workspace: Path, url: str, credential: str, issuer: IssuerServer | None, keys: tuple[str, str]
) -> PartnerServer:
    """A partner API with a private file, as another one would be."""
    ctx = real_context()
    agent = AgentSettings("agent-9", TEAM, mcp=(McpCandidate("srv", CANONICAL_DESTINATION),), script=SCRIPT)
    settings = PartnerSettings(
        "org-9",
        (TEAM,),
        (agent,),
        destinations={CANONICAL_DESTINATION: url},
        static_credential=credential,
        fixture=FixtureSettings(
            workspace / FIXTURE_OUTPUT,
            CANONICAL_DESTINATION,
            None if issuer is None else f"{issuer.base}/grants",
            None if issuer is None else keys[0],
            register_url=None if issuer is None else f"{issuer.base}/conversations",
            register_key=None if issuer is None else keys[1],
        ),
    )
    return PartnerServer(ctx, "other", settings)


@asynccontextmanager
async def mock_fixture(workspace: Path) -> AsyncIterator[PartnerServer]:
    """One that brings its store and its issuer along; this one has to be told of conversations."""
    ctx = real_context()
    identity = replace(draw_partner_identity(ctx, ()), organization_id="org-9")
    seal = Seal(identity.seal_key)
    core = make_issuer(ctx, identity, seal)
    issuer = IssuerServer(ctx, "issuer", core)
    store = StoreServer(ctx, "store", make_store(ctx, identity, seal, core))
    await store.start()
    await issuer.start()
    api = fixture_of(
        workspace, store.url, identity.static_credential, issuer, (identity.issuer_key, identity.register_key)
    )
    await api.start()
    try:
        yield api
    finally:
        await api.close()
        await issuer.close()
        await store.close()


async def drive(scenario: Scenario, out: Path, use: str, tell: Callable[[str], None] = lambda _text: None) -> RunResult:
    options = RunOptions(out, 4, partner=use, show=tell)
    return await run_scenario(scenario, options, lambda *_: None)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.setenv(WORKSPACE_VARIABLE, str(folder))
    return folder


@pytest.mark.req("GR-021", "PRIV-007", "FX-029", "PA-029")
@pytest.mark.parametrize("by_url", [False, True])
async def test_a_fixture_that_runs_is_driven(by_url: bool, workspace: Path, tmp_path: Path) -> None:
    """With its keys, its agent and its team, through the lab's link."""
    async with mock_fixture(workspace) as api:
        result = await drive(load(PLAIN), tmp_path / "out", api.url if by_url else "fixture")
        private = json.loads((workspace / FIXTURE_OUTPUT).read_text("utf-8"))
    assert result.verdict.outcome.exit_status is ExitStatus.HELD, told(result)
    declared = [entry.event for entry in result.entries if isinstance(entry.event, ParticipantDeclared)]
    attached = [(event.how, event.facts["target"]) for event in declared if event.name == "partner_api"]
    assert attached == [("attach", "fixture-mock")]
    left = b"".join(path.read_bytes() for path in result.folder.rglob("*") if path.is_file())
    assert b"fixture-mock" in left
    left += page_text(result).encode() + json.dumps(result_json(result)).encode()
    for name in ("chatKey", "provisioningKey", "staticCredential", "grantIssuerKey", "registerKey"):
        assert private[name].encode() not in left, name


@pytest.mark.req("GR-021")
@pytest.mark.parametrize("links", ["", "links: {}\n"], ids=["linked", "bare"])
async def test_store_mode_waits_for_the_fixture(links: str, workspace: Path, tmp_path: Path) -> None:
    """The lab writes the input file, says so, and drives what then starts; a second run finds it where it is."""
    started: list[asyncio.Task[PartnerServer]] = []
    said: list[str] = []

    async def start() -> PartnerServer:
        given = json.loads((workspace / FIXTURE_INPUT).read_text("utf-8"))
        api = fixture_of(workspace, given["mcpTransportUrl"], given["staticCredential"], None, ("", ""))
        await api.start()
        return api

    def tell(text: str) -> None:
        said.append(text)
        started.append(asyncio.get_running_loop().create_task(start()))

    scenario = written(tmp_path, TURN, more=links, requires="")
    first = await drive(scenario, tmp_path / "out", "fixture", tell)
    (api,) = [await task for task in started]
    try:
        assert first.verdict.outcome.exit_status is ExitStatus.HELD, told(first)
        assert said == [
            f"waiting 120 s for a partner API: start its fixture in {workspace}, which reads {FIXTURE_INPUT} "
            f"and writes {FIXTURE_OUTPUT}\n"
        ]
        assert (workspace / FIXTURE_INPUT).stat().st_mode & 0o777 == 0o600
        second = await drive(scenario, tmp_path / "out", "fixture", tell)
        assert second.verdict.outcome.exit_status is ExitStatus.HELD, told(second)
        assert len(said) == 1
    finally:
        await api.close()


@pytest.mark.req("FX-041")
async def test_a_fixture_that_does_not_answer_is_not_ready(workspace: Path) -> None:
    """Nor is the one whose file has expired, should that be written again."""
    path = output(workspace, instanceId="i-1")
    with pytest.raises(SutFault, match=r"no fixture wrote .* within 0\.3 s"):
        await fresh_fixture(workspace, lambda: NOW_MS, None, 0.3)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        output(workspace, instanceId="i-1", apiOrigin=f"http://127.0.0.1:{port}")
        before = left_instance(workspace)
        assert before == "i-1"
        with pytest.raises(SutFault):
            await fresh_fixture(workspace, lambda: NOW_MS, before, 0.3)
        output(workspace, instanceId="i-2", apiOrigin=f"http://127.0.0.1:{port}")
        assert (await fresh_fixture(workspace, lambda: NOW_MS, before, 60)).instance_id == "i-2"
    path.unlink()
    assert left_instance(workspace) is None


@pytest.mark.req("PA-033", "PA-034")
@pytest.mark.parametrize("members", [{"apiOrigin": "https://api.example"}, {"environment": "production"}])
async def test_a_live_one_is_skipped_before_anything_reaches_it(
    members: dict[str, object], workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_PARTNER_LIVE", "")
    soon = (datetime.now(UTC) + timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    issuer = {"grantIssuerUrl": "http://127.0.0.1:9/grants", "grantIssuerKey": "key-four"}
    output(workspace, fixtureExpiresAt=soon, **issuer, **members)
    done = lab("run", PLAIN, "--partner", "fixture", "--out", tmp_path / "out")
    if "environment" in members:
        assert (done.returncode, "driven only when that is allowed expressly" in done.stdout) == (2, True)
    else:
        assert done.returncode == 4, done.stdout + done.stderr
        assert "https://api.example is a live partner API" in done.stdout
        assert "✓" not in done.stdout


@pytest.mark.req("FX-039")
@pytest.mark.parametrize(("seconds", "status"), [(59, ExitStatus.UNKNOWN), (120, ExitStatus.HELD)])
async def test_no_step_begins_in_the_last_minute_of_a_fixture(
    seconds: int, status: ExitStatus, workspace: Path, tmp_path: Path
) -> None:
    """The run is told as expired, and not as failed."""
    async with mock_fixture(workspace):
        path = workspace / FIXTURE_OUTPUT
        end = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        members = json.loads(path.read_text("utf-8")) | {"expiresAt": end, "fixtureExpiresAt": end}
        path.write_text(json.dumps(members), "utf-8")
        result = await drive(load(PLAIN), tmp_path / "out", "fixture")
    assert result.verdict.outcome.exit_status is status, told(result)
    steps = [entry.event for entry in result.entries if isinstance(entry.event, StepEnded)]
    assert (steps == []) is (status is ExitStatus.UNKNOWN)
    assert ("expired" in told(result)) is (status is ExitStatus.UNKNOWN)


async def test_nobody_starts_a_fixture(workspace: Path) -> None:
    with pytest.raises(SutFault, match=r"no fixture wrote .* within 0\.05 s"):
        await await_fixture(workspace, lambda: NOW_MS, lambda _text: None, 0.05)


def output(workspace: Path, **members: object) -> Path:
    path = workspace / FIXTURE_OUTPUT
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "apiOrigin": "http://127.0.0.1:9",
        "organizationId": "org",
        "namespace": "lab",
        "environment": "test",
        "provisioningKey": "key-one",
        "chatKey": "key-two",
        "destination": CANONICAL_DESTINATION,
        "staticCredential": "key-three",
        "fixtureExpiresAt": "2026-01-01T00:30:00.000Z",
    }
    path.write_text(json.dumps({**whole, **members}), "utf-8")
    path.chmod(0o600)
    return path


def test_what_is_found(workspace: Path) -> None:
    """None where nothing runs, and where it has expired; a file that must not be used is refused."""
    assert found_fixture(workspace, NOW_MS) is None
    path = output(workspace)
    found = found_fixture(workspace, NOW_MS)
    assert found is not None
    assert found.api_origin == "http://127.0.0.1:9"
    assert found_fixture(workspace, NOW_MS + 3_600_000) is None
    path.chmod(0o644)
    with pytest.raises(UsageError, match="0644"):
        found_fixture(workspace, NOW_MS)
    output(workspace, environment="production")
    with pytest.raises(FixtureRefused, match="production"):
        found_fixture(workspace, NOW_MS)
    output(workspace, chatKey=None)
    with pytest.raises(FixtureRefused, match="chatKey"):
        found_fixture(workspace, NOW_MS)


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"mcpTransportUrl": "http://x/", "staticCredential": "c"}'])
def test_a_running_fixture_whose_store_nobody_knows(text: str | None, workspace: Path) -> None:
    assert store_url_of(workspace) is None
    if text is not None:
        path = workspace / FIXTURE_INPUT
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
        path.chmod(0o600)
    with pytest.raises(UsageError, match="takes a store of which this file says nothing"):
        serving_of(workspace)
    if text is not None:
        with pytest.raises(UsageError):
            store_url_of(workspace)


@pytest.mark.req("FX-021", "FX-031")
def test_where_the_private_files_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FX-031: here, or where the variable says; FX-021: which is absolute."""
    monkeypatch.chdir(tmp_path)
    assert workspace_of({}) == workspace_of({WORKSPACE_VARIABLE: ""}) == tmp_path
    assert workspace_of({WORKSPACE_VARIABLE: "/a/b"}) == Path("/a/b")
    with pytest.raises(UsageError, match=f"{WORKSPACE_VARIABLE}=a/b: due is an absolute path"):
        workspace_of({WORKSPACE_VARIABLE: "a/b"})


def test_which_partner_api_is_meant(workspace: Path) -> None:
    scenario = load(PLAIN)
    assert scenario.partner is not None
    assert foreign_of(scenario, None, "virtual", print) is None
    assert foreign_of(scenario, "reference", "real", print) is None
    found = foreign_of(scenario, "fixture", "real", print)
    assert found is not None
    assert (found.workspace, found.origin) == (workspace, None)
    found = foreign_of(scenario, "http://127.0.0.1:3005/", "real", print)
    assert found is not None
    assert found.origin == "http://127.0.0.1:3005"
    own = replace(scenario, partner=replace(scenario.partner, api=replace(scenario.partner.api, use="fixture")))
    assert foreign_of(own, None, "real", print) is not None
    assert foreign_of(own, "reference", "real", print) is None


@pytest.mark.parametrize(
    ("arguments", "told_"),
    [
        (["--partner", "fixture", "--clock", "virtual"], "only the lab's own partner API runs on the virtual clock"),
        (["--partner", "ftp://x"], "`ftp://x` is no partner API: due is reference, fixture or a URL"),
    ],
)
def test_what_is_refused_before_anything_runs(arguments: list[str], told_: str, tmp_path: Path) -> None:
    done = lab("run", "scenarios/chat-answer.yaml", PLAIN, *arguments, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert told_ in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("mode", "members", "told_"),
    [
        (0o644, {}, "0644"),
        (0o600, {"environment": "production"}, "production"),
        (0o600, {"organizationId": None}, "organizationId"),
    ],
)
def test_a_file_that_must_not_be_used(
    mode: int, members: dict[str, object], told_: str, workspace: Path, tmp_path: Path
) -> None:
    """Status 2 with its reason, and none of its keys."""
    soon = (datetime.now(UTC) + timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    output(workspace, fixtureExpiresAt=soon, **members).chmod(mode)
    done = lab("run", PLAIN, "--partner", "fixture", "--out", tmp_path / "out")
    assert done.returncode == 2, done.stdout + done.stderr
    assert told_ in done.stdout + done.stderr
    for key in ("key-one", "key-two", "key-three"):
        assert key not in done.stdout + done.stderr


@pytest.mark.req("PRIV-009")
@pytest.mark.parametrize("name", ["rotated-key", "killed-in-a-turn", "wrong-keys"])
def test_what_only_the_labs_own_can_do_is_not_applicable(name: str, workspace: Path, tmp_path: Path) -> None:
    """PA-055: status 4, and the fixture is not even looked for."""
    done = lab("run", f"scenarios/partner/{name}.yaml", "--partner", "fixture", "--out", tmp_path / "out")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "not applicable to another partner API: it has no controls of the lab" in done.stdout
    assert not (workspace / ".orca").exists()


async def test_a_crash_that_is_not_the_labs_to_order(workspace: Path, tmp_path: Path) -> None:
    scenario = load(ROOT / "scenarios" / "partner" / "killed-in-a-turn.yaml")
    result = await drive(replace(scenario, requires=()), tmp_path / "out", "fixture")
    assert result.verdict.outcome.exit_status is ExitStatus.UNKNOWN
    assert "not applicable to another partner API: it is not the lab's to strike" in told(result)
    assert not [entry for entry in result.entries if isinstance(entry.event, StepEnded)]


def test_the_variable_is_the_one_of_the_documentation() -> None:
    assert WORKSPACE_VARIABLE in (ROOT / "docs" / "partner.md").read_text("utf-8")
    assert os.sep in str(FIXTURE_OUTPUT)


async def test_an_expired_file_is_said_to_be(workspace: Path) -> None:
    """Before the lab waits for a new one; nothing is said where there is none."""
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(SutFault):
            await await_fixture(workspace, lambda: NOW_MS + 3_600_000, said.append, 0.01)
        path = output(workspace)
    assert said[0].startswith("waiting")
    assert said[1].startswith(f"{path}: the fixture has expired. Start it again, it writes a new file.\nwaiting")
