"""Who runs the trials: this process, or several that do nothing else."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from lab.explore.plan import Plan
from lab.explore.trial import Trial, remove_folder, try_plan
from lab.scenario.model import Scenario
from lab.sim.patches import machine_replaced

AHEAD = 2
"""Trials that wait for each worker, so that none is idle."""


@dataclass(frozen=True)
class Workers:
    """Who tries plans of one scenario, with one seed.

    `submit` begins a trial; its future raises `BrokenExecutor` if a worker ended by itself. `ahead` is how many trials
    may be begun before the first of them is over.
    """

    ahead: int
    submit: Callable[[Plan], Future[Trial]]


@contextmanager
def workers_for(scenario: Scenario, seed: int, count: int) -> Iterator[Workers]:
    """`count` processes, ended at the end of the block.

    One alone is this process itself: each of its trials is over when `submit` returns, and nothing else of the process
    may run meanwhile. With more, this process runs none.
    """
    if count == 1:
        yield Workers(1, lambda plan: _tried_here(scenario, plan, seed))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker) as pool:
        try:
            yield Workers(count * AHEAD, lambda plan: pool.submit(try_plan, scenario, plan, seed))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _tried_here(scenario: Scenario, plan: Plan, seed: int) -> Future[Trial]:
    tried: Future[Trial] = Future()
    tried.set_result(try_plan(scenario, plan, seed))
    return tried


_for_good = ExitStack()
"""What holds until the worker ends."""


def _begin_worker() -> None:
    """A worker finishes its trial; the process that asked for it decides when to stop. It does nothing but trials."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _for_good.enter_context(machine_replaced())


def _end_with_the_parent() -> None:
    """A parent that was killed can't end its workers, and they would wait for their next trial for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # The trial that runs has no time left to do it.
        remove_folder()
        os._exit(1)
