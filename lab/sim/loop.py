"""asyncio's selector loop on the simulated kernel: everything above the sockets is asyncio's own."""

from __future__ import annotations

import asyncio
import heapq
import signal
import socket
from asyncio import events, selector_events
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from lab.sim.guards import Limits
from lab.sim.hosts import HOST, Host, HostState
from lab.sim.kernel import Kernel
from lab.sim.selector import SimSelector
from lab.sim.sockets import LOOPBACK
from lab.sim.waiting import what_tasks_wait_for

RESOLUTION = 1e-6
"""Seconds below which two moments are one, as with asyncio's own clock."""


class SimFuture(asyncio.Future[Any]):
    """A future that sets sort by its number, not by its place in memory."""

    def __init__(self, *, loop: SimLoop) -> None:
        super().__init__(loop=loop)
        self._number = loop.number()

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class SimTask(asyncio.Task[Any]):
    """A task that sets sort by its number, not by its place in memory."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: SimLoop, **settings: Any) -> None:
        self._number = loop.number()
        given: Context | None = settings.pop("context", None)
        self.context = copy_context() if given is None else given
        self.host: Host | None = self.context.get(HOST)
        super().__init__(coro, loop=loop, context=self.context, **settings)

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class _Handle(events.Handle):
    """A callback that waits while its host stands still, and is dropped once it has crashed."""

    __slots__ = ()

    def _run(self) -> None:
        if self._cancelled:
            return
        host: Host | None = self._context.get(HOST)  # type: ignore[attr-defined]
        # Asked again when the host has gone on: it may have been stopped or have crashed once more by then.
        if host is None or host.admits(self._run):
            super()._run()


class _TimerHandle(_Handle, events.TimerHandle):
    """The same for a timer. Those of one moment run in the order in which they were set.

    asyncio's own leave that order to its heap.
    """

    __slots__ = ("_number",)

    def __init__(self, when: float, callback: Any, args: Any, loop: SimLoop, context: Context | None = None) -> None:
        events.TimerHandle.__init__(self, when, callback, args, loop, context)
        self._number = loop.number()

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, _TimerHandle)
        return (self._when, self._number) < (other._when, other._number)  # type: ignore[attr-defined]


class SimLoop(selector_events.BaseSelectorEventLoop):
    """A loop whose time is the kernel's. It has no self-pipe: nothing but its own turns can wake it."""

    if TYPE_CHECKING:
        _ready: deque[asyncio.Handle]
        _scheduled: list[asyncio.TimerHandle]
        _internal_fds: int
        _transports: Mapping[int, asyncio.BaseTransport]

    def __init__(self, kernel: Kernel, limits: Limits) -> None:
        self._numbers = 0
        self._signals: deque[events.Handle] = deque()
        self._former_signals: dict[int, Any] = {}
        self._buried: list[SimTask] = []
        self._burying = False
        self.kernel = kernel
        self.selector = SimSelector(kernel, limits, lambda: what_tasks_wait_for(self))
        self.selector.interrupted = lambda: bool(self._signals)
        super().__init__(self.selector)
        self._clock_resolution = RESOLUTION
        self.set_task_factory(self._make_task)

    def number(self) -> int:
        """The next number for a future or a task."""
        self._numbers += 1
        return self._numbers

    def time(self) -> float:
        """Simulated seconds since the kernel began."""
        return self.kernel.now

    # What a loop makes

    def create_future(self) -> asyncio.Future[Any]:
        """A future."""
        return SimFuture(loop=self)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **settings: Any) -> SimTask:
        assert loop is self
        task = SimTask(coro, loop=self, **settings)
        if task.host is not None and task.host.state is HostState.CRASHED:
            self._to_bury(task)
        return task

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio's, for a timer that belongs to its host."""
        if self.is_closed():
            raise RuntimeError("the loop is closed")
        timer = _TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    # Hosts

    def crash(self, host: Host) -> None:
        """A host dies as by SIGKILL: nothing of it runs any more, not even a `finally`, and its sockets are closed."""
        host.crash()
        for task in asyncio.all_tasks(self):
            if isinstance(task, SimTask) and task.host is host:
                self._to_bury(task)
        for sim_socket in self.kernel.sockets_of(host):
            transport = self._transports.get(sim_socket.fileno())
            if transport is not None:
                # The kernel closes it; its transport, which nobody is left to close, is not to complain of that.
                transport._sock = None  # type: ignore[attr-defined]
            sim_socket.close()

    def _to_bury(self, task: SimTask) -> None:
        # Kept, or Python would run its `finally` blocks when it lets go of it.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._buried.append(task)

    def bury(self) -> None:
        """Let go of what crashed hosts had: their `finally` blocks run now, where they reach nothing any more.

        What these ask for belongs to the dead host as well, so it never runs.
        """
        if self._buried:
            # What a library says of things that nobody closed is the crash's doing.
            self.set_exception_handler(lambda *_: None)
        self._burying = True
        for task in self._buried:  # which grows by the tasks that are made meanwhile
            with suppress(BaseException):
                task.context.run(task.get_coro().close)
        self._burying = False

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        # Those of a host end with its tasks, or crash with it.
        if HOST.get() is None:
            super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self._burying:
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    @property
    def crashed_any(self) -> bool:
        """Whether a host of the run has crashed."""
        return bool(self._buried)

    def resume(self, host: Host) -> None:
        """A host that was paused goes on with what came due meanwhile."""
        for run in host.resume():
            self.call_soon(run)

    def resume_all(self) -> None:
        """Let every host go on that still stands: its tasks could not be ended otherwise."""
        hosts = [task.host for task in self.living_tasks() if isinstance(task, SimTask)]
        for host in dict.fromkeys(hosts):
            if host is not None:
                self.resume(host)

    def living_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that are not over, without those of hosts that crashed, oldest first."""
        return sorted((task for task in asyncio.all_tasks(self) if task not in self._buried), key=hash)

    # What would leave the process

    def _make_self_pipe(self) -> None:
        self._internal_fds += 1

    def _close_self_pipe(self) -> None:
        self._internal_fds -= 1

    def _write_to_self(self) -> None:
        pass

    async def getaddrinfo(self, _host: Any, port: Any, **_: int) -> Any:  # type: ignore[override]
        """Every name is this machine."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (LOOPBACK, int(port or 0)))]

    async def getnameinfo(self, sockaddr: Any, _flags: int = 0) -> Any:
        """The numbers themselves."""
        return str(sockaddr[0]), str(sockaddr[1])

    def run_in_executor(  # type: ignore[override]
        self, _executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run it now: there are no threads here."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  it belongs to whoever awaits it
            future.set_exception(error)
        return future

    # Signals, which Python delivers between two instructions of this very thread

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., object], *args: Any
    ) -> None:
        """Call `callback` in the loop once the signal has come."""
        handle = events.Handle(callback, args, self, None)
        former = signal.signal(sig, lambda *_: self._signals.append(handle))
        self._former_signals.setdefault(sig, former)

    def remove_signal_handler(self, sig: int) -> bool:
        """Put back what was there before."""
        if sig not in self._former_signals:
            return False
        signal.signal(sig, self._former_signals.pop(sig))
        return True

    def _process_events(self, event_list: Any) -> None:
        while self._signals:
            self._ready.append(self._signals.popleft())
        super()._process_events(event_list)  # type: ignore[misc]

    def close(self) -> None:
        """Close the loop and give the signals back."""
        for sig in tuple(self._former_signals):
            self.remove_signal_handler(sig)
        super().close()
