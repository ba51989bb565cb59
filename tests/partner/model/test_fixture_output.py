from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from lab.clock import timestamp
from lab.partner.model.settings import FixtureSettings
from lab.sim.run import run_virtual
from tests.partner.model.calls import DESTINATION, EPOCH_MS, ORG, TEAM, running

REQUIRED = {
    "apiOrigin",
    "organizationId",
    "namespace",
    "environment",
    "provisioningKey",
    "chatKey",
    "destination",
    "staticCredential",
    "expiresAt",
}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.req("FX-017", "FX-018", "FX-019", "FX-028", "FX-030", "FX-035", "PA-052", "PRIV-014")
async def test_the_private_file_has_what_a_driver_needs(tmp_path: Path) -> None:
    path = tmp_path / ".orca" / "logs" / "server-chat-fixture.json"
    async with running(fixture=FixtureSettings(path, DESTINATION), static_credential="static") as api:
        facts = read(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert set(facts) == REQUIRED | {"instanceId", "fixtureExpiresAt", "agentId", "externalTeamId"}
        assert (facts["apiOrigin"], facts["organizationId"], facts["environment"]) == (api.server.url, ORG, "test")
        assert (facts["agentId"], facts["externalTeamId"], facts["destination"]) == ("agent-mcp", TEAM, DESTINATION)
        assert facts["chatKey"] == api.server.keys.chat != facts["provisioningKey"]
        assert facts["expiresAt"] == facts["fixtureExpiresAt"]
        assert timestamp(EPOCH_MS + 1_800_000) <= facts["expiresAt"] <= timestamp(EPOCH_MS + 1_860_000)


@pytest.mark.req("FX-020", "FX-035")
async def test_the_mock_mode_adds_the_issuer_and_the_tool(tmp_path: Path) -> None:
    path = tmp_path / "fixture.json"
    fixture = FixtureSettings(
        path,
        DESTINATION,
        grant_issuer_url="http://127.0.0.1:1/grants",
        grant_issuer_key="issuer",
        tool_name="catalog_get",
        tool_input={"productId": 9001},
    )
    assert "issuer" not in repr(fixture).replace("grant_issuer_url", "").replace("127.0.0.1:1/grants", "")
    async with running(fixture=fixture):
        facts = read(path)
        assert (facts["grantIssuerUrl"], facts["grantIssuerKey"]) == ("http://127.0.0.1:1/grants", "issuer")
        assert (facts["toolName"], facts["toolInput"]) == ("catalog_get", {"productId": 9001})


@pytest.mark.req("FX-046")
async def test_a_clean_stop_deletes_its_own_file_and_a_crash_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "fixture.json"
    async with running(fixture=FixtureSettings(path, DESTINATION)) as api:
        await api.server.crash()
        left = read(path)
        await api.server.start()
        assert read(path)["instanceId"] != left["instanceId"]
        await api.server.close()
        assert not path.exists()
        await api.server.start()
        path.write_text(json.dumps({"instanceId": "of another"}))
        await api.server.close()
        assert path.exists()
        path.write_text("no JSON")
    assert path.exists()


@pytest.mark.req("FX-017", "PA-054")
async def test_the_file_follows_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "fixture.json"
    async with running(fixture=FixtureSettings(path, DESTINATION)) as api:
        key = api.server.controls.rotate_key("chat")
        assert read(path)["chatKey"] == key


@pytest.mark.req("FX-011")
def test_a_fixture_ends_by_itself_whatever_the_models_clock_says(tmp_path: Path) -> None:
    path = tmp_path / "fixture.json"

    async def scene() -> None:
        async with running(fixture=FixtureSettings(path, DESTINATION, self_ending=True)) as api:
            api.server.controls.move_clock(2 * 86_400_000)
            await asyncio.sleep(1799)
            assert path.exists()
            assert not api.server.closed.is_set()
            await api.server.closed.wait()
            assert 1800 <= api.ctx.now() < 1801
            assert not path.exists()

    run_virtual(scene, seed=1)


@pytest.mark.req("FX-011")
def test_a_virtual_day_does_not_end_a_fixture(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running(fixture=FixtureSettings(tmp_path / "fixture.json", DESTINATION)) as api:
            await asyncio.sleep(86_000)
            assert (await api.member()).status == 200

    run_virtual(scene, seed=1)
