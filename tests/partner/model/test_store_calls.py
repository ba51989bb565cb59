from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lab.journal.partner_events import PartnerTurn, fingerprint
from lab.partner.model.refusals import context_denied
from lab.partner.model.store_calls import CONTEXT_DENIED, told_grant
from tests.partner.model.calls import actor
from tests.partner.model.played import LOOKS, playing, virtually


@pytest.mark.req("PRIV-015")
def test_a_grant_is_told_by_its_fingerprint() -> None:
    assert told_grant("tg1.s3cret") == fingerprint("tg1.s3cret")
    assert told_grant(context_denied()) is None


@pytest.mark.req("MCP-005")
def test_a_destination_that_is_not_mapped_is_reached_nowhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS, destinations={}) as play:
            run, events = await play.played()
            assert (run["status"], run["reason"]) == ("failed", "CHAT_EXECUTION_FAILED")
            assert [event.name for event in events] == ["turn", "error"]
            assert not play.store.seen

    virtually(main)


@pytest.mark.req("PA-021", "MB-037", "CX-026")
@pytest.mark.parametrize("taken", ["binding", "membership", "key", "epoch", "nothing"])
def test_a_call_that_lost_its_session_goes_out_again_only_by_what_still_counts(taken: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS) as play:
            controls = play.api.server.controls
            user = actor()["externalUserId"]
            take: dict[str, Callable[[], object]] = {
                "binding": lambda: controls.revoke_binding(play.conversation),
                "membership": lambda: controls.revoke_identity(user),
                "key": lambda: controls.revoke_key("chat"),
                "epoch": lambda: controls.reset_identity(user),
                "nothing": lambda: None,
            }

            async def lose(request: web.Request, message: Any) -> web.StreamResponse:
                take[taken]()
                return web.Response(status=404)

            play.store.instead["tools/call"] = [lose]
            run_id = await play.accepted()
            await play.until(lambda: "ended" in play.changes(run_id))
            (ended,) = [turn for turn in play.seen(PartnerTurn) if turn.change == "ended"]
            sent = len(play.store.of("tools/call"))
            if taken == "nothing":
                assert (ended.status, sent) == ("completed", 2)
            elif taken == "binding":
                (told,) = [turn for turn in play.seen(PartnerTurn) if turn.change == "tool-ended"]
                assert (ended.status, sent, told.facts["why"]) == ("completed", 1, CONTEXT_DENIED)
            else:
                assert (ended.status, ended.reason, sent) == ("failed", "EXECUTION_DENIED", 1)

    virtually(main)
