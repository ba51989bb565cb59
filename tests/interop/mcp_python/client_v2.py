"""The second line of the official client: both wires."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.interop.mcp_python.asked import Asked, Step, Told, error_of, read, take, tell

# "auto" asks server/discover first, and takes the wire of 2026 where it is answered.
MODES = {"2025": "legacy", "2026": "auto"}


async def run(asked: Asked, told: Told) -> None:
    async with (
        httpx2.AsyncClient(headers=dict(asked.headers), timeout=httpx2.Timeout(30, read=300)) as http,
        Client(
            streamable_http_client(asked.url, http_client=http),
            mode=MODES[asked.era],
        ) as client,
    ):
        told.version = str(client.session.protocol_version)

        async def step(one: Step) -> Mapping[str, object]:
            if one.do == "list":
                return {"tools": [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]}
            told_before: list[float] = []

            async def hear(done: float, total: float | None, message: str | None) -> None:
                told_before.append(done)

            result = await client.call_tool(one.tool, dict(one.arguments), asked.seconds, hear)
            return {
                "content": [block.model_dump(mode="json", exclude_none=True) for block in result.content],
                "structured": result.structured_content,
                "isError": result.is_error,
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
