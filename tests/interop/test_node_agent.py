"""The lab's scenarios against a Local Agent in Node that shares no code with the lab."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.command_line import lab

AGENT = Path(__file__).parent / "node-agent"
OLDEST_NODE = 20
INSTALL_SECONDS = 90.0

pytestmark = pytest.mark.timeout(120)

ALWAYS = ("job-at-most-once", "job-outcome", "numbering", "acks", "agent-frames-valid")
JUDGED = {
    "chat-answer": ("stream-complete", "content-stays-in-its-fields"),
    "chat-resume": ("stream-complete", "resume-rules", "gateway-resume-rules", "content-stays-in-its-fields"),
    "fix-job": (),
    "lost-ack": ("retransmission",),
    "duplicate-delivery": (),
    "chat-cancel": ("cancel-honoured", "stream-complete", "stream-done"),
    "chat-cancel-queued": ("cancel-honoured", "stream-done"),
    "chat-cancel-early": ("cancel-honoured", "stream-done"),
    "chat-16k-input": ("prompt-whole", "conversation"),
    "chat-unsupported": ("capabilities",),
    "chat-idle-long-poll": ("long-poll", "stream-complete", "content-in-time"),
    "agent2-crash": (),
    "agent2-stream-cut": ("stream-complete", "agent2-client", "conversation"),
    "agent2-busy": ("stream-done", "conversation"),
    "resume-elsewhere": ("stream-complete", "resume-rules"),
    "retransmission-exhausted": ("retransmission", "timeouts", "after-fatal"),
    "gateway-retransmission-exhausted": ("resume-rules",),
    "signature-refused": ("signature-refusal", "refusals", "after-fatal"),
    "signature-warn": ("signature-refusal",),
    "signature-off": ("signature-refusal",),
    "fallback-not-due": ("signature-refusal", "resume-rules"),
    "oversize-and-junk": ("refusals", "after-fatal", "resume-rules"),
    "slow-consumer": ("chunks", "stream-complete"),
    "two-agents": ("stream-complete", "conversation", "one-job-at-a-time"),
}
SLOW = ("chat-idle-long-poll", "resume-elsewhere")


@pytest.fixture(scope="module")
def modules() -> Path:
    """The folder with the agent's one dependency: its own `node_modules`, or one in the user's cache."""
    own = AGENT / "node_modules"
    if (own / "ws").is_dir():
        return own
    _need_node()
    lock = AGENT / "package-lock.json"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lab-interop"
    folder = cache / f"node-agent-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    # Several test processes may come here at once; `npm ci` begins with an empty folder, so only one may be at it.
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install(folder)
            (folder / "installed").touch()
    return folder / "node_modules"


def _install(folder: Path) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(AGENT / name, folder / name)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        _cannot(f"`npm ci` failed in {folder}: {done.stderr[-500:]}")


def _need_node() -> None:
    missing = [program for program in ("node", "npm") if shutil.which(program) is None]
    if missing:
        _cannot(f"the Node agent needs {' and '.join(missing)}; install Node {OLDEST_NODE} or newer with npm")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    if int(said.strip().removeprefix("v").split(".")[0]) < OLDEST_NODE:
        _cannot(f"the Node agent needs Node {OLDEST_NODE} or newer, there is {said.strip()}")


def _cannot(reason: str) -> NoReturn:
    """A machine without Node may go without these tests; one that decides what lands may not."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(
    "scenario", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in JUDGED]
)
def test_the_lab_and_the_agent_agree(scenario: str, modules: Path, tmp_path: Path) -> None:
    done = lab(
        *("run", f"scenarios/{scenario}.yaml", "--local-agent", "node-agent", "--out", tmp_path),
        NODE_PATH=str(modules),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    laws = json.loads((tmp_path / scenario / "latest" / "result.json").read_text())["laws"]
    held = {law["id"] for law in laws if law["status"] == "held" and law["judged"] > 0}
    assert set(ALWAYS + JUDGED[scenario]) - held == set()


def test_the_lock_pins_the_dependency_and_names_no_registry() -> None:
    packages = json.loads((AGENT / "package-lock.json").read_text())["packages"]
    dependencies = {name: entry for name, entry in packages.items() if name}
    assert list(dependencies) == ["node_modules/ws"]
    assert all("integrity" in entry and "resolved" not in entry for entry in dependencies.values())
