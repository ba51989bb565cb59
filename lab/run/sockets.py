"""What a scenario can expect of a local agent's connections, from the journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lab.journal.events import Frame, SessionChanged, SocketClosed, SocketOpened
from lab.journal.writer import Entry


@dataclass
class SocketView:
    """The connections of one local agent, as its gateways saw them."""

    opened: int = 0
    closes: list[str] = field(default_factory=list)
    """Close codes in order; a connection that was cut has none."""
    errors: list[str] = field(default_factory=list)
    """Wire codes of the error frames that the agent sent."""
    refusals: list[str] = field(default_factory=list)
    """Wire codes of the error frames that its gateways sent it."""
    fallbacks: int = 0
    """Connections that went on in v1."""


def sockets_of(entries: Iterable[Entry]) -> Mapping[str, SocketView]:
    """The view of each local agent that connected, by its name."""
    views: dict[str, SocketView] = {}
    agents: dict[str, str] = {}
    for entry in entries:
        event = entry.event
        match event:
            case SocketOpened():
                agents[event.conn] = event.agent
                views.setdefault(event.agent, SocketView()).opened += 1
            case SocketClosed() if event.code is not None and event.conn in agents:
                views[agents[event.conn]].closes.append(str(event.code))
            case Frame(type="error", fate="passed") if event.conn in agents:
                view = views[agents[event.conn]]
                codes = view.errors if event.direction == "la-to-cp" else view.refusals
                codes.append(str(event.payload.get("code")))
            case SessionChanged(state="v1") if event.agent in views:
                views[event.agent].fallbacks += 1
            case _:
                pass
    return views
