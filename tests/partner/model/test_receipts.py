from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab.partner.model.receipts import Receipt, ReceiptPlace, Receipts, input_hash
from lab.partner.model.refusals import Refusal
from lab.partner.model.state import State
from lab.partner.model.words import Code
from tests.partner.model.test_state import opened

PLACE = ReceiptPlace("org", "test", "space", "POST /conversations")
RECEIPT = Receipt("c1", None, {"conversationId": "c1"})


@pytest.fixture
def state() -> Iterator[State]:
    held = opened()
    yield held
    held.close()


@pytest.mark.req("CV-010", "CV-011", "MSG-005", "MSG-006")
def test_the_same_input_finds_the_first_answer_and_another_conflicts(state: State) -> None:
    receipts = Receipts(state)
    assert receipts.find(PLACE, "key", input_hash({"a": 1})) is None
    receipts.keep(PLACE, "key", input_hash({"a": 1}), RECEIPT, 0)
    assert receipts.find(PLACE, "key", input_hash({"a": 1})) == RECEIPT
    with pytest.raises(Refusal) as caught:
        receipts.find(PLACE, "key", input_hash({"a": 2}))
    assert caught.value.code is Code.CHAT_CONFLICT


@pytest.mark.req("CV-019", "CV-020", "MSG-028")
@pytest.mark.parametrize(
    "place",
    [
        replace(PLACE, organization_id="other"),
        replace(PLACE, environment="production"),
        replace(PLACE, namespace="other"),
        replace(PLACE, operation="POST /messages"),
        replace(PLACE, conversation_id="c1"),
    ],
)
def test_a_key_counts_only_in_its_place_and_byte_for_byte(state: State, place: ReceiptPlace) -> None:
    receipts = Receipts(state)
    receipts.keep(PLACE, "key", input_hash({}), RECEIPT, 0)
    assert receipts.find(place, "key", input_hash({})) is None
    assert receipts.find(PLACE, "Key", input_hash({})) is None


@pytest.mark.req("MSG-029")
def test_the_order_of_members_does_not_count_and_that_of_a_list_does() -> None:
    assert input_hash({"a": 1, "b": ["x", "y"]}) == input_hash({"b": ["x", "y"], "a": 1})
    assert input_hash({"b": ["x", "y"]}) != input_hash({"b": ["y", "x"]})


@pytest.mark.req("PRIV-023")
def test_neither_key_nor_input_lies_in_the_state(state: State) -> None:
    Receipts(state).keep(PLACE, "s3cret-key", input_hash({"text": "s3cret-input"}), RECEIPT, 0)
    assert "s3cret" not in state.dump()
