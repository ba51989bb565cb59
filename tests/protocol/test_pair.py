"""A short chat over a bad link: each frame cut, lost, doubled or late in turn, and schedules drawn at random."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocol.pair import BODIES, Act, Pair, Plan, played

ACTS = ("cut", "drop", "duplicate", "delay")
CALM = {"agent": 13, "gateway": 12}
"""Messages that each side writes when nothing is broken."""


@pytest.mark.req("CH-001", "CH-014", "HS-038", "SQ-007", "SQ-034")
def test_calm_chat_needs_one_copy_of_everything() -> None:
    pair = played({})
    assert pair.written == CALM
    assert pair.now < 0.1
    assert [b"".join(pair.chunks[request]) for request in pair.requested] == list(BODIES.values())
    assert all(delivery.state == "delivered" for side in (pair.agent, pair.gateway) for delivery in side.sent)


@pytest.mark.req("RS-001", "RS-002", "RS-004", "RS-015", "SQ-002", "SQ-008", "SQ-025")
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("side", "number"), [(side, number) for side, count in CALM.items() for number in range(1, count + 1)]
)
def test_one_fault_loses_and_doubles_nothing(side: str, number: int, act: Act) -> None:
    pair = played({(side, number): act})
    # A cut takes what is in flight with it: with the gateway's second message that is its ready.
    if number > 2:
        # A session was there to resume, so nothing may fail.
        assert all(delivery.state == "delivered" for one in (pair.agent, pair.gateway) for delivery in one.sent)
        assert [b"".join(pair.chunks[request]) for request in pair.requested] == list(BODIES.values())
        # After a cut both sides send again at once; no ack timeout is waited for.
        assert act != "cut" or pair.now < 4
        # A copy costs no connection.
        assert act != "duplicate" or (pair.agent.ready, pair.now < 1) == (1, True)


@pytest.mark.req("RS-015", "RS-017")
@pytest.mark.parametrize("first", range(3, 14))
def test_two_cuts_in_a_row(first: int) -> None:
    pair = played({("agent", first): "cut", ("gateway", 8): "cut"})
    assert all(delivery.state == "delivered" for one in (pair.agent, pair.gateway) for delivery in one.sent)


plans: st.SearchStrategy[Plan] = st.dictionaries(
    st.tuples(st.sampled_from(("agent", "gateway")), st.integers(1, 40)), st.sampled_from(ACTS), max_size=12
)


@pytest.mark.timeout(120)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(plans)
def test_random_schedules_lose_and_double_nothing(plan: Plan) -> None:
    played(plan)


def test_pair_that_never_rests_is_told() -> None:
    """The step bound ends a pair whose agent can never say register."""
    pair = Pair({("agent", number): "drop" for number in range(1, 30_000)})
    with pytest.raises(AssertionError, match="not at rest"):
        pair.run()


def test_judge_sees_a_doubled_frame() -> None:
    pair = played({})
    (first, *_) = pair.gateway.handed
    pair.gateway.handed[first] += 1
    with pytest.raises(AssertionError):
        pair.judge()
