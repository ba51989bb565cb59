"""What outlives a connection, and what a lost session leaves."""

from __future__ import annotations

import pytest

from lab.protocol.chunks import cut
from lab.protocol.frames import Draft
from lab.protocol.session import AGENT_SENDER, GATEWAY_SENDER, RENEWED_TYPES, SenderLimits, Session
from tests.protocol.sides import CONTRACT, WORKSPACE, event_draft, uuid


def test_limits_of_both_senders() -> None:
    assert SenderLimits(8, 256) == AGENT_SENDER
    assert SenderLimits(16, 256) == GATEWAY_SENDER
    assert {"job.result", "audit.event", "incident.candidate"} == RENEWED_TYPES


@pytest.mark.req("RS-005", "RS-014", "SQ-017")
def test_lost_session_keeps_drafts_without_a_number_but_no_chunk() -> None:
    session = Session(CONTRACT.limits, SenderLimits(1, 256))
    session.session_id, session.fatal_ends = uuid(1), 3
    chunk, _ = cut(b"ab", 1, 1)
    drafts = [event_draft(1), Draft("content.response", {}, WORKSPACE, uuid(9), chunk), event_draft(2)]
    first, second, third = (session.outbound.enqueue(draft) for draft in drafts)
    taken = session.outbound.take()
    assert taken is first
    session.outbound.sent(taken, uuid(2), "raw", 0)
    session.inbound.received(1, uuid(3))
    session.chunks.advance(uuid(9), chunk)
    assert session.lost() == [first, second]
    assert session.outbound.waiting() == (third,)
    assert vars(session)["session_id"] is None
    assert (session.fatal_ends, session.inbound.last_seq) == (0, 0)
    assert session.chunks.refusal(uuid(9), cut(b"ab", 0, 1)[0], 1, 1) is None


@pytest.mark.req("CP-032")
@pytest.mark.parametrize(("given", "kept"), [(None, 512), (4, 4)])
def test_number_of_kept_pairs(given: int | None, kept: int) -> None:
    assert Session(CONTRACT.limits, GATEWAY_SENDER, given).inbound.dedupe_entries == kept
