"""Errors: due or not, with which code, and without an echo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.journal.events import ParticipantDeclared, SocketOpened, TextMessage
from lab.laws import Status
from tests.laws.journals import JOB, SESSION, SESSION_2, Tale

Facts = dict[str, Any]


def connected(mode: str = "enforce") -> Tale:
    t = Tale()
    t.mode = mode
    t.connect()
    return t


def error(t: Tale, party: str, code: str, **fields: Any) -> int:
    payload = {"code": code, "retryable": False}
    return t.la("error", payload=payload, **fields) if party == "la" else t.cp("error", payload=payload, **fields)


def wrong(t: Tale, party: str, facts: Facts, seq: int = 1, **fields: Any) -> int:
    """A frame to `party`."""
    if party == "la":
        return t.cp("job.assign", seq, payload={"jobId": JOB, "kind": "chat"}, facts=facts, **fields)
    return t.la("heartbeat", seq, facts=facts, **fields)


LAWS = {"la": "refusals", "cp": "gateway-refusals"}
SCHEMA = {"keyword": "required", "path": "payload"}

STATIC = [
    pytest.param({"parse": "not JSON"}, "bad_frame", marks=pytest.mark.req("WS-035")),
    pytest.param({"type": "unknown_type"}, "unknown_type", marks=pytest.mark.req("WS-037")),
    pytest.param({"schema": SCHEMA}, "schema_violation", marks=pytest.mark.req("WS-061")),
    pytest.param({"direction": False}, "wrong_direction", marks=pytest.mark.req("WS-038")),
    pytest.param({"tenant": "tenant_mismatch"}, "tenant_mismatch", marks=pytest.mark.req("WS-071")),
    pytest.param({"agent": "agent_mismatch"}, "agent_mismatch", marks=pytest.mark.req("WS-072")),
    pytest.param({"schema": SCHEMA, "tenant": "tenant_mismatch"}, "schema_violation", marks=pytest.mark.req("WS-029")),
    pytest.param(
        {"tenant": "tenant_mismatch", "agent": "agent_mismatch"}, "tenant_mismatch", marks=pytest.mark.req("WS-029")
    ),
    pytest.param({"type": "unknown_type", "schema": SCHEMA}, "unknown_type", marks=pytest.mark.req("WS-029")),
]


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize(("facts", "code"), STATIC)
def test_the_code_of_the_first_fault(party: str, facts: Facts, code: str) -> None:
    t = connected()
    wrong(t, party, facts)
    error(t, party, code)
    assert t.status(LAWS[party]) is Status.HELD
    t = connected()
    first = wrong(t, party, facts)
    second = error(t, party, "seq_gap")
    found = t.violation(LAWS[party])
    assert (found.due, found.entries) == (code, (first, second))


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize("code", ["wrong_direction", "schema_violation"])
@pytest.mark.req("WS-032")
def test_either_order_of_direction_and_schema(party: str, code: str) -> None:
    t = connected()
    wrong(t, party, {"schema": SCHEMA, "direction": False})
    error(t, party, code)
    assert t.status(LAWS[party]) is Status.HELD


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.req("LA-008")
def test_a_wrong_frame_without_an_error(party: str) -> None:
    t = connected()
    wrong(t, party, {"schema": SCHEMA})
    t.wait(6).end()
    found = t.violation(LAWS[party])
    assert found.due == "error schema_violation"


@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_error_that_could_not_come(party: str) -> None:
    t = connected()
    wrong(t, party, {"schema": SCHEMA})
    t.wait(1).close()
    t.wait(20).end()
    assert t.status(LAWS[party]) is Status.UNKNOWN


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.req("SEC-009")
def test_an_error_though_all_was_in_order(party: str) -> None:
    t = connected()
    wrong(t, party, {})
    error(t, party, "schema_violation")
    assert t.violation(LAWS[party]).seen == "error schema_violation though all was in order"


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.req("WS-045", "SEC-009")
def test_an_error_echoes_nothing(party: str) -> None:
    t = connected()
    wrong(t, party, {"schema": SCHEMA})
    error(t, party, "schema_violation", facts={"canaries": ({"id": "prompt", "place": "payload.detail"},)})
    assert t.violation(LAWS[party]).seen == "an error frame with content"


@pytest.mark.req("WS-046")
def test_an_error_is_small() -> None:
    t = connected()
    wrong(t, "cp", {"schema": SCHEMA})
    entry = error(t, "cp", "schema_violation")
    object.__setattr__(t.entries[entry].event, "size", 4000)
    assert t.violation("gateway-refusals").seen == "an error frame with 4000 bytes"


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.req("WS-062")
def test_a_frame_above_48_kib(party: str) -> None:
    t = connected()
    entry = wrong(t, party, {"schema": SCHEMA, "size": "frame_too_large"})
    object.__setattr__(t.entries[entry].event, "size", 49153)
    error(t, party, "frame_too_large")
    assert t.status(LAWS[party]) is Status.HELD


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize(
    ("seqs", "other", "code"),
    [
        pytest.param((1, 3), False, "seq_gap", marks=pytest.mark.req("SQ-004", "WS-067")),
        pytest.param((1, 2, 1), True, "seq_replayed", marks=pytest.mark.req("SQ-003", "WS-068")),
        ((1, 2, 1), False, None),
    ],
)
def test_the_place_in_sequence(party: str, seqs: tuple[int, ...], other: bool, code: str | None) -> None:
    t = connected()
    for seq in seqs[:-1]:
        wrong(t, party, {}, seq)
    last = {"msg_id": "d0000000-0000-4000-8000-0000000000ff"} if other else {}
    wrong(t, party, {}, seqs[-1], **last)
    if code is None:
        t.wait(6).end()
        assert t.status(LAWS[party]) is Status.NOTHING
        return
    error(t, party, code)
    assert t.status(LAWS[party]) is Status.HELD
    t.entries.pop()
    t.wait(6).end()
    assert t.violation(LAWS[party]).due == f"error {code}"


@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_ack_or_error_is_never_answered(party: str) -> None:
    t = connected()
    sender = t.cp if party == "la" else t.la
    sender("ack", payload={}, facts={"schema": SCHEMA})
    t.wait(10).end()
    assert t.status(LAWS[party]) is Status.NOTHING


@pytest.mark.parametrize("party", ["la", "cp"])
def test_a_frame_that_was_held_back_is_judged_where_it_is_let_go(party: str) -> None:
    t = connected()
    n = t.held(wrong(t, party, {"schema": SCHEMA}))
    t.wait(20)
    assert t.status(LAWS[party]) is Status.NOTHING
    t.released(n)
    error(t, party, "schema_violation")
    assert t.status(LAWS[party]) is Status.HELD


@pytest.mark.parametrize("party", ["la", "cp"])
def test_an_error_before_a_held_frame_came_is_too_early(party: str) -> None:
    t = connected()
    n = t.held(wrong(t, party, {"schema": SCHEMA}))
    error(t, party, "schema_violation")
    t.released(n)
    assert t.violation(LAWS[party]).seen == "an error before anything was wrong"


@pytest.mark.parametrize("party", ["la", "cp"])
def test_what_comes_while_a_frame_is_held_is_a_gap(party: str) -> None:
    t = connected()
    sender = t.cp if party == "la" else t.la
    t.held(sender("job.cancel" if party == "la" else "heartbeat", 1))
    sender("job.cancel" if party == "la" else "heartbeat", 2)
    error(t, party, "seq_gap")
    assert t.status(LAWS[party]) is Status.HELD


def test_a_handshake_whose_frame_was_held_back_cannot_be_told() -> None:
    t = Tale()
    t.add(SocketOpened("c1", "/ws", credential="ok"))
    n = t.held(t.register())
    t.hello()
    t.released(n)
    error(t, "cp", "handshake_violation")
    assert t.status("gateway-refusals") is not Status.BROKEN


@pytest.mark.parametrize("party", ["la", "cp"])
def test_what_was_refused_before_a_resume_is_consumed(party: str) -> None:
    t = connected()
    wrong(t, party, {"schema": SCHEMA})
    error(t, party, "schema_violation")
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    wrong(t, party, {"schema": SCHEMA})
    wrong(t, party, {}, 2)
    t.wait(10).end()
    assert t.status(LAWS[party]) is Status.HELD


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.req("SQ-033")
def test_what_was_refused_is_the_frame_with_a_fault_and_not_the_last(party: str) -> None:
    """Those behind it were on their way, and come again as new."""
    t = connected()
    wrong(t, party, {"schema": SCHEMA})
    wrong(t, party, {}, 2)
    error(t, party, "schema_violation")
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    wrong(t, party, {"schema": SCHEMA})
    wrong(t, party, {"schema": SCHEMA}, 2)
    error(t, party, "bad_frame")
    assert t.violation(LAWS[party]).due == "schema_violation"


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize(("before", "status"), [(True, Status.HELD), (False, Status.BROKEN)])
def test_a_refusal_whose_error_was_lost_is_one(party: str, before: bool, status: Status) -> None:
    """The frame comes again, and is then used up with a rejected ack."""
    t = connected()
    n = wrong(t, party, {"schema": SCHEMA} if before else {})
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    wrong(t, party, {"schema": SCHEMA})
    (t.ack_by_la if party == "la" else t.ack_by_cp)(n, "rejected")
    wrong(t, party, {"schema": SCHEMA}, 2)
    error(t, party, "schema_violation")
    assert t.status(LAWS[party]) is status


@pytest.mark.req("SQ-024")
def test_a_copy_that_is_signed_anew_is_no_replay() -> None:
    t = connected()
    t.ack_by_la(wrong(t, "la", {}))
    wrong(t, "la", {}, sha256="2" * 64)
    error(t, "la", "seq_replayed")
    assert t.violation("refusals").seen == "error seq_replayed though all was in order"


# The agent and signatures

BAD = {"present": True, "verified": True, "bound": True, "equal": True, "skewMs": 1}


@pytest.mark.parametrize(
    ("fact", "code"),
    [
        pytest.param({"verified": False}, "unauthorized", marks=pytest.mark.req("SG-008", "WS-077")),
        pytest.param({"bound": False}, "tenant_mismatch", marks=pytest.mark.req("SG-008")),
        pytest.param({"equal": False}, "params_mismatch", marks=pytest.mark.req("SG-008", "WS-073")),
        pytest.param({"skewMs": 70_000}, "unauthorized", marks=pytest.mark.req("SG-008")),
    ],
)
def test_a_bad_signature_in_enforce(fact: Facts, code: str) -> None:
    t = connected()
    wrong(t, "la", {"signature": {**BAD, **fact}})
    error(t, "la", code)
    assert t.status("refusals") is Status.HELD
    t.entries.pop()
    error(t, "la", "bad_frame")
    assert t.status("refusals") is Status.BROKEN


@pytest.mark.req("SG-008")
@pytest.mark.parametrize("came", [0, 1])
def test_a_bad_signature_of_a_frame_that_was_lost_before(came: int) -> None:
    """It is no copy of one that the agent has; of one that it has, it may be told by its copy or by its signature."""
    t = connected()
    wrong(t, "la", {})
    t.close()
    t.connect("c2", resume=(SESSION, came), resumed=True)
    wrong(t, "la", {"signature": {**BAD, "verified": False}})
    error(t, "la", "unauthorized")
    assert t.status("refusals") is Status.HELD


def test_what_follows_a_frame_that_nobody_can_judge_is_no_gap() -> None:
    """Its signature is as old as may be; it was taken, or nothing would follow."""
    t = connected()
    wrong(t, "la", {"signature": {**BAD, "skewMs": 60_000}})
    second = wrong(t, "la", {"signature": BAD}, seq=2)
    t.ack_by_la(second)
    assert t.status("refusals") is not Status.BROKEN


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_a_bad_signature_in_another_mode(mode: str) -> None:
    t = connected(mode)
    wrong(t, "la", {"signature": {**BAD, "verified": False}})
    t.wait(10).end()
    assert t.status("refusals") is Status.NOTHING


# The gateway and the handshake


def strict(t: Tale, mode: str = "client") -> Tale:
    t.add(ParticipantDeclared("gw", "gateway", "double", {"tenantMode": mode}), "run")
    return t


@pytest.mark.req("HS-016")
def test_a_first_frame_that_is_no_register() -> None:
    t = Tale()
    t.hello()
    error(t, "cp", "handshake_violation")
    assert t.status("gateway-refusals") is Status.HELD


@pytest.mark.req("HS-018")
def test_a_second_register() -> None:
    t = connected()
    t.register()
    t.wait(6).end()
    assert t.violation("gateway-refusals").due == "error handshake_violation"


@pytest.mark.req("HS-017")
def test_a_data_frame_before_ready() -> None:
    t = Tale()
    t.register()
    t.la("heartbeat", 1)
    error(t, "cp", "not_ready")
    assert t.status("gateway-refusals") is Status.HELD


@pytest.mark.req("SG-012", "HS-010")
@pytest.mark.parametrize(("tenant", "answered", "status"), [("client", False, "held"), ("client", True, "broken")])
def test_a_strict_tenant_needs_enforce(tenant: str, answered: bool, status: str) -> None:
    t = strict(Tale(), tenant)
    t.mode = "warn"
    t.register()
    t.hello()
    if answered:
        t.ready()
        t.wait(6).end()
    else:
        error(t, "cp", "signature_mode_insufficient")
    assert t.status("gateway-refusals").value == status


def test_a_hosted_tenant_takes_any_mode() -> None:
    t = strict(Tale(), "hosted")
    t.mode = "warn"
    t.connect()
    t.wait(6).end()
    assert t.status("gateway-refusals") is Status.NOTHING


@pytest.mark.req("HS-010", "HS-011", "HS-012")
@pytest.mark.parametrize(("skew", "status"), [(70_000, Status.HELD), (59_000, Status.HELD), (10_000, Status.BROKEN)])
def test_the_skew_of_the_handshake(skew: int, status: Status) -> None:
    t = strict(Tale())
    t.mode = "warn" if skew > 60_000 else "enforce"
    t.register()
    told = {"signatureMode": t.mode}
    t.la("hello", payload=told, facts={"skewMs": skew})
    error(t, "cp", "clock_skew")
    assert t.status("gateway-refusals") is status


@pytest.mark.req("CH-022", "WS-069")
def test_a_chunk_after_the_last() -> None:
    t = connected()
    t.ask(1, "r", JOB)
    t.answer(1, "r")
    t.answer(2, "r")
    error(t, "cp", "chunk_out_of_order")
    assert t.status("gateway-refusals") is Status.HELD
    t.entries.pop()
    error(t, "cp", "chunk_inconsistent")
    assert t.status("gateway-refusals") is Status.BROKEN


def test_an_answer_goes_on_over_connections() -> None:
    t = connected()
    t.ask(1, "r", JOB)
    t.answer(1, "r", 0, 2, 4, 8)
    t.close()
    t.connect("c2", resume=(SESSION, 1), resumed=True, peer_last=1)
    again = t.answer(2, "r", 0, 2, 4, 8)
    error(t, "cp", "chunk_out_of_order")
    assert t.status("gateway-refusals") is Status.HELD
    t.close()
    t.connect("c3", resume=(SESSION, 1), resumed=True, peer_last=1)
    t.answer(2, "r", 0, 2, 4, 8, msg_id=t.msg(again))
    t.answer(3, "r", 1, 2, 4, 8)
    t.wait(9).end()
    assert t.status("gateway-refusals") is Status.HELD


def test_what_came_behind_a_refusal_was_never_read() -> None:
    t = connected()
    wrong(t, "cp", {"schema": SCHEMA})
    error(t, "cp", "schema_violation")
    behind = wrong(t, "cp", {"schema": SCHEMA}, 2)
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    wrong(t, "cp", {"schema": SCHEMA})
    wrong(t, "cp", {"schema": SCHEMA}, 2, msg_id=t.msg(behind))
    error(t, "cp", "schema_violation")
    assert t.status("gateway-refusals") is Status.HELD


@pytest.mark.parametrize(("last", "told"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_resume_that_cannot_be_may_be_refused(last: int, told: bool) -> None:
    t = connected()
    wrong(t, "la", {}, 1)
    t.la("ack", payload={}, ack=1)
    wrong(t, "la", {}, 2)
    t.close()
    t.conn = "c2"
    t.register((SESSION, last))
    error(t, "cp", "handshake_violation")
    assert t.status("gateway-refusals") is (Status.BROKEN if told else Status.HELD)
    t.close()
    t.connect("c3", SESSION_2, resume=(SESSION, 1))
    assert t.status("gateway-resume-rules") is Status.HELD


@pytest.mark.parametrize(("peer_last", "told"), [(0, False), (1, True), (2, False)])
def test_a_ready_that_cannot_be_may_be_refused(peer_last: int, told: bool) -> None:
    t = connected()
    t.la("heartbeat", 1)
    t.cp("ack", payload={}, ack=1)
    t.close()
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=peer_last)
    error(t, "la", "handshake_violation")
    assert t.status("refusals") is (Status.BROKEN if told else Status.HELD)


@pytest.mark.req("HS-018")
def test_a_second_ready_is_out_of_place() -> None:
    t = Tale()
    t.connect()
    t.ready(SESSION)
    t.la("error", payload={"code": "handshake_violation", "retryable": False})
    t.close("remote", 4406)
    assert t.status("refusals") is Status.HELD


@pytest.mark.parametrize("code", [7, {"bytes": 3}, None, ["bad_frame"]])
def test_a_code_of_another_form_does_not_end_the_judging(code: object) -> None:
    t = Tale()
    t.connect()
    t.la("error", payload={"code": code}, facts={"schema": {"keyword": "enum", "path": "/payload/code"}})
    assert t.status("agent-frames-valid") is Status.BROKEN


MALFORMED = {"schema": {"keyword": "required", "path": "payload"}}


def answered(t: Tale, party: str) -> int:
    return error(t, party, "schema_violation")


@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize("name", ["ack", "error"])
@pytest.mark.parametrize(
    ("times", "status"),
    [
        pytest.param(1, Status.BROKEN, marks=pytest.mark.req("WS-085")),
        pytest.param(2, Status.BROKEN, marks=pytest.mark.req("WS-085")),
        (3, Status.NOTHING),
    ],
)
def test_a_malformed_ack_or_error_is_not_answered(party: str, name: str, times: int, status: Status) -> None:
    t = connected()
    for _ in range(times):
        (t.cp if party == "la" else t.la)(name, payload={}, facts=MALFORMED)
    answered(t, party)
    found = t.judged(LAWS[party])
    assert found.status is (Status.HELD if status is Status.NOTHING else status)
    assert [one.seen for one in found.judgement.violations] == (
        ["error schema_violation though all was in order"] if status is Status.BROKEN else []
    )


def test_a_good_ack_begins_the_row_anew() -> None:
    t = connected()
    for facts in (MALFORMED, MALFORMED, {}, MALFORMED):
        t.cp("ack", payload={"status": "duplicate"}, facts=facts)
    answered(t, "la")
    assert t.status("refusals") is Status.BROKEN


def v1_command(t: Tale, party: str, **facts: Any) -> int:
    facts = {"type": "unknown_type", "schema": SCHEMA, **facts}
    return (t.cp if party == "la" else t.la)(None, None, version=None, agent_id=None, facts=facts)


@pytest.mark.req("V1-003")
def test_a_command_of_v1_is_not_refused() -> None:
    t = connected()
    v1_command(t, "la", v1=True)
    error(t, "la", "bad_frame")
    assert t.violation("refusals").seen == "error bad_frame though all was in order"


@pytest.mark.parametrize(("party", "v1", "session"), [("cp", True, True), ("la", False, True), ("la", True, False)])
def test_what_becomes_of_other_messages_without_a_version_cannot_be_told(party: str, v1: bool, session: bool) -> None:
    t = Tale()
    if session:
        t.connect()
    else:
        t.register()
    v1_command(t, party, **({"v1": True} if v1 else {}))
    error(t, party, "bad_frame")
    assert t.status(LAWS[party]) is Status.HELD


def high_ack(t: Tale) -> None:
    t.cp("job.cancel", 1, ack=9999)


def behind_a_rejection(t: Tale) -> None:
    t.ack_by_la(t.assign(), "rejected", ack=1)
    t.cp("job.cancel", 2)


def text_ping(t: Tale) -> None:
    t.add(TextMessage("c1", "cp-to-la", "ping", 4))


def signed_well(t: Tale) -> None:
    t.assign()


@pytest.mark.parametrize(
    ("what", "code"),
    [
        pytest.param(high_ack, "bad_frame", marks=pytest.mark.req("SQ-016")),
        pytest.param(behind_a_rejection, "seq_gap", marks=pytest.mark.req("SQ-012")),
        pytest.param(text_ping, "bad_frame", marks=pytest.mark.req("WS-051")),
        pytest.param(signed_well, "unauthorized", marks=pytest.mark.req("SG-009")),
        pytest.param(signed_well, "params_mismatch", marks=pytest.mark.req("SG-006")),
    ],
)
def test_what_is_in_order_is_not_refused(what: Callable[[Tale], None], code: str) -> None:
    t = connected()
    what(t)
    error(t, "la", code)
    assert t.violation("refusals").seen == f"error {code} though all was in order"
