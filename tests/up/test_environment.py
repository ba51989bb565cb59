"""A living environment: what it writes, and that nothing stays, however it ends."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from pathlib import Path

import pytest

from lab.clock import Clock
from lab.commands.loading import load
from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.journal.writer import Journal
from lab.partner.client.fixture_output import read_fixture_output
from lab.up import environment, key_files
from lab.up.control import UpControl
from lab.up.environment import PORTS, start_environment
from lab.up.files import CONTROL, KEYS, SHELL, read_control
from tests.command_line import ROOT, shown_environment

SCENARIO = ROOT / "scenarios" / "partner-onboarding.yaml"
NOW_MS = 1_767_225_600_000


def made() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, NOW_MS)
    return RunContext(3, clock, Journal(clock.now))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_ports_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs" / "partner.md").read_text("utf-8")
    for offset in PORTS.values():
        assert str(3000 + offset) in text


async def test_its_files_say_where_it_is(tmp_path: Path, temporary: Path) -> None:
    """And how to use it: for a driver, for a shell, for `lab fault`; all private, and gone with it."""
    folder = tmp_path / "logs"
    up = await start_environment(made(), load(SCENARIO), 0, folder, 600, os.getpid())
    try:
        assert left_in(folder) == sorted([KEYS, SHELL, CONTROL])
        modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes == {0o600}
        identity = up.world.identity
        given = read_fixture_output(folder / KEYS, made().wall_ms())
        assert (given.chat_key, given.organization_id) == (identity.chat_key, identity.organization_id)
        assert given.issuer is not None
        assert given.issuer.registrations_url == f"{up.world.base['issuer']}/conversations"
        assert NOW_MS < given.ends_at_ms - 600_000 < made().wall_ms() + 1000
        members = json.loads((folder / KEYS).read_text("utf-8"))
        assert (members["toolName"], members["toolInput"]) == ("catalog_get", {"productId": 9001})
        words = shown_environment((folder / SHELL).read_text("utf-8"))
        assert words["API"] == up.endpoints["partner API"]
        assert words["CHAT_KEY"] == identity.chat_key
        assert words["STORE_URL"] == f"{up.world.base['store']}/mcp"
        assert read_control(folder).url == up.control.url
        told = shlex.join(up.endpoints.values())
        assert [secret for secret in identity.secrets().values() if secret in told] == []
        assert read_control(folder).key not in {*identity.secrets().values()}
    finally:
        await up.close()
    assert left_in(folder) == []
    assert left_in(temporary) == []


@pytest.mark.parametrize("at", ["write_fixture", "write_shell", "write_control"])
async def test_a_start_that_fails_leaves_nothing(
    at: str, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file with a key, no folder, no listener."""
    ended: list[str] = []
    close = UpControl.close

    async def noted(self: UpControl) -> None:
        ended.append(self.url)
        await close(self)

    def full(*_args: object) -> None:
        raise EnvironmentFault("the disk is full")

    monkeypatch.setattr(environment if at == "write_control" else key_files, at, full)
    monkeypatch.setattr(UpControl, "close", noted)
    folder = tmp_path / "logs"
    folder.mkdir()
    with pytest.raises(EnvironmentFault, match="the disk is full"):
        await start_environment(made(), load(SCENARIO), 0, folder, 600, 1)
    assert left_in(folder) == left_in(temporary) == []
    assert len(ended) == 1


async def test_a_folder_that_cannot_be(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot be made"):
        await start_environment(made(), load(SCENARIO), 0, tmp_path / "file" / "logs", 600, 1)
    assert left_in(temporary) == []


@pytest.mark.req("FX-046")
@pytest.mark.parametrize("text", ['{"instanceId": "another"}', "{}", "no JSON"])
async def test_a_fixture_that_another_instance_wrote_stays(text: str, tmp_path: Path) -> None:
    up = await start_environment(made(), load(SCENARIO), 0, tmp_path, 600, 1)
    (tmp_path / KEYS).write_text(text, "utf-8")
    await up.close()
    assert left_in(tmp_path) == [KEYS]
    assert (tmp_path / KEYS).read_text("utf-8") == text


async def test_ending_twice_is_ending_once(tmp_path: Path) -> None:
    up = await start_environment(made(), load(SCENARIO), 0, tmp_path, 600, 1)
    await up.close()
    await up.close()
