"""Real programs are started as resolved, watched, and ended with all that they started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import psutil
import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError, SutFault, UsageError
from lab.journal.events import SutChanged, SutOutput, digest
from lab.journal.writer import Journal
from lab.sut.family import RUN_TOKEN
from lab.sut.launch import Launch, resolve
from lab.sut.output import DEFAULT_BOUNDS, OutputBounds
from lab.sut.process import SutProcess
from lab.sut.profile import load_profile
from tests.sut.test_profile import write
from tests.sut.values import VALUES

TOKEN = "token-of-the-gateway"
CANARY = "canary-value-0001"
ENVIRONMENT = {"PATH": os.defpath}

UNTIL_KILLED = "import signal; print('up', flush=True); signal.pause()"
IGNORING = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)
DAEMON = """
import os, pathlib, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if {quiet}:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
    pathlib.Path(sys.argv[1] + ".new").write_text(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while True:
        signal.pause()
os.wait()
print("up", flush=True)
if {stays}:
    signal.pause()
"""


class Bench:
    """Makes processes in a folder, with one journal, and ends those that a test left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        clock = Clock(asyncio.get_running_loop().time, 0)
        self.journal = Journal(clock.now)
        self.ctx = RunContext(7, clock, self.journal)
        self.log = folder / "agent.log"
        self.made: list[SutProcess] = []

    def process(self, launch: Launch, bounds: OutputBounds = DEFAULT_BOUNDS) -> SutProcess:
        made = SutProcess(self.ctx, "agent", launch, self.log, [TOKEN], {"c1": CANARY}, bounds)
        self.made.append(made)
        return made

    def python(
        self, code: str, *arguments: str, grace: float = 5.0, bounds: OutputBounds = DEFAULT_BOUNDS
    ) -> SutProcess:
        command = (sys.executable, "-c", code, *arguments)
        return self.process(Launch(command, self.folder, ENVIRONMENT, grace=grace), bounds)

    def changes(self) -> list[tuple[str, Mapping[str, object]]]:
        events = [entry.event for entry in self.journal.entries]
        return [(event.change, dict(event.detail)) for event in events if isinstance(event, SutChanged)]

    def outputs(self) -> list[SutOutput]:
        return [entry.event for entry in self.journal.entries if isinstance(entry.event, SutOutput)]

    async def said(self, word: str) -> None:
        due = digest("sut.output", word)
        await until(lambda: any(event.line == due for event in self.outputs()))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for process in bench.made:
        await process.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


async def within(awaitable: Awaitable[object]) -> None:
    async with asyncio.timeout(30):
        await awaitable


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.req("LA-046", "LA-047")
async def test_a_program_sees_its_environment_and_nothing_else(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_CALLER", "x")
    home = bench.folder / "home"
    home.mkdir()
    code = (
        "import os, pathlib, json; assert os.getsid(0) == os.getpid() == os.getpgid(0);"
        "pathlib.Path('seen.json').write_text(json.dumps({**os.environ, 'home': str(pathlib.Path.home())}))"
    )
    profile = load_profile(
        write(
            bench.folder,
            f"profile: p\nabout: x\ncommand: ['{{python}}', -c, \"{code.replace('{', '{{').replace('}', '}}')}\"]\n"
            f"cwd: {bench.folder}\nenvironment: {{ '{{blank:url}}': '{{gateway_ws_url}}' }}\n"
            "blanks: { url: the url }\n",
        )
    )
    launch = resolve(profile, VALUES, home, {"url": "URL"}, {**os.environ, "LANG": "C.UTF-8"})
    process = bench.process(launch)
    await process.start()
    await within(process.exited.wait())
    assert process.returncode == 0, process.death_report()
    seen = json.loads((bench.folder / "seen.json").read_text())
    assert seen.pop("home") == seen["HOME"] == str(home)
    assert len(seen.pop(RUN_TOKEN)) == 32
    seen.pop("LC_CTYPE", None)
    assert seen == launch.environment
    assert "OF_THE_CALLER" not in seen
    assert seen["URL"] == VALUES.gateway_ws_url


async def test_an_early_death_is_noticed_and_told(bench: Bench) -> None:
    process = bench.python("import sys; print('out'); sys.exit('cannot go on')")
    await process.start()
    await within(process.exited.wait())
    report = process.death_report()
    assert report.startswith("agent ended with exit code 1 after ")
    assert {"  out", "  cannot go on"} == set(report.splitlines()[1:])
    await process.stop()
    assert bench.changes() == [("started", {}), ("exited", {"code": 1})]
    assert sorted(event.stream for event in bench.outputs()) == ["err", "out"]


async def test_a_death_by_a_signal_has_its_name(bench: Bench) -> None:
    process = bench.python("import os; os.abort()")
    await process.start()
    await within(process.exited.wait())
    assert process.death_report().startswith("agent ended with signal SIGABRT after ")
    assert process.death_report().endswith(" without a word of output.")
    assert bench.changes()[-1] == ("exited", {"signal": "SIGABRT"})


async def test_no_death_no_report(bench: Bench) -> None:
    process = bench.python(UNTIL_KILLED)
    await process.start()
    with pytest.raises(MisuseError):
        process.death_report()
    with pytest.raises(MisuseError):
        await process.start()


async def test_a_program_ends_by_its_stop_signal(bench: Bench) -> None:
    process = bench.python(UNTIL_KILLED, grace=30.0)
    await process.start()
    await bench.said("up")
    await within(asyncio.gather(process.stop(), process.stop()))
    await process.stop()
    assert process.exited.is_set()
    assert bench.changes() == [("started", {}), ("stopping", {}), ("stopped", {"signal": "SIGTERM"})]


async def test_another_stop_signal(bench: Bench) -> None:
    code = "import signal\ntry: print('up', flush=True); signal.pause()\nexcept KeyboardInterrupt: raise SystemExit(3)"
    command = (sys.executable, "-c", code)
    process = bench.process(Launch(command, bench.folder, ENVIRONMENT, stop_signal=signal.SIGINT, grace=30.0))
    await process.start()
    await bench.said("up")
    await within(process.stop())
    assert bench.changes()[-1] == ("stopped", {"code": 3})


async def test_a_program_that_ignores_the_signal_is_killed_after_its_grace(bench: Bench) -> None:
    process = bench.python(IGNORING, grace=0.2)
    await process.start()
    await bench.said("up")
    began = asyncio.get_running_loop().time()
    await within(process.stop())
    assert asyncio.get_running_loop().time() - began >= 0.2
    assert bench.changes()[1:] == [("stopping", {}), ("killed", {"signal": "SIGKILL", "killed": 1})]


async def test_a_child_behind_a_shell_has_the_grace_too(bench: Bench) -> None:
    child = (
        "import signal, pathlib\n"
        "def end(*_): print('bye', flush=True); raise SystemExit\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); signal.pause()"
    )
    (bench.folder / "child.py").write_text(child)
    command = ("/bin/sh", "-c", f"{sys.executable} child.py & wait")
    process = bench.process(Launch(command, bench.folder, ENVIRONMENT, grace=30.0))
    await process.start()
    await bench.said("up")
    await within(process.stop())
    assert bench.changes()[-1][0] == "stopped"
    await bench.said("bye")


@pytest.mark.parametrize("quiet", [True, False], ids=["quiet", "holding the pipes"])
@pytest.mark.parametrize("stays", [True, False], ids=["parent alive", "parent dead"])
async def test_a_daemon_in_a_session_of_its_own_is_found_and_ended(bench: Bench, stays: bool, quiet: bool) -> None:
    pid_file = bench.folder / "pid"
    process = bench.python(DAEMON.format(quiet=quiet, stays=stays), str(pid_file), grace=30.0)
    await process.start()
    await bench.said("up")
    await until(pid_file.exists)
    daemon = int(pid_file.read_text())
    if not stays:
        await within(process.exited.wait())
    assert runs(daemon)
    await within(process.stop())
    assert not runs(daemon)
    assert bench.changes()[-1][0] == "killed"
    assert bench.changes()[-1][1]["killed"] == 1


async def test_a_child_without_the_environment_in_a_session_of_its_own_is_found_by_descent(bench: Bench) -> None:
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {UNTIL_KILLED!r}], env={{}}, start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid)); child.wait()"
    )
    process = bench.python(code, grace=30.0)
    await process.start()
    await bench.said("up")
    await until(lambda: (bench.folder / "pid").exists() and (bench.folder / "pid").read_text() != "")
    child = int((bench.folder / "pid").read_text())
    await within(process.stop())
    assert not runs(child)


