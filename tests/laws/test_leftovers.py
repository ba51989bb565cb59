"""What must not be left at the end of a run."""

from __future__ import annotations

import pytest

from lab.journal.events import ConnectionLeft, FaultFired, LinkChanged, StepEnded, SutChanged, Undelivered
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "nothing-left-over"


def run(how: str = "command") -> Tale:
    t = Tale(how)
    t.connect()
    t.assign()
    t.post()
    return t


def over(t: Tale, by: str = "remote", code: int | None = 1000, end: str = "completed") -> None:
    t.add(StepEnded(0, "done"), "driver")
    t.wait(0.1).add(SutChanged("la", "stopping"), "sut")
    t.wait(0.1).close(by, code)
    t.end(end)


def test_all_is_done() -> None:
    t = run()
    t.ended()
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "no_change"})
    over(t)
    assert t.status(LAW) is Status.HELD
    assert t.judged(LAW).judgement.judged == 2


@pytest.mark.req("LA-028")
def test_a_job_without_its_result() -> None:
    t = run()
    t.ended()
    t.wait(11)
    over(t)
    assert t.violation(LAW).due == "a job.result"


def test_a_job_that_ended_just_now() -> None:
    t = run()
    t.ended()
    t.wait(3)
    over(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("WS-042")
@pytest.mark.parametrize(("by", "code"), [("none", None), ("remote", 1006), ("remote", 4422)])
def test_a_socket_that_is_not_closed_in_order(by: str, code: int | None) -> None:
    t = run()
    over(t, by, code)
    assert t.violation(LAW).due == "close 1000 or 1001"


@pytest.mark.parametrize("why", ["killed", "attach", "local", "cut", "refused", "refusing"])
def test_a_socket_whose_end_is_not_the_agent_s(why: str) -> None:
    t = run("attach" if why == "attach" else "command")
    t.add(StepEnded(0, "done"), "driver")
    if why == "killed":
        t.add(SutChanged("la", "killed"), "sut")
    elif why == "cut":
        t.wait(0.1).add(LinkChanged("gateway", "cut"), "link")
    elif why in ("refused", "refusing"):
        # What a fault brought about as the run ended.
        (t.cp if why == "refused" else t.la)("error", payload={"code": "seq_gap"})
    by, code = {"local": ("local", None), "refusing": ("remote", 4408)}.get(why, ("none", None))
    t.wait(0.1).close(by, code)
    t.end()
    assert t.status(LAW) in (Status.NOTHING, Status.UNKNOWN)


@pytest.mark.req("SQ-007")
@pytest.mark.parametrize(("fault", "status"), [(False, Status.BROKEN), (True, Status.HELD)])
def test_a_frame_that_was_never_acked(fault: bool, status: Status) -> None:
    t = run()
    if fault:
        t.add(FaultFired("f", "drop", "ack"), "gw")
    t.add(Undelivered("c1", 1, "job.assign", "timeout"))
    over(t)
    assert t.status(LAW) is status


def test_a_frame_that_its_agent_had_to_refuse_is_rightly_never_acked() -> None:
    t = run()
    t.cp("job.cancel", seq=2, facts={"schema": {"keyword": "type", "path": "payload"}})
    t.add(Undelivered("c1", 2, "job.cancel", "agent_offline"))
    over(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("end", ["failed", "interrupted", "lab-failed"])
def test_a_run_that_stopped_early(end: str) -> None:
    t = run()
    t.ended()
    t.wait(20)
    over(t, "none", None, end)
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("A2-061", "LA-028")
def test_a_connection_that_outlives_its_agent() -> None:
    t = run()
    t.add(StepEnded(0, "done"), "driver")
    t.wait(0.1).close("remote", 1000)
    n = t.add(ConnectionLeft("agent2", "agent2-2", 1.0), "run")
    t.end()
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("connection agent2-2 still open 1 s after the agent's end", (n,))
