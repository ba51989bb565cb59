"""Running a coroutine on the virtual clock."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lab.sim.guards import Limits
from lab.sim.kernel import Kernel, Network
from lab.sim.loop import SimLoop
from lab.sim.patches import simulated

T = TypeVar("T")


def run_virtual(
    main: Callable[[], Coroutine[Any, Any, T]],
    seed: int,
    *,
    limits: Limits | None = None,
    network: Network | None = None,
) -> T:
    """Run `main()` to its end on a fresh simulated loop; as `asyncio.run` does, it ends what tasks are left.

    Raises a `SimulationStopped` when a guard ends the run. Nothing else of this process may run meanwhile.
    """
    kernel = Kernel(seed, network or Network())
    with simulated(kernel), _no_collections():
        loop = SimLoop(kernel, limits or Limits())
        try:
            return loop.run_until_complete(main())
        finally:
            _end(loop)
            crashed = loop.crashed_any
            del loop
            _collect(crashed)


def _collect(crashed: bool) -> None:
    """All that the run left is young; between runs there is no time for a collection to come by itself."""
    with warnings.catch_warnings():
        if crashed:
            # Libraries complain of what a crashed host did not close.
            warnings.simplefilter("ignore", ResourceWarning)
        gc.collect(2 if crashed else 1)


def _end(loop: SimLoop) -> None:
    try:
        loop.bury()
        loop.resume_all()
        tasks = loop.living_tasks()
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


class _no_collections:  # noqa: N801  reads as a word at its use
    """No garbage is collected meanwhile: when a collection comes depends on what ran before."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()
