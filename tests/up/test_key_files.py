"""The files with keys, when a key is rotated while the environment lives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from lab.clock import Clock
from lab.commands.loading import load
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.partner.client.fixture_output import read_fixture_output
from lab.up.control import UpControl
from lab.up.environment import start_environment
from lab.up.files import KEYS, SHELL
from tests.command_line import ROOT, shown_environment

SCENARIO = ROOT / "scenarios" / "partner-onboarding.yaml"


@pytest.mark.parametrize("role", ["chat", "provisioning"])
async def test_they_hold_the_key_that_counts(role: str, tmp_path: Path) -> None:
    """Rotated over HTTP, as whoever writes a partner's server does it; all else stays as it was."""
    clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
    ctx = RunContext(3, clock, Journal(clock.now, keep=False))
    up = await start_environment(ctx, load(SCENARIO), 0, tmp_path, 600, 1)
    try:
        before = read_fixture_output(tmp_path / KEYS, ctx.wall_ms())
        words = shown_environment((tmp_path / SHELL).read_text("utf-8"))
        control = {"Authorization": f"Bearer {words['CONTROL_KEY']}"}
        async with (
            aiohttp.ClientSession(headers=control) as http,
            http.post(f"{words['CONTROL_URL']}/keys/rotate", json={"role": role}) as answer,
        ):
            fresh = (await answer.json())["data"]["key"]
        after = read_fixture_output(tmp_path / KEYS, ctx.wall_ms())
        keys = {"chat": before.chat_key, "provisioning": before.provisioning_key} | {role: fresh}
        assert (after.chat_key, after.provisioning_key) == (keys["chat"], keys["provisioning"])
        assert (after.ends_at_ms, after.instance_id) == (before.ends_at_ms, before.instance_id)
        assert shown_environment((tmp_path / SHELL).read_text("utf-8")) == words | {"CHAT_KEY": keys["chat"]}
        assert {(tmp_path / name).stat().st_mode & 0o777 for name in (KEYS, SHELL)} == {0o600}
    finally:
        await up.close()


async def test_a_rotation_at_the_end_brings_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the removal of the files and the end of the model."""
    clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
    up = await start_environment(RunContext(3, clock, Journal(clock.now)), load(SCENARIO), 0, tmp_path, 600, 1)
    close = UpControl.close

    async def rotate_first(self: UpControl) -> None:
        up.world.controls.rotate_key("chat")
        await close(self)

    monkeypatch.setattr(UpControl, "close", rotate_first)
    await up.close()
    assert [(tmp_path / name).exists() for name in (KEYS, SHELL)] == [False, False]
