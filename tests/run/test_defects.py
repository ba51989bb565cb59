"""Errors that nobody awaits become a run's defects."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from lab.errors import EnvironmentFault
from lab.journal.events import Defect, FaultEnded
from lab.run.defects import RunJournal, noting_defects
from tests.run.made import context


async def test_an_error_that_only_the_loop_sees(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is noted, told in the journal, and not printed."""
    ctx, loop = context(), asyncio.get_running_loop()
    error = ValueError("the prompt")

    def failing() -> None:
        raise error

    with noting_defects(ctx, tmp_path / "lab.log"):
        loop.call_soon(failing)
        await asyncio.sleep(0)
        loop.call_exception_handler({"message": "a thing without an error"})
    assert ctx.defects[0] is error
    assert isinstance(ctx.defects[1], RuntimeError)
    assert ctx.journal.entries[0].event == Defect("ValueError")
    assert capfd.readouterr() == ("", "")
    assert loop.get_exception_handler() is None


async def test_what_parts_log_goes_to_a_file(tmp_path: Path) -> None:
    """Warnings are kept, an error with its exception is a defect; afterwards all is as before."""
    ctx, log = context(), logging.getLogger("some.library")
    handlers = list(logging.getLogger().handlers)
    with noting_defects(ctx, tmp_path / "lab.log"):
        log.info("nobody wants this")
        log.warning("careful with %s", "this")
        log.error("no exception")
        try:
            raise KeyError("x")
        except KeyError:
            log.exception("it failed")
    assert [type(defect) for defect in ctx.defects] == [KeyError]
    assert (tmp_path / "lab.log").read_text("utf-8").splitlines() == [
        "0.000000 WARNING some.library: careful with this",
        "0.000000 ERROR some.library: no exception",
        "0.000000 ERROR some.library: it failed",
    ]
    assert (tmp_path / "lab.log").stat().st_mode & 0o777 == 0o600
    assert logging.getLogger().handlers == handlers


async def test_a_log_that_cannot_be_written() -> None:
    """It is the environment's fault: at once where it cannot be made, as a defect of the run later."""
    with pytest.raises(EnvironmentFault), noting_defects(context(), Path("/proc/none/lab.log")):
        pass
    ctx = context()
    with noting_defects(ctx, Path("/dev/full")):
        logging.getLogger("some.library").warning("x")
    assert {type(defect) for defect in ctx.defects} == {EnvironmentFault}


def test_a_journal_on_a_full_disk_goes_on_in_memory() -> None:
    """No part stumbles, every listener hears all, and the reason is told once."""
    told: list[EnvironmentFault] = []
    heard: list[int] = []
    journal = RunJournal(lambda: 0.0, Path("/dev/full"))
    journal.on_full = told.append
    journal.listen(lambda entry: heard.append(entry.n))
    entries = [journal.record("faults", FaultEnded(name)) for name in ("a", "b", "c")]
    assert [entry.n for entry in entries] == heard == [0, 1, 2]
    assert journal.entries == entries
    assert len(told) == 1
    assert "No space left on device" in str(told[0])
    journal.close()
