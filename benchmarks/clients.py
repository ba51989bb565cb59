"""The clients that load a server, each in a process of its own.

    python -m benchmarks.clients frames|events|beats|followers < ORDER

ORDER is one line of JSON on standard input, each answer one line of JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect

from benchmarks.follower_load import followers
from benchmarks.frames import HandMade
from benchmarks.raw_http import without_chunks
from benchmarks.servers import raise_file_limit

WINDOW = 8
"""Frames without an answer, as many as a Local Agent may have."""

CONNECT_AT_ONCE = 20

Json = Mapping[str, Any]


async def _open(url: str, token: str) -> ClientConnection:
    headers = {"Authorization": f"Bearer {token}"}
    return await connect(
        url,
        additional_headers=headers,
        compression=None,
        ping_interval=None,
        proxy=None,
        open_timeout=60,
        close_timeout=2,
    )


async def _handshake(websocket: ClientConnection, hand: HandMade) -> None:
    await websocket.send(hand.register())
    await websocket.send(hand.hello())
    ready = json.loads(await websocket.recv())
    if ready["type"] != "ready":
        raise RuntimeError(f"{ready['type']} where ready was due")


async def _exchange(websocket: ClientConnection, frames: Sequence[str]) -> list[str | bytes]:
    """Send all frames with a window, as an agent does; every frame has one answer."""
    answers: list[str | bytes] = []
    sent = 0
    while len(answers) < len(frames):
        while sent < len(frames) and sent - len(answers) < WINDOW:
            await websocket.send(frames[sent])
            sent += 1
        answers.append(await websocket.recv())
    return answers


def _check(frames: Sequence[str], answers: Sequence[str | bytes], is_gateway: bool) -> None:
    for frame, answer in zip(frames, answers, strict=True):
        if not is_gateway:
            if answer != frame:
                raise RuntimeError("an echo that differs")
            continue
        ack, sent = json.loads(answer), json.loads(frame)
        if (ack["type"], ack["payload"].get("status"), ack["payload"].get("ackMsgId")) != (
            "ack",
            "accepted",
            sent["msgId"],
        ):
            raise RuntimeError(f"{ack['type']} where an accepted ack was due")


async def frames(order: Json) -> Json:
    """Data frames of about 1 KB over each agent's connection, one agent after the other; the seconds they took.

    With `tenant` the server is a gateway, without it an echo. `stay` keeps the connections open until the input
    ends, so that the server's memory can be read.
    """
    is_gateway = "tenant" in order
    opened: list[ClientConnection] = []
    seconds = 0.0
    size = 0
    for agent in order["agents"]:
        hand = HandMade(order.get("tenant", ""), agent["id"])
        websocket = await _open(order["url"], agent["token"])
        opened.append(websocket)
        if is_gateway:
            await _handshake(websocket, hand)
        texts = [hand.content() for _ in range(order["frames"])]
        size = len(texts[0])
        started = time.perf_counter()
        answers = await _exchange(websocket, texts)
        seconds += time.perf_counter() - started
        _check(texts, answers, is_gateway)
    if order.get("stay", False):
        _tell({"stays": len(opened)})
        sys.stdin.read()
    for websocket in opened:
        await websocket.close()
    return {"seconds": seconds, "bytes": size}


async def beats(order: Json) -> Json:
    """All agents connected at once, each with a heartbeat every `every` seconds, for `seconds`."""
    room = asyncio.Semaphore(CONNECT_AT_ONCE)
    tenant, agents = order["tenant"], order["agents"]

    async def join(agent: Json) -> tuple[ClientConnection, HandMade]:
        async with room:
            websocket, hand = await _open(order["url"], agent["token"]), HandMade(tenant, agent["id"])
            await _handshake(websocket, hand)
            return websocket, hand

    began = time.perf_counter()
    joined = await asyncio.gather(*(join(agent) for agent in agents))
    connecting = time.perf_counter() - began
    answered: list[float] = []

    async def beat(place: int, websocket: ClientConnection, hand: HandMade) -> None:
        # Spread over the interval, as agents that started at different times are.
        await asyncio.sleep(order["every"] * place / len(joined))
        while time.perf_counter() < until:
            sent = time.perf_counter()
            await websocket.send(hand.heartbeat())
            await websocket.recv()
            answered.append(time.perf_counter() - sent)
            await asyncio.sleep(max(0.0, order["every"] - answered[-1]))

    _tell({"connected": len(joined), "connecting": connecting})
    until = time.perf_counter() + order["seconds"]
    await asyncio.gather(*(beat(place, *one) for place, one in enumerate(joined)))
    await asyncio.gather(*(websocket.close() for websocket, _ in joined))
    answered.sort()
    return {"beats": len(answered), "p99": answered[len(answered) * 99 // 100], "slowest": answered[-1]}


async def events(order: Json) -> Json:
    """A whole event stream: the seconds from the job's start, and the digest of what came."""
    url = urlsplit(order["url"])
    address, bearer = (str(url.hostname), int(url.port or 0)), f"Authorization: Bearer {order.get('token', '')}\r\n"
    started = time.perf_counter()
    if "start" in order:
        body = json.dumps({"jobId": order["start"], "kind": "chat", "requestText": "why"})
        head = f"POST /local/v1/jobs HTTP/1.1\r\nHost: bench\r\n{bearer}Content-Length: {len(body)}\r\n"
        if b" 202 " not in _call(address, f"{head}Connection: close\r\n\r\n{body}").split(b"\r\n")[0]:
            raise RuntimeError("the job was not accepted")
    answer = _call(address, f"GET {order['path']} HTTP/1.1\r\nHost: bench\r\n{bearer}Connection: close\r\n\r\n")
    seconds = time.perf_counter() - started
    content = without_chunks(answer.partition(b"\r\n\r\n")[2])
    return {"seconds": seconds, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _call(address: tuple[str, int], request: str) -> bytes:
    """The whole answer of one HTTP request; nothing is parsed, so that the client is never what is slow."""
    parts = []
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request.encode())
        while part := connection.recv(1 << 18):
            parts.append(part)
    return b"".join(parts)


def _tell(answer: Json) -> None:
    print(json.dumps(answer), flush=True)


KINDS: Mapping[str, Callable[[Json], Any]] = {
    "frames": frames,
    "events": events,
    "beats": beats,
    "followers": followers,
}

if __name__ == "__main__":
    raise_file_limit()
    _tell(asyncio.run(KINDS[sys.argv[1]](json.loads(sys.stdin.readline()))))
