from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.usage import (
    TOKEN_KIND,
    BillingEvent,
    PriceTable,
    TokenCounts,
    cost_text,
    token_event,
    usage_of,
)

PRICES = PriceTable()
COSTS = re.compile(r"(0|[1-9][0-9]*)\.[0-9]{12}")

counts = st.builds(
    TokenCounts,
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.none() | st.integers(0, 10**6),
    st.none() | st.integers(0, 10**6),
    st.none() | st.integers(0, 10**6),
)
events = st.lists(
    st.builds(lambda model, one: token_event(model, one, PRICES, streamed=True), st.sampled_from("abc"), counts)
    | st.builds(BillingEvent, st.sampled_from(["runtime_seconds", "gpu_seconds"]), st.integers(0, 10**18)),
    min_size=1,
    max_size=12,
)


def of(*ledger: BillingEvent) -> Any:
    return usage_of(ledger, certain=True, flushed=True)


@pytest.mark.req("US-033", "US-003", "US-002", "US-007")
def test_the_figure_of_the_example() -> None:
    assert of(token_event("m", TokenCounts(9120, 410), PRICES, streamed=True)) == {
        "model": "m",
        "inputTokens": 9120,
        "outputTokens": 410,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "costUsd": "0.033510000000",
        "priceSide": "cost",
        "kinds": [{"kind": "llm_tokens", "costUsd": "0.033510000000"}],
    }


@pytest.mark.req("US-032")
@given(st.integers(0, 10**30))
def test_a_cost_is_exact_decimal_text(pico: int) -> None:
    text = cost_text(pico)
    assert COSTS.fullmatch(text)
    assert int(text.replace(".", "")) == pico


@pytest.mark.req("US-004", "US-014", "US-011")
@given(events)
def test_kinds_add_up_to_the_cost_and_models_to_its_token_part(ledger: list[BillingEvent]) -> None:
    usage = of(*ledger)
    total = Decimal(usage["costUsd"])
    assert int(usage["costUsd"].replace(".", "")) == sum(event.pico or 0 for event in ledger)
    kinds = {kind["kind"]: int(kind["costUsd"].replace(".", "")) for kind in usage["kinds"]}
    assert sum(kinds.values()) == int(usage["costUsd"].replace(".", ""))
    assert total >= 0
    models = usage.get("models")
    used = {event.model for event in ledger if event.counts is not None}
    assert (models is not None) == (len(used) > 1)
    if models is not None:
        assert sum(int(model["costUsd"].replace(".", "")) for model in models) == kinds[TOKEN_KIND]
        for counter in ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"):
            assert sum(model[counter] for model in models) == usage[counter]


@pytest.mark.req("US-009")
def test_both_sorts_of_cache_writes_are_added() -> None:
    assert of(token_event("m", TokenCounts(0, 0, None, 7, 5), PRICES, streamed=True))["cacheWriteTokens"] == 12


@pytest.mark.req("US-010")
def test_the_model_is_the_one_that_streamed_last() -> None:
    one = TokenCounts(1, 1)
    streamed = token_event("streams", one, PRICES, streamed=True)
    silent = token_event("silent", one, PRICES, streamed=False)
    assert of(streamed, silent)["model"] == "streams"
    assert of(silent, replace(silent, model="later"))["model"] == "later"
    assert of(BillingEvent("runtime_seconds", 5))["model"] is None


@pytest.mark.req("US-017", "US-018", "US-019", "US-020", "US-023")
def test_usage_is_null_whenever_the_bill_is_not_whole() -> None:
    priced = token_event("m", TokenCounts(1, 1), PRICES, streamed=True)
    assert usage_of([priced], certain=True, flushed=True) is not None
    assert usage_of([], certain=True, flushed=True) is None
    assert usage_of([priced, BillingEvent("gpu_seconds", None)], certain=True, flushed=True) is None
    assert usage_of([priced], certain=True, flushed=False) is None
    assert usage_of([priced], certain=False, flushed=True) is None


@pytest.mark.req("TM-040")
def test_a_response_without_counters_has_no_price() -> None:
    assert token_event("m", None, PRICES, streamed=True).pico is None


def test_a_model_may_be_taken_out_of_the_price_table() -> None:
    prices = PriceTable({"dear": None})
    assert token_event("dear", TokenCounts(1, 1), prices, streamed=True).pico is None
    assert token_event("other", TokenCounts(1, 1), prices, streamed=True).pico == 18_000_000


@pytest.mark.req("US-036", "US-013")
def test_kinds_stand_in_the_order_of_their_first_event() -> None:
    token = token_event("m", TokenCounts(1, 0), PRICES, streamed=True)
    usage = of(BillingEvent("runtime_seconds", 2), token, BillingEvent("runtime_seconds", 3))
    assert [kind["kind"] for kind in usage["kinds"]] == ["runtime_seconds", "llm_tokens"]
    assert usage["kinds"][0]["costUsd"] == "0.000000000005"
