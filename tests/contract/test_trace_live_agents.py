"""Live grading of Local Agents over real sockets: the reference passes, and those that are wrong are told so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.contract.trace_grades import CaseResult, Grade
from lab.contract.trace_live import play_live
from lab.contract.trace_peers import reference_agent
from lab.contract.trace_run import for_peer, new_context
from lab.contract.traces import Side
from lab.localagent import gateway_link
from lab.protocol.agent_side import AgentConnection
from lab.protocol.connection import Connection
from lab.protocol.reliability import Outbound
from tests.contract.test_trace_core import Patch, mute, replaced, swap
from tests.contract.test_traces import BY_NAME, FOLDER

PATIENCE = 10.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference agent connects again at once."""
    monkeypatch.setattr(gateway_link, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(gateway_link, "LONGEST_WAIT", 0.002)


async def with_agent(name: str, home: Path, patience: float = PATIENCE) -> CaseResult:
    async with reference_agent(new_context(), FOLDER, "2.3", patience, home) as peer:
        return await play_live(BY_NAME[name], peer)


async def test_the_reference_agent_passes(tmp_path: Path) -> None:
    results = []
    async with reference_agent(new_context(), FOLDER, "2.3", PATIENCE, tmp_path) as peer:
        for trace in for_peer(list(BY_NAME.values()), Side.LA):
            results.append(await play_live(trace, peer))
    assert len(results) == 9
    assert [result for result in results if result.grade is not Grade.PASS or not result.close_as_due] == []


def restarting(patch: pytest.MonkeyPatch) -> None:
    """After a resume it goes on with a number too many."""
    right = Outbound.resume

    def resume(self: Outbound, peer_last_seq: int, now: float) -> Any:
        found = right(self, peer_last_seq, now)
        self.next_seq += 1
        return found

    patch.setattr(Outbound, "resume", resume)


@pytest.mark.parametrize(
    ("name", "wrong", "grade", "seen"),
    [
        ("invalid-seq-gap", mute("seq_gap"), Grade.FAIL, "acked accepted"),
        (
            "invalid-sig-tenant-mismatch",
            swap("tenant_mismatch", "unauthorized"),
            Grade.PASS,
            "refused with unauthorized",
        ),
        (
            "invalid-params-raw-differs-from-payload",
            swap("params_mismatch", "unauthorized"),
            Grade.NON_STRICT,
            "refused",
        ),
        ("invalid-frame-over-48kib", replaced(gateway_link, "MAX_MESSAGE_BYTES", 49152), Grade.NON_STRICT, "closed"),
        ("valid-resume-continues-seq", restarting, Grade.FAIL, "its heartbeat has seq 3 where 2 is due"),
        (
            "valid-resume-continues-seq",
            replaced(AgentConnection, "_impossible", lambda *_: True),
            Grade.FAIL,
            "refused",
        ),
        ("valid-content-chunks-in-order", replaced(Connection, "accept", lambda *_: None), Grade.FAIL, "no ack came"),
    ],
)
async def test_an_agent_that_is_wrong_is_told_so(
    name: str, wrong: Patch, grade: Grade, seen: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong(monkeypatch)
    result = await with_agent(name, tmp_path, 2.0)
    assert (result.grade, result.seen.startswith(seen)) == (grade, True), result


async def test_an_agent_that_never_sends_again_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its next heartbeats are no copy of the one whose ack was lost."""
    monkeypatch.setattr(Connection, "_retransmit", lambda *_: None)
    monkeypatch.setattr(Outbound, "deadline", lambda *_: None)
    result = await with_agent("valid-retransmit-is-idempotent", tmp_path, 1.5)
    assert (result.grade, result.seen) == (Grade.FAIL, "no heartbeat came, though the peer answers")


async def test_an_agent_that_declines_is_not_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.localagent.work.AgentWork.serves", lambda *_: False)
    result = await with_agent("valid-content-chunks-in-order", tmp_path)
    assert result.grade is Grade.NON_STRICT
    assert "acked rejected with protocol_unsupported where accepted is due" in result.seen
