"""A free port can be bound."""

from __future__ import annotations

import socket

from lab.sut.port import free_port


def test_a_free_port_can_be_bound() -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        assert taken.getsockname()[1] == port
