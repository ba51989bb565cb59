"""A port for a program that cannot choose one itself."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A loopback port that nobody listens on now. Another program may take it before it is used."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
