"""What killed agents leave: a killed program closes nothing itself, so Python finds their sessions and sockets open."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore:Unclosed:ResourceWarning",
    "ignore:unclosed:ResourceWarning",
    "ignore:loop is closed:ResourceWarning",
)
"""For tests in whose runs an agent may be killed."""


def collected() -> Iterator[None]:
    """A fixture's body: finds what is left before the next test, which may not expect it."""
    yield
    gc.collect()
