"""A partner API that the lab does not start: found by its private output file, told of the store by the input file.

A fixture with an issuer of its own (mock mode) brings its store along. One without takes the lab's store and issuer:
the first run writes the input file and waits for the fixture; later ones serve the store as that file says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lab.errors import EnvironmentFault, SutFault, UsageError
from lab.partner.client.fixture_output import FIXTURE_OUTPUT, FixtureExpired, FixtureOutput, read_fixture_output
from lab.private_files import read_private
from lab.store.fixture_input import FIXTURE_INPUT, loopback_port

WORKSPACE_VARIABLE = "PARTNER_CHAT_FIXTURE_WORKSPACE"
FIXTURE = "fixture"
"""What `use:` or `--partner` is for a partner API that its fixture file names."""

ARRIVAL_SECONDS = 120.0
"""FX-041: how long a fixture may take to write its file."""
LOOK_AGAIN_SECONDS = 0.25


@dataclass(frozen=True)
class Serving:
    """Where the store that a running fixture calls has to be, and with which credential."""

    port: int
    static_credential: str


def workspace_of(variables: Mapping[str, str]) -> Path:
    """The folder below which the private files lie (FX-031). Raises `UsageError` for a relative one (FX-021)."""
    given = variables.get(WORKSPACE_VARIABLE)
    if not given:
        return Path.cwd()
    if not Path(given).is_absolute():
        raise UsageError(f"{WORKSPACE_VARIABLE}={given}: due is an absolute path.")
    return Path(given)


def found_fixture(workspace: Path, now_ms: int, *, allow_production: bool = False) -> FixtureOutput | None:
    """The fixture that runs now; None when there is none or it has expired. A wrong file raises `UsageError`."""
    path = workspace / FIXTURE_OUTPUT
    if not path.exists():
        return None
    try:
        return read_fixture_output(path, now_ms, allow_production=allow_production)
    except FixtureExpired:
        return None


def store_url_of(workspace: Path) -> str | None:
    """The store's address in the private input file; None while there is no such file.

    Raises `UsageError` for a file that is none, and `EnvironmentFault` for one that others can read.
    """
    path = workspace / FIXTURE_INPUT
    if not path.exists():
        return None
    try:
        url = str(json.loads(read_private(path))["mcpTransportUrl"])
        loopback_port(url)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} names no store. Remove it; `lab run … --partner fixture` writes a new one."
        ) from error
    return url


def serving_of(workspace: Path) -> Serving:
    """What a running fixture was told of the store. Raises `UsageError` when that file is not there any more."""
    path = workspace / FIXTURE_INPUT
    try:
        members = json.loads(read_private(path))
        return Serving(loopback_port(str(members["mcpTransportUrl"])), str(members["staticCredential"]))
    except (EnvironmentFault, UsageError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path}: the fixture that runs takes a store of which this file says nothing. End the fixture, remove "
            f"{FIXTURE_OUTPUT}, and run again."
        ) from error


async def await_fixture(
    workspace: Path, now_ms: Callable[[], int], tell: Callable[[str], None], seconds: float = ARRIVAL_SECONDS
) -> FixtureOutput:
    """Wait for a fixture that was not there before. Raises `SutFault` when none comes in time."""
    tell(
        f"{_expired(workspace, now_ms())}waiting {seconds:g} s for a partner API: start its fixture in {workspace}, "
        f"which reads {FIXTURE_INPUT} and writes {FIXTURE_OUTPUT}\n"
    )
    return await fresh_fixture(workspace, now_ms, left_instance(workspace), seconds)


def _expired(workspace: Path, now_ms: int) -> str:
    """A line on the file of a fixture whose time is over; nothing without one. What is wrong with it was told."""
    try:
        read_fixture_output(workspace / FIXTURE_OUTPUT, now_ms)
    except FixtureExpired as expired:
        return f"{expired}\n"
    except UsageError:
        pass
    return ""


def left_instance(workspace: Path) -> str | None:
    """The instanceId of the file that lies there before a start, whether it has expired or not."""
    try:
        return read_fixture_output(workspace / FIXTURE_OUTPUT, 0).instance_id
    except UsageError:
        return None


async def fresh_fixture(
    workspace: Path, now_ms: Callable[[], int], before: str | None, seconds: float = ARRIVAL_SECONDS
) -> FixtureOutput:
    """Wait until a fixture is ready: its file is of another instance than `before`, and its origin answers (FX-041).

    Raises `SutFault` when that does not come in time.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = found_fixture(workspace, now_ms())
                if found is not None and _is_fresh(found, before) and await _answers(found.api_origin):
                    return found
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
    except TimeoutError:
        raise SutFault(f"no fixture wrote {workspace / FIXTURE_OUTPUT} within {seconds:g} s") from None


def _is_fresh(found: FixtureOutput, before: str | None) -> bool:
    return before is None or found.instance_id != before


async def _answers(origin: str) -> bool:
    url = urlsplit(origin)
    try:
        _, writer = await asyncio.open_connection(url.hostname, url.port or (443 if url.scheme == "https" else 80))
    except OSError:
        return False
    writer.close()
    return True
