"""What is asked of a fault proxy: proxies and toxics as their users write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Stream = Literal["upstream", "downstream"]
"""`upstream` runs from the client to the upstream, `downstream` back."""

STREAMS: tuple[Stream, ...] = ("upstream", "downstream")
"""In the order in which toxics are listed."""


@dataclass(frozen=True)
class ProxySpec:
    """A proxy that is wanted. `listen` and `upstream` are `host:port`; port 0 of `listen` takes any free one."""

    name: str
    listen: str
    upstream: str
    enabled: bool = True


@dataclass(frozen=True)
class ToxicSpec:
    """A toxic that is wanted, as its user wrote it.

    Without a `name` it is called `type_stream`. `attributes` are JSON values; names match without regard to case,
    unknown ones and null count as not given. `toxicity` is the chance with which a connection meets it.
    """

    type: str
    name: str | None = None
    stream: str = "downstream"
    toxicity: float = 1.0
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Toxic:
    """A toxic as it stands in its proxy now. `attributes` holds every one of its kind, in order."""

    name: str
    type: str
    stream: Stream
    toxicity: float
    attributes: Mapping[str, int | float | bool]


@dataclass(frozen=True)
class ProxyConnection:
    """A live connection through a proxy, and the toxics that touch it: those whose toxicity struck it.

    `upstream_local` is the proxy's own address on the upstream side, None until that side is connected. Bytes sent
    are bytes forwarded; bytes held were read and are still in the proxy.
    """

    id: str
    client: tuple[str, int]
    upstream_local: tuple[str, int] | None
    toxics: tuple[str, ...]
    upstream_sent: int
    downstream_sent: int
    upstream_held: int
    downstream_held: int


@dataclass(frozen=True)
class Traffic:
    """Bytes of one stream over a proxy's whole life: read from its source, and sent on."""

    received: int
    sent: int
