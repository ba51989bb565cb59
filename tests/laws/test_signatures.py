"""The gateway's signatures, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged
from lab.laws import Status
from tests.laws.journals import Tale

LAW = "gateway-frames-signed"
FULL = {"present": True, "verified": True, "bound": True, "equal": True}


def signed(**facts: Any) -> tuple[Tale, int]:
    t = Tale()
    t.connect()
    return t, t.assign(facts={"signature": FULL | facts})


def test_signed_anew_each_time() -> None:
    t, _ = signed()
    t.assign()
    t.cp("ack")
    assert t.judged(LAW).judgement.judged == 3
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize(
    ("facts", "seen", "due"),
    [
        pytest.param(
            {"verified": False},
            "job.assign: not verified",
            "a signature of a trusted key over the canonical text",
            marks=pytest.mark.req("SG-001", "SG-009"),
        ),
        pytest.param(
            {"bound": False},
            "job.assign: not bound",
            "sig bound to the frame's tenant and workspace",
            marks=pytest.mark.req("SG-007"),
        ),
        pytest.param(
            {"equal": False},
            "job.assign: not equal",
            "paramsRaw equal to payload",
            marks=pytest.mark.req("SG-005"),
        ),
        pytest.param(
            {"skewMs": 60_001},
            "job.assign: signed 60001 ms off",
            "within 60000 ms",
            marks=pytest.mark.req("SG-014"),
        ),
        pytest.param({"skewMs": -60_001}, "job.assign: signed -60001 ms off", "within 60000 ms"),
    ],
)
def test_each_fact(facts: dict[str, Any], seen: str, due: str) -> None:
    t, n = signed(**facts)
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == (seen, due, (n,))


@pytest.mark.req("SG-016")
def test_no_signature_on_a_signed_type() -> None:
    t = Tale()
    t.connect()
    n = t.cp("job.cancel", 1, facts={"signature": {"present": False}})
    assert t.violation(LAW).due == "sig and paramsRaw"
    assert t.violation(LAW).entries == (n,)


@pytest.mark.req("SQ-023")
def test_a_nonce_used_before() -> None:
    t, first = signed(nonce="n")
    again = t.cp("job.cancel", 2, facts={"signature": {**FULL, "nonce": "n"}})
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("job.cancel: a nonce used before", (first, again))


def test_the_labs_own_copy_repeats_a_nonce() -> None:
    t, _ = signed(nonce="n")
    t.assign(facts={"signature": {**FULL, "nonce": "n"}}, fate="copied", fault="f")
    assert t.status(LAW) is Status.HELD


def test_a_skew_widens_by_the_delay_of_a_link() -> None:
    t = Tale()
    t.connect()
    t.add(LinkChanged("gateway", "delayed", 1))
    t.assign(facts={"signature": {**FULL, "skewMs": 61_900}})
    assert t.status(LAW) is Status.HELD


def test_an_early_stop() -> None:
    t, _ = signed()
    t.end("interrupted")
    assert t.status(LAW) is Status.HELD
