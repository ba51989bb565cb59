from __future__ import annotations

import asyncio
import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import bare_servers
from benchmarks.partner_load import split_events
from benchmarks.raw_http import Answer, Connection, ends, request_of, without_chunks

EVENTS = ["id: 1\nevent: turn\ndata: {}\n\n", "id: 2\nevent: text\ndata: {}\n\n"]


def test_a_request_has_its_length_where_it_has_a_body() -> None:
    assert request_of("GET", "/a", {"X": "y"}) == b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\n"
    assert request_of("POST", "/", {}, b"ab").endswith(b"\r\nContent-Length: 2\r\n\r\nab")


def test_chunks_are_put_together() -> None:
    assert without_chunks(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") == b"abcde"


@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_the_last_chunk_is_seen_however_it_comes(size: int) -> None:
    whole = b"3\r\na\n\n\r\n0\r\n\r\n"
    parts: list[bytes] = []
    for start in range(0, len(whole), size):
        assert not parts or not ends(parts)
        parts.append(whole[start : start + size])
    assert ends(parts)


def test_an_answer_tells_status_and_headers() -> None:
    answer = Answer(b"HTTP/1.1 202 Accepted\r\nA: b\r\nLong-Name:  c ", b"1\r\nx\r\n0\r\n\r\n", True)
    assert (answer.status, answer.header("a"), answer.header("long-name"), answer.header("d")) == (202, "b", "c", None)
    assert answer.content == b"x"


async def test_answers_of_both_kinds_come_over_one_connection(tmp_path: Path) -> None:
    stamps = tmp_path / "stamps.json"
    order = {"accepted": '{"a":1}', "events": EVENTS, "every": 0.0, "stamps": str(stamps)}
    seen: list[bytes] = []

    def talk(url: str) -> tuple[Answer, Answer, Answer]:
        with closing(Connection(url)) as connection:
            message, stream = request_of("POST", "/messages", {}, b"{}"), request_of("GET", "/events", {})
            return connection.ask(message), connection.ask(stream, seen.append), connection.ask(message)

    async with bare_servers.paced(order) as said:
        before = time.perf_counter()
        first, events, again = await asyncio.to_thread(talk, said["url"])
    assert first.status == again.status == 202
    assert first.content == again.content == b'{"a":1}'
    assert split_events(events.content.decode()) == EVENTS
    assert events.body in b"".join(seen)
    marks = json.loads(stamps.read_text("utf-8"))
    assert before < marks[0] < marks[1]


async def test_an_answer_that_ends_early_is_none() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        writer.close()

    def ask(port: int) -> Answer:
        with closing(Connection(f"http://127.0.0.1:{port}")) as connection:
            return connection.ask(request_of("GET", "/", {}))

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as server:
        with pytest.raises(RuntimeError, match="ended early"):
            await asyncio.to_thread(ask, server.sockets[0].getsockname()[1])
