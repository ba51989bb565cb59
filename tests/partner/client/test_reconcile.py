from dataclasses import replace
from decimal import Decimal

import pytest

from lab.partner.client.reconcile import faults_of, timing_faults, total_cost, usage_faults
from lab.partner.client.shapes import Iteration, ModelUsage, Run, Timings, Usage, run_untrusted, usage_untrusted
from tests.partner.client.test_shapes import RUN_WITH_EXACT_NUMBERS
from tests.partner.samples import USAGE


def run(**members: object) -> Run:
    return run_untrusted({**RUN_WITH_EXACT_NUMBERS, **members})


def timings(**stages: str | None) -> Timings:
    told = run().timings
    assert told is not None
    changed = {name: None if value is None else Decimal(value) for name, value in stages.items()}
    return replace(told, stages={**told.stages, **changed})


def usage(**members: object) -> Usage:
    told = usage_untrusted({**USAGE, **members})
    assert told is not None
    return told


def test_figures_that_come_out() -> None:
    assert faults_of(run()) == ()
    assert faults_of(run(timings=None, usage=None)) == ()


@pytest.mark.req("TM-007", "US-029")
@pytest.mark.parametrize(
    "members", [{"status": "running"}, {"timings": {**RUN_WITH_EXACT_NUMBERS["timings"], "complete": False}}]
)
def test_what_cannot_be_compared_yet_is_not(members: dict[str, object]) -> None:
    assert faults_of(run(**members)) is None


def test_a_snapshot_with_nulls_tells_nothing() -> None:
    assert timing_faults(timings(totalMs=None)) is None


@pytest.mark.req("TM-025", "TM-027", "TM-028", "TM-045")
@pytest.mark.parametrize(
    ("stages", "faults"),
    [
        ({"totalMs": "6.01"}, ()),
        ({"totalMs": "5.99"}, ()),
        ({"totalMs": "6.0101"}, ("totalMs",)),
        ({"totalMs": "9"}, ("totalMs",)),
        ({"setupMs": "3.02", "totalMs": "6.02"}, ("setupMs",)),
        ({"queuedMs": "100000", "totalMs": "100005.6"}, ()),
        ({"queuedMs": "100000", "totalMs": "100005.3"}, ("totalMs",)),
    ],
)
def test_sums_within_the_tolerance(stages: dict[str, str], faults: tuple[str, ...]) -> None:
    assert timing_faults(timings(**stages)) == faults


@pytest.mark.req("TM-034", "TM-035", "TM-031")
@pytest.mark.parametrize(("first", "faults"), [("5", ()), ("5.01", ("firstTokenMs",)), (None, ())])
def test_the_first_token_lies_within_the_request(first: str | None, faults: tuple[str, ...]) -> None:
    five = Decimal(5)
    one = Iteration(five, five, None if first is None else Decimal(first), five, ())
    assert timing_faults(replace(timings(), iterations=(one,))) == faults


@pytest.mark.req("US-014", "US-012")
def test_kinds_make_up_the_cost_to_the_digit() -> None:
    kinds = [
        {"kind": "llm_tokens", "costUsd": "0.033500000000"},
        {"kind": "runtime_seconds", "costUsd": "0.000010000000"},
    ]
    assert usage_faults(usage(kinds=kinds)) == ()
    kinds[1]["costUsd"] = "0.000010000001"
    assert usage_faults(usage(kinds=kinds)) == ("kinds",)


@pytest.mark.req("US-011", "US-014")
def test_models_make_up_the_counters_and_the_cost_of_tokens() -> None:
    one = ModelUsage("a", 9000, 400, 0, 0, Decimal("0.030000000000"))
    two = ModelUsage("b", 120, 10, 0, 0, Decimal("0.003510000000"))
    told = replace(usage(), models=(one, two))
    assert usage_faults(told) == ()
    assert usage_faults(replace(told, models=(one, replace(two, input_tokens=119)))) == ("input_tokens",)
    assert usage_faults(replace(told, models=(one, replace(two, cost=Decimal("0.003510000001"))))) == ("models",)


@pytest.mark.req("US-022")
def test_what_is_not_accounted_is_unknown_and_not_free() -> None:
    assert total_cost([run(), run(usage=None), run()]) == (Decimal("0.067020000000"), 1)


@pytest.mark.req("US-038")
def test_the_usage_of_iterations_is_not_compared() -> None:
    few: dict[str, object] = {"wallMs": 1, "modelMs": 1, "firstTokenMs": None, "toolMs": 0, "tools": []}
    iterations = [{**few, "usage": {"inputTokens": 1, "outputTokens": 1}}]
    assert faults_of(run(timings={**RUN_WITH_EXACT_NUMBERS["timings"], "iterations": iterations})) == ()
