"""A law of the partner leg knows whom it judges, and asks its judge only where there is something."""

from __future__ import annotations

from lab.laws import Status
from lab.laws.law import judge_all
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import STORE
from tests.laws.journals import chat_with_resume
from tests.laws.partner.journals import PartnerTale


def _one_call(view: PartnerView, bench: Bench) -> None:
    for call in view.calls:
        bench.case(call.ok, "a refusal", "an answer", call.n)


LAW = promise("one", "One", STORE, ("MCP-001",), _one_call)


def test_a_case_that_was_not_as_it_was_due() -> None:
    tale = PartnerTale()
    tale.poll()
    (judged,) = judge_all(tale.entries, [LAW])
    assert (judged.status, judged.judgement.judged) == (Status.HELD, 1)
    n = tale.refused("run", 404, "CHAT_UNAVAILABLE")
    (judged,) = judge_all(tale.entries, [LAW])
    (found,) = judged.judgement.violations
    assert (found.law, found.party, found.participant, found.entries) == ("one", STORE, "store", (n,))


def test_its_judge_is_not_asked_in_the_chat_leg() -> None:
    def never(view: PartnerView, bench: Bench) -> None:
        raise AssertionError

    (judged,) = judge_all(chat_with_resume().entries, [promise("one", "One", STORE, ("MCP-001",), never)])
    assert judged.status is Status.NOTHING
