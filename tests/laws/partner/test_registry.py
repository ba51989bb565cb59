"""All laws of the partner leg over a whole turn, over its beginnings, and over answers of any form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.journal.writer import Entry
from lab.laws import ALL_LAWS, Law, Status, judge_all
from lab.laws.partner.registry import PARTNER_LAWS
from lab.laws.partner.words import ISSUER, PARTNER_API, PARTNER_CLIENT, STORE
from tests.laws.journals import chat_with_resume
from tests.laws.partner.journals import PartnerTale, answered

IDS = [law.id for law in PARTNER_LAWS]

NOTHING = {
    *("one-run-per-key", "changed-input-conflicts", "one-active-run", "free-after-end", "replay-identical"),
    *("interrupted-never-rerun", "usage-when-certain", "files-guarded", "revoked-stays-revoked"),
    *("no-service-after-denial", "no-effect-after-denial", "no-delivery-after-denial", "context-told"),
    *("tries-bounded", "polls-back-off", "walk-ends", "reconnects-bounded", "uploads-before-message"),
    *("keys-open-their-routes", "malformed-is-refused", "conversations-are-ones-own", "owners-guarded"),
    *("uploads-judged", "named-files-known", "spent-budget-refuses", "removed-is-gone", "rotated-key-is-dead"),
    *("cancelled-by-order", "crashed-run-is-interrupted", "messages-by-step", "only-listed-tools"),
    *("static-only-gets-no-data", "refusal-before-execution", "revoked-binding-stays-denied"),
}
"""What a plain turn gives no occasion for."""


def test_every_law_is_judged_in_every_run_of_this_leg_and_in_no_other() -> None:
    assert [law for law in ALL_LAWS if law in PARTNER_LAWS] == list(PARTNER_LAWS)
    assert [one.law.id for one in judge_all(answered().entries)] == IDS
    assert not {one.law.id for one in judge_all(chat_with_resume().entries)} & set(IDS)
    assert {law.party for law in PARTNER_LAWS} == {PARTNER_API, PARTNER_CLIENT, STORE, ISSUER}


def test_a_whole_turn_keeps_every_law() -> None:
    tale = answered()
    tale.end()
    words = {one.law.id: one.status for one in judge_all(tale.entries, PARTNER_LAWS)}
    assert {name for name, status in words.items() if status is Status.NOTHING} == NOTHING
    assert {name for name, status in words.items() if status is Status.HELD} == set(IDS) - NOTHING


def test_a_journal_that_stops_anywhere_breaks_no_law() -> None:
    whole = answered().entries
    for length in range(len(whole)):
        for ended in (False, True):
            tale = PartnerTale()
            tale.entries, tale.t = list(whole[:length]), whole[length].t
            if ended:
                tale.end()
            assert [one for one in judge_all(tale.entries, PARTNER_LAWS) if one.status is Status.BROKEN] == [], length


@pytest.mark.parametrize("law", PARTNER_LAWS, ids=IDS)
def test_in_the_chat_leg_there_is_nothing_to_judge(law: Law) -> None:
    (judged,) = judge_all(chat_with_resume().entries, [law])
    assert judged.status is Status.NOTHING


ODD: tuple[object, ...] = (None, 7, "odd", [None], [{"id": {}}], {"sha256": ["odd"]})


def _mutants(facts: Mapping[str, Any], odd: object) -> Iterator[Mapping[str, Any]]:
    """The facts with one member, at any depth, in another form."""
    for name, value in facts.items():
        yield {**facts, name: odd}
        if isinstance(value, Mapping):
            yield from ({**facts, name: inner} for inner in _mutants(value, odd))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield from ({**facts, name: [inner, *value[1:]]} for inner in _mutants(value[0], odd))


def _changed(entries: list[Entry], odd: object) -> Iterator[list[Entry]]:
    for n, entry in enumerate(entries):
        for member in ("facts", "binding"):
            facts = getattr(entry.event, member, None)
            for mutant in _mutants(facts, odd) if isinstance(facts, Mapping) else ():
                event = replace(entry.event, **{member: mutant})
                yield [*entries[:n], replace(entry, event=event), *entries[n + 1 :]]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_answer_of_any_form_is_judged(odd: object) -> None:
    tale = answered()
    tale.end()
    count = 0
    for entries in _changed(tale.entries, odd):
        assert len(judge_all(entries, PARTNER_LAWS)) == len(PARTNER_LAWS)
        count += 1
    assert count > 150
