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


def found_fixture(workspace: Path, now_ms: int) -> FixtureOutput | None:
    """The fixture that runs now; None when there is none or it has expired. A wrong file raises `UsageError`."""
    path = workspace / FIXTURE_OUTPUT
    if not path.exists():
        return None
    try:
        return read_fixture_output(path, now_ms)
    except FixtureExpired:
        return None


def serving_of(workspace: Path) -> Serving:
    """What a running fixture was told of the store. Raises `UsageError` when that file is not there any more."""
    path = workspace / FIXTURE_INPUT
    try:
        members = json.loads(read_private(path))
        return Serving(loopback_port(str(members["mcpTransportUrl"])), str(members["staticCredential"]))
    except (EnvironmentFault, UsageError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path}: the fixture that runs takes a store of which this file says nothing. End the fixture, remove "
            f"{FIXTURE_OUTPUT}, and run again."
        ) from error


async def await_fixture(
    workspace: Path, now_ms: Callable[[], int], tell: Callable[[str], None], seconds: float = ARRIVAL_SECONDS
) -> FixtureOutput:
    """Wait for a fixture that was not there before. Raises `SutFault` when none comes in time."""
    tell(
        f"waiting {seconds:g} s for a partner API: start its fixture in {workspace}, which reads {FIXTURE_INPUT} "
        f"and writes {FIXTURE_OUTPUT}\n"
    )
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = found_fixture(workspace, now_ms())
                if found is not None:
                    return found
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
    except TimeoutError:
        raise SutFault(f"no fixture wrote {workspace / FIXTURE_OUTPUT} within {seconds:g} s") from None
