"""What the agents leave when they have ended: connections that they still hold, and files on their disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from lab.context import RunContext
from lab.faults.fault_link import EmbeddedLink
from lab.journal.events import ConnectionLeft
from lab.run.suts import AttachedSut, Sut
from lab.tap.state import StateTap

LETTING_GO_SECONDS = 1.0
"""What the end of a connection may take to be seen, once the agent that held it has ended."""

POLL_SECONDS = 0.01


async def look_back(
    ctx: RunContext, suts: Iterable[Sut], links: Iterable[EmbeddedLink], canaries: Mapping[str, str]
) -> None:
    """Write into the journal what agents that have been ended left; the doubles and links still stand.

    An attached agent is not the lab's to end, so its connections are not looked at, nor is its disk.
    """
    ended, all_links = tuple(suts), tuple(links)
    if not any(isinstance(sut, AttachedSut) for sut in ended):
        await _note_connections(ctx, all_links)
    for sut in ended:
        if sut.state is not None:
            for file in StateTap(sut.name, canaries).look(sut.state):
                ctx.journal.record("sut", file)


async def _note_connections(ctx: RunContext, links: tuple[EmbeddedLink, ...]) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + LETTING_GO_SECONDS
    while (held := _held(links)) and loop.time() < until:  # noqa: ASYNC110 (a client's FIN has no event)
        await asyncio.sleep(POLL_SECONDS)
    for link, conn in held:
        ctx.journal.record("run", ConnectionLeft(link, conn, LETTING_GO_SECONDS))


def _held(links: tuple[EmbeddedLink, ...]) -> list[tuple[str, str]]:
    return [(link.name, state.id) for link in links for state in link.connections() if not state.client_ended]
