"""Addresses as text."""

from __future__ import annotations

import pytest

from lab.faults.address import Address, BadAddress, from_text, is_loopback, to_listen_on, to_text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("db.example:5432", ("db.example", 5432)),
        (":80", ("", 80)),
        ("host:0", ("host", 0)),
        ("host", None),
        ("host:", None),
        ("host:http", None),
        ("host:-1", None),
        ("host:65536", None),
        pytest.param("host:" + "9" * 5000, None, id="thousands of digits"),
        ("host:٣", None),
        ("::1:80", None),
        ("", None),
    ],
)
def test_a_text_is_a_host_and_a_port_or_nothing(text: str, address: Address | None) -> None:
    assert from_text(text) == address
    if address is not None:
        assert to_text(address) == text


@pytest.mark.parametrize("zeros", [1, 5000])
def test_zeros_before_a_port_say_nothing(zeros: int) -> None:
    """As in Go."""
    assert from_text(f"host:{'0' * zeros}80") == ("host", 80)
    assert from_text(f"host:{'0' * zeros}") == ("host", 0)


@pytest.mark.parametrize(
    ("text", "loopback_only", "address"),
    [
        ("127.0.0.1:80", True, ("127.0.0.1", 80)),
        ("127.9.9.9:0", True, ("127.9.9.9", 0)),
        ("localhost:80", True, ("127.0.0.1", 80)),
        ("localhost:80", False, ("127.0.0.1", 80)),
        ("[::1]:80", True, ("::1", 80)),
        (":80", True, ("127.0.0.1", 80)),
        (":80", False, ("0.0.0.0", 80)),
        ("0.0.0.0:80", False, ("0.0.0.0", 80)),
    ],
)
def test_what_can_be_listened_on(text: str, loopback_only: bool, address: Address) -> None:
    assert to_listen_on(text, loopback_only=loopback_only) == address


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "form host:port"),
        ("example.com:80", "neither an IP address nor localhost"),
        ("0.0.0.0:80", "only loopback"),
        ("10.0.0.1:80", "only loopback"),
    ],
)
def test_what_cannot(text: str, reason: str) -> None:
    with pytest.raises(BadAddress, match=reason):
        to_listen_on(text, loopback_only=True)


@pytest.mark.parametrize(
    ("host", "due"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("example.com", False), ("10.0.0.1", False)],
)  # fmt: skip
def test_what_is_loopback(host: str, due: bool) -> None:
    """Names other than localhost may lead anywhere."""
    assert is_loopback(host) is due
