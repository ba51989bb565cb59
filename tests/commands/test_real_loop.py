"""Servers run on uvloop's event loop where there is one; what has fault proxies in it runs on asyncio's own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lab.commands.real_loop import loop_factory, run_real
from tests.command_line import ROOT, Child, environment, lab

MARKED = """
import asyncio
from pathlib import Path

def new_event_loop():
    Path({mark!r}).touch()
    return asyncio.SelectorEventLoop()
"""
"""A uvloop that only tells that it was used."""


async def loop_of() -> type:
    return type(asyncio.get_running_loop())


def test_without_uvloop_it_is_asyncios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory() is None
    assert run_real(loop_of()).__module__.startswith("asyncio.")


def test_with_uvloop_it_is_uvloops(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop(asyncio.SelectorEventLoop):
        """In place of uvloop's."""

    fake = ModuleType("uvloop")
    monkeypatch.setattr(fake, "new_event_loop", Loop, raising=False)
    monkeypatch.setitem(sys.modules, "uvloop", fake)
    assert run_real(loop_of()) is Loop
    assert run_real(loop_of(), on_asyncio=True) is not Loop


def test_the_loop_is_closed_and_what_is_left_is_ended() -> None:
    seen: list[asyncio.AbstractEventLoop] = []
    ended: list[bool] = []

    async def left() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> asyncio.Task[None]:
        seen.append(asyncio.get_running_loop())
        task = asyncio.create_task(left())
        await asyncio.sleep(0)
        return task

    assert run_real(main()).cancelled()
    assert ended == [True]
    assert seen[0].is_closed()


@pytest.fixture
def marked(tmp_path: Path) -> tuple[Path, str]:
    """Where the loop's use is told, and a search path that holds it."""
    mark, modules = tmp_path / "used", tmp_path / "modules"
    modules.mkdir()
    (modules / "uvloop.py").write_text(MARKED.format(mark=str(mark)))
    return mark, f"{modules}:{ROOT}"


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_a_run_does_not_use_it(clock: str, marked: tuple[Path, str], tmp_path: Path) -> None:
    """A run has links, which are fault proxies; the virtual clock has a loop of its own."""
    mark, path = marked
    done = lab("run", "scenarios/chat-answer.yaml", "--clock", clock, "--out", tmp_path / "out", PYTHONPATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not mark.exists()


@pytest.mark.parametrize(
    ("double", "first", "used"),
    [("gateway", "gateway double", True), ("agent2", "agent2 double", True), ("faults", "fault API", False)],
)
def test_a_server_uses_it_unless_it_has_fault_proxies(
    double: str, first: str, used: bool, marked: tuple[Path, str]
) -> None:
    mark, path = marked
    with Child(["serve", double, "--port", "0"], env=environment(PYTHONPATH=path)) as child:
        child.until(first)
        child.send(signal.SIGTERM)
        assert child.end() == 0
    assert mark.exists() is used
