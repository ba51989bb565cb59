"""What a fault proxy refuses, and why.

ProxyExists       the name is taken
ProxyNotFound     no proxy of that name
ToxicExists       the name is taken in its proxy, whichever stream
ToxicNotFound     no toxic of that name in that proxy
TooManyToxics     the proxy has as many as it may
BadToxic          a type, a stream or an attribute that cannot be
ListenFailed      the address cannot be listened on
PopulateFailed    one of several proxies failed; those before it stand
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lab.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from lab.faults.proxy import Proxy


class ProxyExists(UsageError):
    """A proxy of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a proxy named {name!r} exists already; delete it, or give this one another name")
        self.name = name


class ProxyNotFound(UsageError):
    """No proxy has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no proxy is named {name!r}; create it first")
        self.name = name


class ToxicExists(UsageError):
    """The proxy has a toxic of that name, in one of its streams."""

    def __init__(self, proxy: str, name: str) -> None:
        super().__init__(
            f"proxy {proxy!r} has a toxic named {name!r} already; remove it, or give this one another name"
        )
        self.name = name


class ToxicNotFound(UsageError):
    """The proxy has no toxic of that name."""

    def __init__(self, proxy: str, name: str) -> None:
        super().__init__(f"proxy {proxy!r} has no toxic named {name!r}; add it first")
        self.name = name


class TooManyToxics(UsageError):
    """The proxy has `most` toxics, which is as many as it may."""

    def __init__(self, proxy: str, most: int) -> None:
        super().__init__(f"proxy {proxy!r} has {most} toxics, and may have no more; remove one first")


class BadToxic(UsageError):
    """A toxic that cannot be. `what` says which part is wrong; for attributes, `attribute` names the one."""

    def __init__(self, what: Literal["type", "stream", "attributes"], sentence: str, attribute: str = "") -> None:
        super().__init__(sentence)
        self.what = what
        self.attribute = attribute


class ListenFailed(EnvironmentFault):
    """The proxy cannot listen on `listen`, for `reason`; what stood before still stands."""

    def __init__(self, proxy: str, listen: str, reason: str) -> None:
        super().__init__(
            f"proxy {proxy!r} cannot listen on {listen}: {reason}. "
            "Give it another address, such as 127.0.0.1:0 for any free port, or stop the program that has this one."
        )
        self.listen = listen
        self.reason = reason


class PopulateFailed(EnvironmentFault):
    """A proxy of a list failed, for `cause`; `done` are those before it, which stand as asked."""

    def __init__(self, done: tuple[Proxy, ...], cause: ListenFailed) -> None:
        super().__init__(str(cause))
        self.done = done
        self.cause = cause
