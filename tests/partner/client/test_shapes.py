from decimal import Decimal
from typing import Any

import pytest

from lab.partner.client.answers import json_untrusted
from lab.partner.client.members import BadShape, Moment, moment_or_epoch_untrusted, moment_untrusted
from lab.partner.client.shapes import (
    Context,
    Conversation,
    McpTarget,
    attachment_untrusted,
    context_untrusted,
    conversation_untrusted,
    grant_untrusted,
    membership_untrusted,
    run_untrusted,
    usage_untrusted,
    version_untrusted,
)
from tests.partner.samples import CONVERSATION, COST, DESTINATION, FILE, MEMBERSHIP, NOW, RUN, TIMINGS, USAGE

NEW_YEAR_MS = 1_767_225_600_000
RUN_WITH_EXACT_NUMBERS = {**RUN, "timings": {**TIMINGS, **{k: Decimal("0.5") for k, v in TIMINGS.items() if v == 0.5}}}


@pytest.mark.req("PA-048")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-01T00:00:00.000Z", NEW_YEAR_MS),
        ("2026-01-01T00:00:00Z", NEW_YEAR_MS),
        ("2026-01-01T02:00:00.250+02:00", NEW_YEAR_MS + 250),
        ("2025-12-31T23:30:00-00:30", NEW_YEAR_MS),
        ("2026-01-01T00:00:00.5Z", NEW_YEAR_MS + 500),
        ("2026-01-01t00:00:00.123456789z", NEW_YEAR_MS + 123),
        ("1969-12-31T23:59:59.000Z", -1000),
    ],
)
def test_three_forms_of_time_are_one_instant(text: str, ms: int) -> None:
    assert moment_untrusted(text) == Moment("whatever text", ms)


