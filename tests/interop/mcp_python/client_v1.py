"""The first line of the official client: the wire of 2025."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from tests.interop.mcp_python.asked import Asked, Step, Told, error_of, read, take, tell


async def run(asked: Asked, told: Told) -> None:
    async with (
        create_mcp_http_client(headers=dict(asked.headers)) as http,
        streamable_http_client(asked.url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        told.version = str((await session.initialize()).protocolVersion)

        async def step(one: Step) -> Mapping[str, object]:
            if one.do == "list":
                return {"tools": [tool.name for tool in (await session.list_tools()).tools]}
            told_before: list[float] = []

            async def hear(done: float, total: float | None, message: str | None) -> None:
                told_before.append(done)

            limit = timedelta(seconds=asked.seconds)
            result = await session.call_tool(one.tool, dict(one.arguments), limit, hear)
            return {
                "content": [block.model_dump(mode="json", exclude_none=True) for block in result.content],
                "structured": result.structuredContent,
                "isError": result.isError,
                "progress": told_before,
            }

        await take(asked, told, step)


async def main() -> None:
    asked, told = read(), Told()
    try:
        await run(asked, told)
    except Exception as error:  # noqa: BLE001  what a client throws is what is looked at
        told.error = error_of(error)
    tell(told)


if __name__ == "__main__":
    asyncio.run(main())
