"""The gateway's signatures, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged
from lab.laws import Status
from tests.laws.journals import SESSION, SESSION_2, Tale, sha, uuid

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


# The agent's side

AGENT_LAW = "signature-refusal"
BAD: dict[str, Any] = {"present": True, "verified": False, "bound": True, "equal": True, "skewMs": 3}


def agent_tale(mode: str, signature: dict[str, Any] | None = None) -> tuple[Tale, int]:
    t = Tale()
    t.mode = mode
    t.connect()
    return t, t.assign(facts={"signature": BAD if signature is None else signature})


@pytest.mark.req("SG-010")
@pytest.mark.parametrize(("mode", "status"), [("enforce", "broken"), ("warn", "held"), ("off", "held")])
def test_a_bad_signature_taken(mode: str, status: str) -> None:
    t, assign = agent_tale(mode)
    t.ack_by_la(assign)
    assert t.status(AGENT_LAW).value == status


@pytest.mark.req("SG-010")
@pytest.mark.parametrize(("mode", "status"), [("enforce", "held"), ("warn", "broken"), ("off", "broken")])
def test_a_bad_signature_refused(mode: str, status: str) -> None:
    t, _ = agent_tale(mode)
    t.la("error", payload={"code": "unauthorized", "retryable": False})
    assert t.status(AGENT_LAW).value == status


@pytest.mark.req("WS-033", "SQ-023")
def test_a_frame_that_comes_again_rightly_signed_after_the_resume_may_be_taken() -> None:
    t, assign = agent_tale("enforce")
    t.la("error", payload={"code": "unauthorized", "retryable": False})
    t.close("remote", 4418)
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    again = t.assign()
    assert t.msg(again) == t.msg(assign)
    t.ack_by_la(again)
    assert t.status(AGENT_LAW) is Status.HELD


@pytest.mark.parametrize(
    "fact",
    [
        pytest.param({"bound": False}, marks=pytest.mark.req("SG-007")),
        pytest.param({"equal": False}, marks=pytest.mark.req("SG-005")),
        pytest.param({"skewMs": -70_000}, marks=pytest.mark.req("SG-014")),
        pytest.param({"present": False}, marks=pytest.mark.req("SG-017")),
    ],
)
def test_what_else_makes_a_signature_bad(fact: dict[str, Any]) -> None:
    t, assign = agent_tale("enforce", {**BAD, "verified": True, **fact})
    t.ack_by_la(assign)
    assert t.violation(AGENT_LAW).seen == "job.assign with a bad signature taken"


@pytest.mark.req("SG-014")
def test_a_nonce_of_another_frame() -> None:
    t = Tale()
    t.connect()
    good = {**BAD, "verified": True, "nonce": sha("n")}
    t.ack_by_la(t.assign(facts={"signature": good}))
    t.ack_by_la(t.cp("job.cancel", 2, facts={"signature": good}))
    assert t.violation(AGENT_LAW).seen == "job.cancel with a bad signature taken"


@pytest.mark.parametrize("law", [AGENT_LAW, "refusals"])
@pytest.mark.parametrize("refused", [True, False])
def test_a_nonce_of_an_earlier_connection_cannot_be_told(law: str, refused: bool) -> None:
    t = Tale()
    t.connect()
    good = {**BAD, "verified": True, "nonce": sha("n")}
    t.ack_by_la(t.assign(facts={"signature": good}))
    t.close()
    t.connect("c2", SESSION_2)
    n = t.assign(facts={"signature": good}, msg_id=uuid("another"))
    if refused:
        t.la("error", payload={"code": "unauthorized", "retryable": False})
    else:
        t.ack_by_la(n)
    assert t.status(law) is not Status.BROKEN
    assert t.status("gateway-frames-signed") is Status.BROKEN


def test_a_byte_true_copy_bears_its_nonce_again() -> None:
    t = Tale()
    t.connect()
    good = {**BAD, "verified": True, "nonce": sha("n")}
    assign = t.assign(facts={"signature": good})
    t.ack_by_la(assign)
    t.assign(facts={"signature": good}, fate="copied", fault="f")
    t.ack_by_la(assign, "duplicate")
    assert t.status(AGENT_LAW) is Status.NOTHING


@pytest.mark.req("HS-013")
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_ready_with_a_bad_signature(goes_on: bool) -> None:
    t = Tale()
    t.connect(ready={"facts": {"signature": BAD}})
    if goes_on:
        t.la("heartbeat", 1)
    assert t.status(AGENT_LAW) is (Status.BROKEN if goes_on else Status.HELD)


def test_a_timestamp_near_the_limit_cannot_be_told() -> None:
    t, assign = agent_tale("enforce", {**BAD, "verified": True, "skewMs": 60_500})
    t.ack_by_la(assign)
    assert t.status(AGENT_LAW) is Status.UNKNOWN


def test_an_unknown_mode_cannot_be_told() -> None:
    t, assign = agent_tale("maybe")
    t.ack_by_la(assign)
    assert t.status(AGENT_LAW) is Status.UNKNOWN
