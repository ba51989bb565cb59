"""The event stream of the partner API model against two clients of server-sent events that nobody here wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lab.journal.partner_events import PartnerDelivery
from tests.interop.environments import MCP_TS, node, python, run
from tests.interop.partner_api.relay import Relay, relaying
from tests.partner.model.calls import actor
from tests.partner.model.played import FIXTURES, Play, Told, playing

FOLLOWERS = ("httpx-sse", "eventsource")
CUT_AFTER = 3

pytestmark = [pytest.mark.timeout(120), pytest.mark.parametrize("follower", FOLLOWERS)]


def command(follower: str) -> tuple[str | Path, ...]:
    """What starts a follower; the test ends here where it is not installed."""
    if follower == "eventsource":
        return node(), MCP_TS / "src" / "follow.js"
    return python("mcp1"), "-m", "tests.interop.partner_api.follow_httpx"


async def follow(follower: str, play: Play, relay: Relay, run_id: str) -> list[Mapping[str, Any]]:
    """All that a follower hears of a run, by way of the relay."""
    path = play.api.base.removeprefix(play.api.server.url)
    asked = {
        "url": f"{relay.url}{path}{play.path}/runs/{run_id}/events?{urlencode(actor())}",
        "headers": {"Authorization": f"Bearer {play.api.server.keys.chat}"},
    }
    done = await run(*command(follower), given=json.dumps(asked))
    assert done.status == 0, done.err
    heard: list[Mapping[str, Any]] = json.loads(done.out)
    return heard


def plain(events: list[Told]) -> list[Mapping[str, Any]]:
    """Events as a follower tells them."""
    return [{"id": event.id, "name": event.name, "data": event.data} for event in events]


@pytest.mark.req("SSE-002", "SSE-003", "SSE-004", "SSE-024", "SSE-025", "SSE-039", "SSE-056")
async def test_a_follower_hears_the_whole_stream_and_no_keep_alives(follower: str, tmp_path: Path) -> None:
    command(follower)
    async with (
        playing(tmp_path, FIXTURES / "product-9001.yaml", keep_alive_seconds=0.05) as play,
        relaying(play.api.server.url) as relay,
    ):
        play.api.server.controls.hold_queue(True)
        run_id = await play.accepted()
        following = asyncio.ensure_future(follow(follower, play, relay, run_id))
        await relay.until_comments(3)
        play.api.server.controls.hold_queue(False)
        heard = await following
        assert heard == plain(await play.events(run_id))
        assert [one["id"] for one in heard] == [f"{run_id}:{number}" for number in range(1, len(heard) + 1)]
        assert {one["name"] for one in heard} == {"turn", "text", "tool_call", "tool_result", "done", "run_status"}
        assert all(one["name"] == one["data"]["type"] for one in heard)
        ended = await play.run(run_id)
        assert all(ended[name] == heard[-1]["data"][name] for name in ("status", "toolErrors", "timings", "usage"))
        assert relay.connections == 1


@pytest.mark.req("SSE-005")
async def test_a_follower_comes_back_after_a_cut_and_loses_nothing(follower: str, tmp_path: Path) -> None:
    command(follower)
    async with (
        playing(tmp_path, FIXTURES / "product-9001.yaml") as play,
        relaying(play.api.server.url) as relay,
    ):
        run_id = await play.accepted()
        relay.cut_after = CUT_AFTER
        heard = await follow(follower, play, relay, run_id)
        opened = [seen.last_event_id for seen in play.seen(PartnerDelivery) if seen.change == "opened"]
        assert opened == [None, f"{run_id}:{CUT_AFTER}"]
        assert heard == plain(await play.events(run_id))


@pytest.mark.req("SSE-017", "SSE-036")
async def test_a_follower_tells_an_error_event_from_a_lost_connection(follower: str, tmp_path: Path) -> None:
    command(follower)
    async with (
        playing(tmp_path, FIXTURES / "exception.yaml", agent="agent-plain") as play,
        relaying(play.api.server.url) as relay,
    ):
        run_id = await play.accepted()
        relay.cut_after = 1
        heard = await follow(follower, play, relay, run_id)
        assert relay.connections == 2
        assert heard == plain(await play.events(run_id))
        assert heard[-1]["data"] == {"type": "error", "code": "CHAT_EXECUTION_FAILED"}
