"""The reference agent's log is watched as a program's output is."""

from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path

import pytest

from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.journal.events import SutOutput
from lab.run.agent_log import AgentLog
from tests.run.made import context

LOG = logging.getLogger("lab.localagent.somewhere")
KEY = "k3y-9f2c71d0a8b64e55"


def made(ctx: RunContext, folder: Path, name: str = "la") -> AgentLog:
    log = AgentLog(ctx, name, folder / f"{name}.log", (), {"key": KEY})
    log.open()
    return log


def seen(ctx: RunContext) -> list[tuple[str, str, tuple[str, ...]]]:
    events = [entry.event for entry in ctx.journal.entries]
    return [(one.name, one.stream, one.canaries) for one in events if isinstance(one, SutOutput)]


@pytest.mark.req("SEC-015")
def test_a_line_is_judged_and_masked(tmp_path: Path) -> None:
    ctx = context()
    log = made(ctx, tmp_path)
    with log.speaking():
        LOG.info("ready")
        LOG.info("token %s", KEY)
    log.close()
    assert seen(ctx) == [("la", "log", ()), ("la", "log", ("key",))]
    file = tmp_path / "la.log"
    assert file.read_text("utf-8") == "0.000 log INFO ready\n0.000 log INFO token [masked]\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_two_agents_have_a_log_each(tmp_path: Path) -> None:
    """Also what a task says that one of them started; what others say is nobody's."""
    ctx = context()
    one, two = made(ctx, tmp_path, "one"), made(ctx, tmp_path, "two")

    async def later() -> None:
        await asyncio.sleep(0)
        LOG.info("later")

    with one.speaking():
        task = asyncio.create_task(later())
    with two.speaking():
        LOG.info("now")
    LOG.info("nobody")
    await task
    for log in (one, two):
        log.close()
    assert [name for name, _, _ in seen(ctx)] == ["two", "one"]


def test_after_its_end_all_is_as_it_was(tmp_path: Path) -> None:
    ctx = context()
    logger = logging.getLogger("lab.localagent")
    before = (logger.level, list(logging.getLogger().handlers))
    log = made(ctx, tmp_path)
    log.close()
    log.close()
    with log.speaking():
        LOG.info("late")
    assert (logger.level, list(logging.getLogger().handlers)) == before
    assert seen(ctx) == []


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="the log of la cannot be written"):
        made(context(), tmp_path / "none")
