"""Addresses as text: `host:port`, an IPv6 host in brackets."""

from __future__ import annotations

import ipaddress
import re

Address = tuple[str, int]

LOOPBACK = "127.0.0.1"
ANY_PORT = f"{LOOPBACK}:0"
"""Any free port, for this machine only."""
LARGEST_PORT = 65_535

# No more digits than a port has: Python does not read a number of thousands of them.
_PORT = re.compile("0*([0-9]{1,5})")


class BadAddress(ValueError):
    """A text that names no address to listen on; the message says why."""


def to_text(address: Address) -> str:
    """`host:port`."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def from_text(text: str) -> Address | None:
    """The host, which may be a name or empty, and the port; None for a text that is not of this form."""
    host, colon, digits = text.rpartition(":")
    found = _PORT.fullmatch(digits)
    if not colon or found is None or (port := int(found[1])) > LARGEST_PORT:
        return None
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], port
    return None if ":" in host else (host, port)


def is_loopback(host: str) -> bool:
    """Whether a host means this machine and nobody else can reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def to_listen_on(text: str, *, loopback_only: bool) -> Address:
    """The numeric address that a text names. `localhost` is 127.0.0.1, and so is no host where only loopback is
    allowed. Raises `BadAddress`."""
    address = from_text(text)
    if address is None:
        raise BadAddress("it is not of the form host:port")
    host, port = address
    if host in ("", "localhost"):
        return (LOOPBACK if host or loopback_only else "0.0.0.0", port)  # noqa: S104  what no host means
    try:
        number = ipaddress.ip_address(host)
    except ValueError as error:
        raise BadAddress("its host is neither an IP address nor localhost") from error
    if loopback_only and not number.is_loopback:
        raise BadAddress("only loopback addresses may be listened on")
    return str(number), port
