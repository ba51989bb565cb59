"""Runs and calls as the laws see them."""

from __future__ import annotations

import pytest

from lab.laws.partner.seen import key, part, sha_of
from lab.laws.partner.view import PartnerView
from lab.laws.view import JournalView
from tests.laws.partner.journals import PartnerTale, running


def read(tale: PartnerTale) -> PartnerView:
    return JournalView(tale.entries).partner


def test_a_whole_stream_has_every_event_to_the_last() -> None:
    tale = running()
    tale.event(1, "turn")
    assert read(tale).runs["run"].whole() is None
    tale.event(3, "run_status")
    assert read(tale).runs["run"].whole() is None
    tale.event(2, "text")
    whole = read(tale).runs["run"].whole()
    assert whole is not None
    assert [seen.type for seen in whole] == ["turn", "text", "run_status"]


@pytest.mark.req("SSE-041")
def test_a_result_is_paired_with_the_oldest_open_call_of_its_name() -> None:
    tale = running()
    for n, name, call_id in ((1, "a", "1"), (2, "a", "2"), (3, "b", "3")):
        tale.event(n, "tool_call", None, name=name, toolCallId=call_id)
    tale.event(4, "tool_result", None, name="a", ok=False)
    tale.event(5, "tool_result", None, name="a", ok=True)
    run = read(tale).runs["run"]
    assert [(one.id, one.name, one.ok) for one in run.tool_calls(run.events())] == [
        ("1", "a", False),
        ("2", "a", True),
        ("3", "b", None),
    ]


def test_a_call_is_surely_after_what_was_seen_before_it_began() -> None:
    tale = PartnerTale()
    first = tale.poll()
    tale.poll(began=first + 1)
    tale.poll(began=first)
    tale.wait(1.0).call("run", began=None, seconds=0.5)
    tale.call("run", began=None, seconds=1.0)
    calls = read(tale).calls
    assert [call.after(calls[0]) for call in calls[1:]] == [True, False, True, False]


def test_what_is_no_object_and_no_scalar() -> None:
    assert part({"a": [1]}, "a") == {}
    assert sha_of({"sha256": 7}) is None
    assert (key("a"), key(None), key(["a"])) == ("a", None, "['a']")