async def test_processes_of_another_run_with_the_same_seed_are_left_alone(bench: Bench) -> None:
    first, second = bench.python(UNTIL_KILLED), bench.python(UNTIL_KILLED)
    await first.start()
    await second.start()
    await first.stop()
    assert second.pid is not None
    assert runs(second.pid)


async def test_a_flood_is_read_to_its_end_and_kept_within_bounds(bench: Bench) -> None:
    bounds = OutputBounds(line_bytes=1024, total_bytes=10_000, lines=1000)
    code = "print('y' * 3_000_000); print(('z' * 99 + chr(10)) * 20_000, end='the end')"
    process = bench.python(code, bounds=bounds)
    await process.start()
    await within(process.exited.wait())
    assert process.returncode == 0
    assert process.death_report().endswith("\n  the end")
    await process.stop()
    assert bench.outputs()[0].line == digest("sut.output", "y" * 3_000_000)
    assert bench.log.stat().st_size < 15_000
    assert "no more is kept" in bench.log.read_text()


@pytest.mark.req("SEC-015")
async def test_secrets_are_hidden_everywhere_and_canaries_are_named(bench: Bench) -> None:
    code = (
        "import sys\n"
        f"for part in ('a {TOKEN[:7]}', '{TOKEN[7:]} b', chr(10), '{CANARY}', chr(10)):\n"
        "    sys.stdout.write(part); sys.stdout.flush()\n"
        "sys.exit(1)"
    )
    process = bench.python(code)
    await process.start()
    await within(process.exited.wait())
    await process.stop()
    for text in (bench.log.read_text(), process.death_report()):
        assert "a [masked] b" in text
        assert TOKEN not in text
        assert CANARY not in text
    assert [event.canaries for event in bench.outputs()] == [(), ("c1",)]
    assert bench.outputs()[0].line == digest("sut.output", f"a {TOKEN} b")