@pytest.mark.parametrize(
    "value", ["", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-23:00", 1, None]
)
def test_what_is_no_time(value: object) -> None:
    with pytest.raises(BadShape, match="validUntil"):
        moment_untrusted(value, "validUntil")


@pytest.mark.req("GR-019")
def test_the_issuers_time_may_be_a_number() -> None:
    assert moment_or_epoch_untrusted(NEW_YEAR_MS, "expiresAt") == moment_untrusted(NOW)
    assert moment_or_epoch_untrusted(NEW_YEAR_MS, "expiresAt").text == NOW
    for odd in (True, -1, 10**20, 1.5):
        with pytest.raises(BadShape):
            moment_or_epoch_untrusted(odd, "expiresAt")


@pytest.mark.req("GR-003", "GR-008")
@pytest.mark.parametrize(
    "body",
    [
        {"grant": "tg1.x", "expiresAt": NOW},
        {"success": True, "data": {"grant": "tg1.x", "expiresAt": NOW}},
        {"grant": "tg1.x", "expiresAt": NEW_YEAR_MS, "more": 1},
    ],
)
def test_the_issuers_answer_in_three_forms(body: object) -> None:
    grant = grant_untrusted(body)
    assert (grant.text, grant.expires_at.ms) == ("tg1.x", NEW_YEAR_MS)
    assert "tg1.x" not in repr(grant)


@pytest.mark.parametrize("body", [{}, {"grant": ""}, {"grant": 1, "expiresAt": NOW}, [], None, {"data": None}])
def test_what_is_no_grant(body: object) -> None:
    with pytest.raises(BadShape):
        grant_untrusted(body)


@pytest.mark.req("CV-014", "CV-007")
def test_a_conversation_and_its_target() -> None:
    told = conversation_untrusted({**CONVERSATION, "more": 1, "mcp": {**CONVERSATION["mcp"], "more": 1}})
    assert told == Conversation("c", "actor", "team", "agent", McpTarget("server", DESTINATION))
    assert conversation_untrusted({**CONVERSATION, "mcp": None}).mcp is None
    for name in CONVERSATION:
        with pytest.raises(BadShape, match=name):
            conversation_untrusted({key: value for key, value in CONVERSATION.items() if key != name})


@pytest.mark.req("CX-005")
def test_a_context_that_was_never_bound() -> None:
    assert context_untrusted({"version": 0, "expiresAt": None, "active": False}) == Context(0, None, False)
    assert version_untrusted({"version": 3}) == 3
    for odd in (True, -1, "1", 1.0, Decimal(1), None):
        with pytest.raises(BadShape, match="version"):
            version_untrusted({"version": odd})


@pytest.mark.req("MB-002")
def test_a_membership_needs_its_eight_members() -> None:
    told = membership_untrusted(MEMBERSHIP)
    assert told.valid_until is not None
    assert told.valid_until.ms == NEW_YEAR_MS + 240_000
    for name in MEMBERSHIP:
        with pytest.raises(BadShape, match=name):
            membership_untrusted({key: value for key, value in MEMBERSHIP.items() if key != name})


def test_a_file_and_its_hidden_name() -> None:
    assert attachment_untrusted(FILE).size == 3
    assert "x.txt" not in repr(attachment_untrusted(FILE))


@pytest.mark.req("MSG-024")
def test_a_202_may_lack_the_last_three() -> None:
    run = run_untrusted({name: RUN[name] for name in list(RUN)[:6]})
    assert (run.tool_errors, run.timings, run.usage) == ((), None, None)
    whole = run_untrusted(RUN_WITH_EXACT_NUMBERS)
    assert whole.tool_errors[0].error_code == "TOOL_FAILED"
    assert whole.timings is not None
    assert whole.timings.stages["totalMs"] == 6
    assert whole.timings.iterations[0].first_token_ms is None


@pytest.mark.req("MSG-020")
@pytest.mark.parametrize(
    ("status", "terminal"),
    [
        ("accepted", False),
        ("running", False),
        ("completed", True),
        ("failed", True),
        ("limited", True),
        ("interrupted", True),
        ("cancelled", True),
        ("paused", False),
    ],
)
def test_an_unknown_status_is_not_terminal(status: str, terminal: bool) -> None:
    assert run_untrusted({**RUN_WITH_EXACT_NUMBERS, "status": status}).terminal is terminal


@pytest.mark.req("MSG-021")
def test_any_reason_is_taken() -> None:
    assert run_untrusted({**RUN_WITH_EXACT_NUMBERS, "reason": "SOMETHING_NEW"}).reason == "SOMETHING_NEW"


@pytest.mark.req("TM-047", "TM-044", "TM-004")
def test_a_pending_snapshot_may_hold_nulls_and_further_members() -> None:
    stages = dict.fromkeys((name for name in TIMINGS if name.endswith("Ms")), None)
    timings: dict[str, object] = {**stages, "complete": False, "iterations": [], "further": 1}
    told = run_untrusted({**RUN, "status": "interrupted", "timings": timings}).timings
    assert told is not None
    assert not told.complete
    assert set(told.stages.values()) == {None}


@pytest.mark.req("US-005", "US-003")
def test_costs_are_exact_decimals() -> None:
    usage = usage_untrusted(USAGE)
    assert usage is not None
    assert usage.cost == Decimal("0.033510000000")
    assert f"{usage.cost:f}" == COST
    assert isinstance(usage.kinds[0][1], Decimal)
    large = usage_untrusted({**USAGE, "costUsd": "12345678901234567890.123456789012"})
    assert large is not None
    assert f"{large.cost:f}" == "12345678901234567890.123456789012"


@pytest.mark.req("US-032")
@pytest.mark.parametrize("cost", ["0.1", "-0.000000000000", "1e-12", "00.000000000000", 0.5, "0.0335100000000", None])
def test_what_is_no_cost(cost: object) -> None:
    with pytest.raises(BadShape, match="costUsd"):
        usage_untrusted({**USAGE, "costUsd": cost})


@pytest.mark.req("US-036", "US-039")
def test_an_unknown_kind_and_an_absent_usage() -> None:
    usage = usage_untrusted({**USAGE, "kinds": [{"kind": "moon_dust", "costUsd": COST}]})
    assert usage is not None
    assert usage.kinds[0][0] == "moon_dust"
    assert usage_untrusted(None) is None
    assert (
        run_untrusted({name: value for name, value in RUN_WITH_EXACT_NUMBERS.items() if name != "usage"}).usage is None
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0.1", Decimal("0.1")),
        (b"1", 1),
        (b"NaN", None),
        (b"1e99999999999999999999", None),
        (b"[" * 100_000, None),
        (b"\xff", None),
        (b"", None),
        (b"1" * 5000, None),
    ],
)
def test_json_with_exact_numbers(text: bytes, value: Any) -> None:
    assert json_untrusted(text) == value


@pytest.mark.parametrize("number", [Decimal("1e400"), Decimal("-1"), 10**30, True, "1", 0.5])
def test_a_duration_is_bounded_and_exact(number: object) -> None:
    with pytest.raises(BadShape, match="totalMs"):
        run_untrusted({**RUN_WITH_EXACT_NUMBERS, "timings": {**RUN_WITH_EXACT_NUMBERS["timings"], "totalMs": number}})
