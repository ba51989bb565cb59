"""What a receiver had before a connection."""

from __future__ import annotations

import pytest

from lab.laws.received import pairs_before, received_before, refused_before, sent_and_acked, series_before
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection
from lab.laws.view import JournalView
from tests.laws.journals import JOB, SESSION, Tale, uuid


def resumed() -> tuple[Tale, JournalView, Connection]:
    """A session of two connections; on the first one a frame was refused."""
    t = Tale()
    t.connect()
    t.ask(1, "r", JOB)
    t.answer(1, "r", 0, 3, 4, 12, ack=1)
    t.answer(2, "r", 2, 3, 4, 12, ack=1)
    t.cp("error", payload={"code": "chunk_out_of_order", "retryable": False})
    t.close()
    t.connect("c2", resume=(SESSION, 1), resumed=True, peer_last=2)
    seen = JournalView(t.entries)
    return t, seen, seen.connections["c2"]


def test_each_side_tells_how_far_it_was() -> None:
    _, seen, second = resumed()
    assert received_before(second, LOCAL_AGENT) == 1
    assert received_before(second, GATEWAY) == 2
    assert received_before(seen.connections["c1"], GATEWAY) == 0


def test_the_pairs_and_the_refused_frame() -> None:
    t, seen, second = resumed()
    session = seen.session_of["c2"]
    pairs = pairs_before(session, second, GATEWAY)
    assert set(pairs) == {1, 2}
    assert refused_before(session, second, GATEWAY) == {(2, pairs[2])}
    assert refused_before(session, second, LOCAL_AGENT) == set()
    assert pairs_before(None, second, GATEWAY) == {}
    assert t.session == SESSION


def test_an_answer_as_far_as_it_was_taken() -> None:
    _, seen, second = resumed()
    session = seen.session_of["c2"]
    series = series_before(session, second, refused_before(session, second, GATEWAY))
    assert {name: (one.due, one.over) for name, one in series.items()} == {uuid("r"): (1, False)}


@pytest.mark.parametrize(("claims", "known"), [(GATEWAY, (2, 0)), (LOCAL_AGENT, (1, 1))])
def test_what_was_sent_and_acked(claims: str, known: tuple[int, int]) -> None:
    _, seen, second = resumed()
    assert sent_and_acked(seen, second, SESSION, claims) == known
    assert sent_and_acked(seen, second, None, claims) == (0, 0)
