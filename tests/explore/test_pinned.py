"""Plans that once broke a promise, or seemed to: each was mended in a law, in the lab or in what is asked of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.commands.loading import load
from lab.explore.plan import Plan, Planned
from lab.explore.trial import try_plan
from lab.faults.plan import Fault, FrameAnchor
from lab.faults.specs import ToxicSpec

SCENARIOS = Path(__file__).parents[2] / "scenarios"


PINNED: tuple[tuple[str, int, Plan], ...] = (
    # a frame that was lost before a resume came again with a broken signature, and was taken for a copy
    (
        "agent2-stream-cut",
        7,
        (
            Planned(0, Fault("1", "tamper", anchor=FrameAnchor("content.request", "gateway", 2, content="job.stream"))),
            Planned(0, Fault("2", "hold", anchor=FrameAnchor("ack", "gateway", of="job.event"), seconds=0.05)),
            Planned(2, Fault("3", "reset", link="gateway")),
        ),
    ),
    # a delay began while acks were on their way
    (
        "gateway-retransmission-exhausted",
        7,
        (
            Planned(0, Fault("1", "reset", link="gateway", anchor=FrameAnchor("ack", "local_agent", of="job.assign"))),
            Planned(0, Fault("2", "hold", anchor=FrameAnchor("ack", "gateway", of="job.result"), seconds=1.0)),
            Planned(
                0,
                Fault(
                    "3",
                    "delay",
                    link="gateway",
                    anchor=FrameAnchor("ack", "gateway", of="audit.event"),
                    seconds=5.0,
                    delay=0.4,
                ),
            ),
        ),
    ),
    # a delay went on behind a reset
    (
        "gateway-retransmission-exhausted",
        7,
        (
            Planned(0, Fault("1", "reset", link="gateway", anchor=FrameAnchor("audit.event", "local_agent"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.assign", "gateway", 3))),
            Planned(
                0,
                Fault(
                    "3",
                    "delay",
                    link="gateway",
                    anchor=FrameAnchor("job.event", "local_agent", 6),
                    seconds=1.0,
                    delay=0.4,
                ),
            ),
            Planned(4, Fault("4", "delay", link="gateway", seconds=20.0, delay=0.4)),
        ),
    ),
    # frames came late to a gateway that had called a timeout
    (
        "lost-ack",
        7,
        (
            Planned(
                0,
                Fault(
                    "1", "delay", link="gateway", anchor=FrameAnchor("hello", "local_agent"), seconds=5.0, delay=0.05
                ),
            ),
            Planned(0, Fault("2", "hold", anchor=FrameAnchor("ack", "gateway", 2, of="job.event"), seconds=0.05)),
            Planned(2, Fault("3", "delay", link="gateway", seconds=1.0, delay=2.0)),
        ),
    ),
    # the session had ended fatally five times, so the agent began a new one
    (
        "oversize-and-junk",
        7,
        (
            Planned(0, Fault("1", "hold", anchor=FrameAnchor("audit.event", "local_agent"), seconds=1.0)),
            Planned(0, Fault("2", "drop", anchor=FrameAnchor("job.assign", "gateway"), times=4)),
            Planned(0, Fault("3", "duplicate", anchor=FrameAnchor("job.assign", "gateway"))),
        ),
    ),
    # a signature was broken twice, with others refused in between
    (
        "oversize-and-junk",
        7,
        (
            Planned(0, Fault("1", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(10, Fault("3", "crash", service="agent2", seconds=2.0)),
        ),
    ),
    # the cancel came for a job that the agent had rejected
    (
        "chat-cancel-early",
        7,
        (
            Planned(0, Fault("1", "duplicate", anchor=FrameAnchor("job.cancel", "gateway"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(1, Fault("3", "crash", service="agent2", seconds=0.5)),
        ),
    ),
    # agent2 never heard the decision: it was told to an agent whose call could not be made
    (
        "chat-cancel-queued",
        7,
        (
            Planned(2, Fault("1", "reset", link="gateway")),
            Planned(9, Fault("2", "cut", link="agent2", seconds=1.0)),
        ),
    ),
    # the job was over when its cancel came
    (
        "chat-cancel",
        7,
        (
            Planned(
                0,
                Fault(
                    "1", "delay", link="gateway", anchor=FrameAnchor("job.assign", "gateway"), seconds=5.0, delay=2.0
                ),
            ),
        ),
    ),
    # the crash of the scenario struck another job, for which no outcome was promised
    ("agent2-crash", 7, (Planned(2, Fault("1", "cut", link="gateway", seconds=12.0)),)),
    # the assignment was lost, and then the agent could not announce chat any more
    (
        "chat-16k-input",
        7,
        (
            Planned(0, Fault("1", "reset", link="gateway", anchor=FrameAnchor("hello", "local_agent"))),
            Planned(4, Fault("2", "crash", service="agent2", seconds=8.0)),
        ),
    ),
    # the rejection of the job was lost, and the ack of the next copy said duplicate
    (
        "fix-job",
        1,
        (
            Planned(0, Fault("1", "drop", anchor=FrameAnchor("ack", "local_agent", of="job.assign"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(0, Fault("3", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
        ),
    ),
    # what a delay had held back came all at once when it was over
    (
        "lost-ack",
        1,
        (
            Planned(0, Fault("1", "drop", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(0, Fault("2", "cut", link="agent2", anchor=FrameAnchor("ready", "gateway"), seconds=0.1)),
            Planned(
                0,
                Fault(
                    "3",
                    "delay",
                    link="gateway",
                    anchor=FrameAnchor("job.result", "local_agent"),
                    seconds=1.0,
                    delay=2.0,
                ),
            ),
            Planned(2, Fault("4", "cut", link="gateway", seconds=3.0)),
        ),
    ),
    # the cancel was refused for its signature, and had to be given again
    (
        "chat-cancel-queued",
        1,
        (
            Planned(0, Fault("1", "drop", anchor=FrameAnchor("job.event", "local_agent"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.cancel", "gateway"))),
            Planned(0, Fault("3", "hold", anchor=FrameAnchor("ack", "local_agent", of="content.request"), seconds=6.0)),
            Planned(0, Fault("4", "tamper", anchor=FrameAnchor("job.cancel", "gateway"))),
        ),
    ),
    # the fifth error that ended the session was lost with its socket
    (
        "oversize-and-junk",
        1,
        (
            Planned(0, Fault("1", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(0, Fault("2", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(0, Fault("3", "cut", link="gateway", anchor=FrameAnchor("job.assign", "gateway"), seconds=1.0)),
        ),
    ),
    # the error that refused a frame crossed the gateway's close, and the frame came again
    (
        "gateway-retransmission-exhausted",
        1,
        (
            Planned(0, Fault("1", "tamper", anchor=FrameAnchor("job.assign", "gateway", 4))),
            Planned(
                0,
                Fault(
                    "2", "delay", link="gateway", anchor=FrameAnchor("job.assign", "gateway"), seconds=1.0, delay=0.4
                ),
            ),
            Planned(0, Fault("3", "tamper", anchor=FrameAnchor("job.assign", "gateway", 5))),
            Planned(3, Fault("4", "crash", service="agent2", seconds=0.5)),
        ),
    ),
    # a program that stood still called the handshake too late, with its ready unread
    (
        "oversize-and-junk",
        3,
        (Planned(1, Fault("1", "pause", process="local_agent", seconds=25.0)),),
    ),
    # a program that stood still acked when it went on, long after the time for it
    (
        "chat-answer",
        3,
        (
            Planned(2, Fault("1", "pause", process="local_agent", seconds=25.0)),
            Planned(4, Fault("2", "delay", link="gateway", seconds=1.0, delay=0.05)),
        ),
    ),
    # a program that stood still sent again before it read the ack
    (
        "chat-answer",
        3,
        (
            Planned(0, Fault("1", "hold", anchor=FrameAnchor("ack", "gateway", of="job.result"), seconds=1.0)),
            Planned(4, Fault("2", "pause", process="local_agent", seconds=5.0)),
        ),
    ),
    # a new process was told to cancel a job of the one before
    (
        "chat-cancel-early",
        3,
        (
            Planned(0, Fault("1", "tamper", anchor=FrameAnchor("job.assign", "gateway"))),
            Planned(2, Fault("2", "reset", link="agent2")),
            Planned(2, Fault("3", "kill", process="local_agent", seconds=0.1)),
        ),
    ),
    # a link let go of all copies of a frame at once, when what had held them was gone
    (
        "fix-job",
        5,
        (
            Planned(
                0,
                Fault(
                    "1",
                    "toxic",
                    link="gateway",
                    anchor=FrameAnchor("audit.event", "local_agent"),
                    seconds=30.0,
                    toxics=(ToxicSpec("black_hole", stream="upstream"),),
                ),
            ),
        ),
    ),
)


@pytest.mark.parametrize(
    ("scenario", "seed", "plan"), PINNED, ids=[f"{name}-{at}" for at, (name, _, _) in enumerate(PINNED)]
)
def test_a_plan_that_was_mended_breaks_nothing(scenario: str, seed: int, plan: Plan) -> None:
    """Its faults strike as they did, and no law accuses anyone."""
    tried = try_plan(load(SCENARIOS / f"{scenario}.yaml"), plan, seed)
    assert (tried.broken, tried.said) == ((), ())
    assert {planned.fault.id for planned in plan} <= set(tried.fired)