async def test_the_log_is_private(bench: Bench) -> None:
    process = bench.python("print('x')")
    await process.start()
    await within(process.exited.wait())
    assert stat.S_IMODE(bench.log.stat().st_mode) == 0o600
    assert bench.log.read_text().endswith(" out x\n")


async def test_what_is_missing_is_said_in_one_sentence(bench: Bench) -> None:
    plain = bench.folder / "plain"
    plain.write_text("x")
    cases = {
        "no program `no-such-program` is on its PATH": Launch(("no-such-program",), bench.folder, ENVIRONMENT),
        "there is no program": Launch(("./none",), bench.folder, ENVIRONMENT),
        "there is no folder": Launch((sys.executable,), bench.folder / "none", ENVIRONMENT),
        "is not executable": Launch(("./plain",), bench.folder, ENVIRONMENT),
    }
    for words, launch in cases.items():
        with pytest.raises(UsageError, match=words):
            await bench.process(launch).start()
    assert bench.changes() == []


async def test_a_file_that_the_system_cannot_run_is_a_fault(bench: Bench) -> None:
    file = bench.folder / "empty"
    file.write_bytes(b"\x00\x01")
    file.chmod(0o700)
    with pytest.raises(SutFault, match="could not be started"):
        await bench.process(Launch((str(file),), bench.folder, ENVIRONMENT)).start()


async def test_a_log_that_cannot_be_opened_is_a_fault(bench: Bench) -> None:
    bench.log = bench.folder / "none" / "agent.log"
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        await bench.python("").start()


async def test_a_cancelled_start_leaves_nothing(bench: Bench) -> None:
    marks = bench.folder / "marks"
    for turns in range(6):
        process = bench.python(f"import pathlib; pathlib.Path({str(marks)!r}).touch(); {UNTIL_KILLED}")
        task = asyncio.get_running_loop().create_task(process.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        if result is None:
            await process.stop()
        else:
            assert isinstance(result, asyncio.CancelledError)
        assert children_with(marks) == []


async def test_a_cancelled_stop_kills_at_once(bench: Bench) -> None:
    process = bench.python(IGNORING, grace=3600.0)
    await process.start()
    await bench.said("up")
    task = asyncio.get_running_loop().create_task(process.stop())
    await until(lambda: bench.changes()[-1][0] == "stopping")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert process.pid is not None
    assert not runs(process.pid)
    assert bench.changes()[-1] == ("killed", {"signal": "SIGKILL", "killed": 1})
    await process.stop()


def test_a_second_interrupt_during_the_grace_leaves_no_orphan(tmp_path: Path) -> None:
    made: list[SutProcess] = []

    async def interrupted() -> None:
        bench = Bench(tmp_path)
        process = bench.python(IGNORING, grace=3600.0)
        made.append(process)
        await process.start()
        await bench.said("up")
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            stopping = asyncio.get_running_loop().create_task(process.stop())
            await until(lambda: bench.changes()[-1][0] == "stopping")
            os.kill(os.getpid(), signal.SIGINT)
            await stopping

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted())
    assert made[0].pid is not None
    assert not runs(made[0].pid)


async def test_stop_before_a_start_does_nothing(bench: Bench) -> None:
    await bench.python("").stop()
    assert bench.changes() == []


def children_with(word: Path) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and any(str(word) in part for part in child.cmdline())
    ]
