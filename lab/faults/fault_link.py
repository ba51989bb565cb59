"""What a scenario does to a link, whichever engine carries it: the lab's own, or a Toxiproxy server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lab.errors import MisuseError
from lab.faults.connection import Direction, LinkConnectionState
from lab.faults.specs import ToxicSpec


class FaultLink(Protocol):
    """A link that can be broken and mended.

    Changes take effect in the order in which they are made; `settled` returns once those made so far have. One that
    fails after its call has returned ends the run.
    """

    @property
    def name(self) -> str:
        """What the scenario calls it."""

    @property
    def delay(self) -> float:
        """What it adds to each direction now, in seconds."""

    @property
    def address(self) -> tuple[str, int]:
        """Where clients connect to. Valid after `start`, the same until `close`."""

    async def start(self) -> None:
        """Listen. Raises `EnvironmentFault` where that cannot be."""

    def cut(self) -> None:
        """FIN to both sides of every connection, and connects are refused until `heal`."""

    def heal(self) -> None:
        """Accept connects again, and add no delay. Raises `EnvironmentFault` where that cannot be and is known now."""

    def set_delay(self, seconds: float, touched: Callable[[], None] | None = None) -> None:
        """Hold bytes back for so long, each way; 0 ends it. `touched` is called when it holds something back."""

    def add_toxic(self, spec: ToxicSpec, touched: Callable[[], None] | None = None) -> object:
        """Put a toxic behind those of its stream. It has a name that no other toxic of the link has.

        `touched` is called when it touches a byte or a connection; by a link whose server does not tell, once the
        toxic stands.
        """

    def remove_toxic(self, name: str) -> None:
        """Take a toxic out."""

    async def settled(self) -> None:
        """Returns once all changes that were made have taken effect."""

    async def close(self) -> None:
        """End it and its connections. Safe to call again, and before `start`."""


class EmbeddedLink(FaultLink, Protocol):
    """A link of the lab's own engine, which sees each connection and counts its bytes."""

    def reset(self) -> None:
        """RST on both sides of every live connection."""

    def move(self, upstream: tuple[str, int]) -> None:
        """FIN to both sides of every connection, and new ones are led to `upstream`."""

    def connections(self) -> list[LinkConnectionState]:
        """The live connections, oldest first."""

    def cut_at(self, upstream_side_port: int, direction: Direction, offset: int, then: Callable[[], None]) -> None:
        """Call `then` right behind the byte `offset` of one direction of the connection from that port."""


def is_embedded(link: FaultLink) -> bool:
    """Whether the lab's own engine carries the link."""
    return hasattr(link, "cut_at")


def embedded(link: FaultLink) -> EmbeddedLink:
    """The link, with what the lab's own engine alone can do. Raises `MisuseError` for another engine's."""
    if not is_embedded(link):
        raise MisuseError(f"link {link.name} is on a Toxiproxy server, which cannot do this")
    return link  # type: ignore[return-value]  # told by its methods
