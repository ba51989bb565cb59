"""What a gateway has got, by its own answer, when something was refused on the way; and what it does not send again."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.journals import SESSION, Tale

LAW = "gateway-resume-rules"
SCHEMA = {"schema": {"keyword": "type", "path": "payload"}}


def refused() -> Tale:
    """A session whose second frame was refused by the gateway."""
    t = Tale()
    t.connect()
    t.ack_by_cp(t.la("heartbeat", 1), ack=1)
    t.la("heartbeat", 2, facts=SCHEMA)
    t.cp("error", payload={"code": "schema_violation", "retryable": False})
    t.close("local", 4402)
    return t


@pytest.mark.req("SQ-033", "RS-020")
@pytest.mark.parametrize(("said", "status"), [(1, Status.HELD), (2, Status.BROKEN), (0, Status.BROKEN)])
def test_a_refused_frame_does_not_count(said: int, status: Status) -> None:
    t = refused()
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=said)
    assert t.status(LAW) is status


@pytest.mark.req("SQ-033")
def test_what_followed_a_refused_frame_does_not_count() -> None:
    t = refused()
    t.entries.pop()
    t.la("heartbeat", 3)
    t.close("local", 4402)
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("facts", [SCHEMA, {}])
def test_a_refused_frame_counts_once_it_came_again(facts: dict[str, object]) -> None:
    t = refused()
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
    t.ack_by_cp(t.la("heartbeat", 2, facts=facts), "rejected", ack=2)
    t.close()
    t.connect("c3", resume=(SESSION, 0), resumed=True, peer_last=2)
    assert t.status(LAW) is Status.HELD


def test_an_error_of_which_nobody_knows_the_cause_cannot_be_told() -> None:
    t = Tale()
    t.connect()
    t.ack_by_cp(t.la("heartbeat", 1), ack=1)
    t.cp("error", payload={"code": "internal", "retryable": False})
    t.cp("error", payload={"code": "schema_violation", "retryable": False})
    t.close("local", 4402)
    before = t.judged(LAW).judgement.unsure
    t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=7)
    assert t.judged(LAW).judgement.unsure == before + 1


@pytest.mark.req("RS-004")
def test_what_the_agent_has_does_not_come_again() -> None:
    t = Tale()
    t.connect()
    t.cp("job.cancel", 1)
    t.cp("job.cancel", 2)
    t.close()
    ready = t.connect("c2", resume=(SESSION, 1), resumed=True)
    n = t.cp("job.cancel", 1)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("seq 1 again after lastRecvSeq 1", (ready, n))


def test_what_the_lab_delivers_again_is_not_the_gateways() -> None:
    t = Tale()
    t.connect()
    t.cp("job.cancel", 1)
    t.close()
    t.connect("c2", resume=(SESSION, 1), resumed=True)
    t.cp("job.cancel", 1, fate="copied", fault="f")
    assert t.status(LAW) is Status.HELD
