"""The client's calls: towards anything that is no Toxiproxy server, or one that fails."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from lab.faults.toxiproxy import ToxiproxyServer
from lab.faults.toxiproxy_calls import ServerLost, ToxiproxyFault, told


@contextmanager
def answering(answer: bytes | None) -> Iterator[tuple[str, int]]:
    """A server that answers every request so, or takes it and says nothing."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    held.append(client)
                    if answer is not None:
                        client.recv(65_536)
                        client.sendall(answer)
                        client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for client in held:
                client.close()


@contextmanager
def trickling(gap: float) -> Iterator[tuple[str, int]]:
    """A server whose answer has a byte more every `gap` seconds."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            with client, suppress(OSError):
                client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
                while not over.wait(gap):
                    client.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            over.set()
            thread.join()


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http("500 No", '{"error":"it broke","status":500}'), "HTTP 500: it broke"),
        (http("302 Found", ""), "HTTP 302: no words"),
        (http("401 No", "who are you"), "HTTP 401: who are you"),
        (http("200 OK", "<html>hello</html>"), "no version, but <html>hello</html>"),
        (http("200 OK", '{"version": 5}'), "no version"),
        (http("200 OK", "[" * 60_000), "no version"),
        (http("500 No", "[" * 60_000), "HTTP 500"),
        (http("404 No", "nothing here"), "lost what the run created: nothing here"),
        (b"SSH-2.0-OpenSSH\r\n", "no Toxiproxy server answers"),
    ],
)
def test_what_is_no_toxiproxy_server(answer: bytes, said: str) -> None:
    with answering(answer) as address, pytest.raises(ToxiproxyFault, match=said):
        ToxiproxyServer(address).version()


@pytest.mark.parametrize("body", ["[]", "null", '{"a": 5}', '{"a": {"name": "a"}}', "no JSON", "[" * 60_000])
def test_a_list_of_proxies_that_is_none(body: str) -> None:
    with answering(http("200 OK", body)) as address, pytest.raises(ToxiproxyFault, match=r"not the one due|gone from"):
        ToxiproxyServer(address).enable("a")


def test_a_server_that_hangs() -> None:
    with answering(None) as address, pytest.raises(ToxiproxyFault, match=r"did not answer within 0\.2 s"):
        ToxiproxyServer(address, seconds=0.2).version()


@pytest.mark.parametrize("head", ["Content-Length: 9000000", "Connection: close", "Transfer-Encoding: chunked"])
def test_an_answer_that_is_too_long_is_not_read_to_its_end(head: str) -> None:
    body = b"x" * 9_000_000
    if head.startswith("Transfer"):
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body
    with answering(answer) as address, pytest.raises(ToxiproxyFault, match="an answer of more than 8 MiB"):
        ToxiproxyServer(address).version()


def test_a_packed_answer_is_bounded_as_it_is_unpacked() -> None:
    body = gzip.compress(b"x" * 9_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with answering(head.encode() + body) as address, pytest.raises(ToxiproxyFault, match="more than 8 MiB"):
        ToxiproxyServer(address).version()


def test_a_chunked_answer() -> None:
    """As the Go server sends what is longer than its buffer."""
    body = b'9\r\n{"version\r\nb\r\n": "2.12.0"\r\n1\r\n}\r\n0\r\n\r\n'
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    with answering(answer) as address:
        assert ToxiproxyServer(address).version() == "2.12.0"


def test_an_answer_that_breaks_off() -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"version": "2'
    with answering(answer) as address, pytest.raises(ServerLost, match="no Toxiproxy server answers"):
        ToxiproxyServer(address).version()


@pytest.mark.parametrize("gap", [0.05, 30.0])
def test_an_answer_that_does_not_come_to_its_end(gap: float) -> None:
    """Piece by piece for ever, or not at all after its head."""
    with trickling(gap) as address, pytest.raises(ServerLost, match=r"hangs: it did not answer within 0\.3 s"):
        ToxiproxyServer(address, seconds=0.3).version()


def test_no_proxy_stands_between_it_and_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client obeys HTTP_PROXY, where nobody is."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with answering(http("200 OK", '{"version": "2.12.0"}')) as address:
        assert ToxiproxyServer(address).version() == "2.12.0"


def test_old_servers_say_their_version_in_plain_text() -> None:
    with answering(http("200 OK", "2.1.4")) as address:
        assert ToxiproxyServer(address).version() == "2.1.4"


def test_what_was_told_is_safe_to_show() -> None:
    assert told(b"a\x1b[31m\n  b") == "a?[31m b"
    assert told(b"x" * 5000) == "x" * 200
    assert told(b"") == "no words"
