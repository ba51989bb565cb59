"""A missing refusal is proven by whatever its receiver goes on with."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.journals import Tale
from tests.laws.test_refusals import LAWS, SCHEMA, connected, error, wrong


def acked(t: Tale, party: str, n: int, status: str = "accepted") -> int:
    return t.ack_by_la(n, status) if party == "la" else t.ack_by_cp(n, status)


@pytest.mark.req("WS-030", "LA-008")
@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_ack_of_it(party: str) -> None:
    t = connected()
    n = wrong(t, party, {"schema": SCHEMA})
    ack = acked(t, party, n)
    assert t.violation(LAWS[party]).entries == (n, ack)
    assert t.violation(LAWS[party]).due == "error schema_violation"


@pytest.mark.req("WS-030")
@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_ack_of_what_could_not_be_read(party: str) -> None:
    t = connected()
    n = wrong(t, party, {"parse": "a member twice"}, msg_id=None)
    payload = {"status": "accepted", "ackSeq": 1, "ackMsgId": "00000000-0000-4000-8000-0000000000ee"}
    ack = t.la("ack", payload=payload) if party == "la" else t.cp("ack", payload=payload)
    assert t.violation(LAWS[party]).entries == (n, ack)


@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_ack_of_what_came_behind_it(party: str) -> None:
    t = connected()
    n = wrong(t, party, {"type": "unknown_type"}, seq=1)
    ack = acked(t, party, wrong(t, party, {}, seq=2))
    assert t.violation(LAWS[party]).entries == (n, ack)


@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_ack_of_what_came_before_it_proves_nothing(party: str) -> None:
    t = connected()
    good = wrong(t, party, {}, seq=1)
    wrong(t, party, {"schema": SCHEMA}, seq=2)
    acked(t, party, good)
    error(t, party, "schema_violation")
    assert t.status(LAWS[party]) is Status.HELD


def test_a_ready_behind_a_wrong_hello() -> None:
    t = Tale()
    t.register()
    n = t.la("hello", payload={"signatureMode": "enforce"}, facts={"skewMs": 200_000})
    ready = t.ready()
    assert t.violation("gateway-refusals").entries == (n, ready)


def test_an_ack_behind_the_error_is_another_laws() -> None:
    t = connected()
    n = wrong(t, "cp", {"schema": SCHEMA})
    error(t, "cp", "schema_violation")
    t.ack_by_cp(n)
    assert t.status("gateway-refusals") is Status.HELD
