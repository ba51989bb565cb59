"""A family is found by its token, and a stranger is never signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from unittest.mock import patch

import psutil
import pytest

from lab.sut.family import RUN_TOKEN, Family, send


@pytest.mark.parametrize(("age", "calls"), [(0.0, 1), (100.0, 0)], ids=["the same", "given away again"])
def test_a_number_that_the_system_gave_away_again_is_not_signalled(age: float, calls: int) -> None:
    process = psutil.Process()
    created = process.create_time() - age
    setattr(process, "_create_time", created)  # noqa: B010 - psutil has no other way to hold a process of the past
    setattr(process, "_ident", (process.pid, getattr(process, "_ident")[1] - age))  # noqa: B009, B010
    with patch("os.kill") as kill:
        send((process,), signal.SIGTERM)
    assert len([call for call in kill.call_args_list if call.args[1] == signal.SIGTERM]) == calls


def test_only_the_token_of_the_family_counts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        env={**os.environ, RUN_TOKEN: "of-one"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        mine, other = Family("of-one"), Family("of-another")
        mine.look()
        other.look()
        assert [process.pid for process in mine.alive()] == [child.pid]
        assert other.alive() == ()
        child.kill()
    assert mine.alive() == ()
