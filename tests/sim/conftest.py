"""What a test leaves open is remarked in that test, not in a later one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def collected() -> Iterator[None]:
    """A simulated run collects no garbage, so what it left is still there."""
    yield
    gc.collect()
