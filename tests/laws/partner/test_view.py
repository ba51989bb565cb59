"""What a journal of the partner leg is read into."""

from __future__ import annotations

from lab.laws.partner.seen import Moment
from lab.laws.partner.view import PartnerView
from lab.laws.view import JournalView
from tests.laws.journals import chat_with_resume
from tests.laws.partner.journals import EPOCH_MS, PartnerTale, answered


def read(tale: PartnerTale) -> PartnerView:
    return JournalView(tale.entries).partner


def test_a_turn_is_joined_by_its_ids() -> None:
    view = read(answered())
    (run,) = view.runs.values()
    (conversation,) = view.conversations.values()
    assert (run.turn_id, run.conversation_id) == ("turn", "conv")
    assert [len(one) for one in (run.accepted, run.polls, run.streams, run.texts, run.store_calls)] == [1, 1, 1, 1, 1]
    assert [one.source for one in run.snapshots] == ["message", "run_status", "run"]
    assert conversation.runs == [run]
    assert conversation.actor == ("user", "team")
    assert [call.operation for call in conversation.calls] == ["bind", "message", "run", "history"]
    assert [call.operation for call in view.issuer_calls] == ["register", "grant"]
    assert [one.event.grant for one in view.minted()] == ["g1"]


def test_nothing_of_the_chat_leg_is_read() -> None:
    view = JournalView(chat_with_resume().entries)
    assert "partner" not in vars(view)
    assert not view.partner.there
    assert view.partner is view.partner


def test_who_plays_a_party() -> None:
    tale = PartnerTale()
    assert read(tale).name("partner_client") == "driver"
    assert JournalView([]).partner.name("partner_client") == "partner_client"


def test_the_api_s_wall_clock() -> None:
    tale = PartnerTale()
    tale.wait(10).request("clock", facts={"byMs": 60_000})
    after = tale.wait(10).poll()
    view = read(tale)
    start = EPOCH_MS / 1000
    assert (view.clock_moved(), view.clock_known()) == (True, True)
    assert view.wall(Moment(1, 5.0)) == start + 5
    assert view.wall(Moment(after, 20.0)) == start + 80
    # Before the move, at it, and behind it.
    assert view.when(start + 7, Moment(1, 5.0)).t == 7
    assert view.when(start + 40, Moment(1, 5.0)).t == 10
    assert view.when(start + 85, Moment(1, 5.0)).t == 25


def test_a_call_of_a_control_is_none_of_the_contract_s() -> None:
    tale = PartnerTale()
    tale.call("clock")
    tale.request("clock", route="/__lab/queue", facts={"held": True})
    view = read(tale)
    assert (view.calls, view.clock_moved()) == ([], False)
    assert [one.event.facts for one in view.ordered("queue", "clock")] == [{"held": True}]


def test_a_move_of_the_clock_of_which_nobody_tells_how_far_is_not_known() -> None:
    tale = PartnerTale()
    assert (read(tale).clock_moved(), read(tale).clock_known()) == (False, True)
    tale.request("clock")
    view = read(tale)
    assert (view.clock_moved(), view.clock_known()) == (True, False)
