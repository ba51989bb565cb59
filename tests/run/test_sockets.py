"""What a journal tells of an agent's connections."""

from __future__ import annotations

from lab.journal.events import SessionChanged, SocketClosed, SocketOpened
from lab.run.sockets import SocketView, sockets_of
from tests.run.made import entries, frame


def test_each_agent_has_its_own_connections() -> None:
    """Closes in order, without those of a cut; errors by who sent them, without those that a fault kept back."""
    journal = entries(
        SocketOpened("c1", "/agent", "one"),
        SocketOpened("c2", "/agent", "two"),
        frame(conn="c1", type="error", payload={"code": "timeout"}),
        frame(conn="c1", type="error", direction="cp-to-la", payload={"code": "clock_skew"}),
        frame(conn="c1", type="error", fate="dropped", payload={"code": "internal"}),
        frame(conn="c1", type="ack"),
        SocketClosed("c1", 4420, "remote"),
        SocketClosed("c2", None, "none"),
        SocketOpened("c3", "/agent", "one"),
        SessionChanged("c3", "v1", "one", None, {}),
        SessionChanged("c3", "ended", "one", None, {}),
        SocketClosed("c3", 1000, "remote"),
        frame(conn="c9", type="error"),
    )
    assert sockets_of(journal) == {
        "one": SocketView(2, ["4420", "1000"], ["timeout"], ["clock_skew"], 1),
        "two": SocketView(1),
    }
