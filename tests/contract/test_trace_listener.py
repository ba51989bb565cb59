"""The door for somebody's Local Agent."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from lab.contract.trace_grades import Closing
from lab.contract.trace_line import Unreachable
from lab.contract.trace_listener import AgentListener
from lab.errors import EnvironmentFault

PATIENCE = 10.0
TOKEN = {"Authorization": "Bearer the-token"}


@pytest.mark.req("HS-002")
async def test_nobody_comes_in_without_the_credential() -> None:
    listener = AgentListener("the-token", PATIENCE, connects=0.05)
    await listener.start()
    try:
        for headers in ({}, {"Authorization": "Bearer another"}):
            with pytest.raises(InvalidStatus) as refused:
                await connect(listener.url, additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 401
        with pytest.raises(Unreachable, match="no agent connected within"):
            await listener.open()
    finally:
        await listener.close()
        await listener.close()


async def test_an_agent_that_has_gone_again_is_passed_over() -> None:
    listener = AgentListener("the-token", PATIENCE)
    await listener.start()
    try:
        async with connect(listener.url, additional_headers=TOKEN, proxy=None):
            first = await listener.open()
        assert await first.receive(PATIENCE) == Closing(1000, "peer", clean=True)
        async with connect(listener.url, additional_headers=TOKEN, proxy=None) as gone:
            await gone.close()
        async with connect(listener.url, additional_headers=TOKEN, proxy=None) as second:
            line = await listener.open()
            await second.send("hello")
            assert await line.receive(PATIENCE) == "hello"
            assert await line.receive(0.01) is None
            line.cut()
            assert await line.receive(PATIENCE) == Closing(None, "nobody", clean=False)
            await line.send("to nobody")
    finally:
        await listener.close()


async def test_a_port_that_is_taken_is_named() -> None:
    listener = AgentListener("the-token", PATIENCE)
    with pytest.raises(EnvironmentFault, match="not started"):
        assert listener.url
    await listener.start()
    port = int(listener.url.rsplit(":", 1)[1].split("/")[0])
    try:
        with pytest.raises(EnvironmentFault, match="--listen"):
            await AgentListener("the-token", PATIENCE, port).start()
    finally:
        await listener.close()
