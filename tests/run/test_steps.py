"""Each kind of step: when it is done, how it fails, and what it says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.errors import LabError, MisuseError, NotApplicable, SutFault
from lab.faults.plan import FAULT_KINDS, Fault, FrameAnchor
from lab.gateway.jobs import CallRefused, Job
from lab.journal.events import (
    Defect,
    FaultEnded,
    FaultFired,
    FaultPlanned,
    SessionChanged,
    SocketOpened,
    SocketRefused,
    StepEnded,
    StepStarted,
)
from lab.run.driver import Driver
from lab.run.step_course import StepFailed
from lab.run.step_words import describe
from lab.run.steps import StepRunner
from lab.run.world import World
from lab.scenario.model import (
    ApproveStep,
    AssignStep,
    CancelStep,
    ContentStep,
    FaultStep,
    IdleStep,
    InjectStep,
    ResultStep,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step
from tests.run.made import context, scenario

AGENT = "local_agent"
READY = WaitStep(3, 5.0, AGENT, "ready")
CUT = Fault("f", "cut", "gateway", seconds=3.0, line=4)
CRASH = Fault("h", "crash", seconds=2.0, service="agent2", line=6)
INJECTED = Fault("inject.0", "inject", socket=AGENT, line=6)
ARMED = Fault("g", "drop", anchor=FrameAnchor("ack", "gateway", of="job.result"), line=5)


class FakeSut:
    """Lives until it is told otherwise."""

    name = AGENT

    def __init__(self, patience: float = 0.0) -> None:
        self.patience = patience
        self.how: str | None = None

    def death(self) -> str | None:
        return self.how


class Bench:
    """A step runner before a world that the test moves."""

    def __init__(self, *steps: Step, patience: float = 0.0, **members: Any) -> None:
        self.ctx = context()
        self.ready = False
        self.sut = FakeSut(patience)
        self.struck: list[Fault] = []
        self.armed: list[Fault] = []
        self.calls: list[tuple[object, ...]] = []
        self.job = Job("job-1", "chat", "agent", "job-1")
        self.follower = SimpleNamespace(events=[], pages=0, done=False, odd=[])
        self.assigned = SimpleNamespace(job=self.job, follower=self.follower, failure=None)
        self.reading = SimpleNamespace(chunks=3, code=None, over=False)
        self.opening = SimpleNamespace(view=None, failure=None, over=False)
        self.refuses: str | None = None
        core = SimpleNamespace(is_ready=lambda _agent: self.ready)
        core.max_frame_bytes = 49_152
        watch = SimpleNamespace(arm=self.armed.append)
        gateway = SimpleNamespace(core=core, faults=SimpleNamespace(watch=watch), inject=self._inject)
        self.crashed: list[Fault] = []

        async def crash(fault: Fault) -> None:
            self.crashed.append(fault)

        world = SimpleNamespace(
            services=SimpleNamespace(strike=crash),
            gateways={"gateway": gateway},
            suts={AGENT: self.sut},
            faults=SimpleNamespace(strike=self.struck.append, settled=self._settled),
            identity=SimpleNamespace(tenant_id="tenant", agents={AGENT: SimpleNamespace(agent_id="agent")}),
        )
        driver = SimpleNamespace(
            jobs={},
            job=lambda _label: self.assigned,
            follow=lambda _label: self.assigned,
            open_session=lambda _label: self.opening,
            assign=self._assign,
            read_content=self._read_content,
            cancel=lambda *call: self.calls.append(("cancel", *call)),
            approve=lambda *call: self.calls.append(("approve", *call)),
        )
        self.runner = StepRunner(self.ctx, scenario(steps, **members), cast(World, world), cast(Driver, driver))

    async def _settled(self, fault: Fault) -> None:
        assert self.struck[-1] is fault

    def _assign(self, _step: AssignStep) -> Job:
        if self.refuses is not None:
            raise CallRefused(self.refuses, "no")
        return self.job

    def _read_content(self, *call: object) -> SimpleNamespace:
        self.calls.append(("read_content", *call))
        return self.reading

    def _inject(self, *call: object) -> None:
        if self.refuses is not None:
            raise CallRefused(self.refuses, "no")
        self.calls.append(("inject", *call))

    def tell(self, event: Any = None) -> None:
        """An entry, after which conditions are looked at again."""
        self.ctx.journal.record("gateway", event or FaultEnded("any"))

    def session(self, state: str, **detail: Any) -> None:
        self.ready = state in ("ready", "resumed")
        self.tell(SessionChanged("c1", state, AGENT, None, detail))

    def last(self) -> StepEnded:
        return next(entry.event for entry in reversed(self.ctx.journal.entries) if isinstance(entry.event, StepEnded))

    async def run(self, *moves: Any) -> None:
        """Run the steps; each move is made when the runner waits."""
        running = asyncio.create_task(self.runner.run())
        for move in moves:
            for _ in range(4):
                await asyncio.sleep(0)
            assert not running.done(), "nothing is waited for"
            move()
        await asyncio.wait_for(running, 10)

    async def fails(self, error: type[LabError], words: str, *moves: Any) -> None:
        """Run the steps to their early end."""
        with pytest.raises(error) as caught:
            await self.run(*moves)
        assert words in str(caught.value)
        assert self.last().outcome == "failed"


def anchored(kind: str) -> FaultStep:
    return FaultStep(1, None, Fault("f", kind, "gateway", FrameAnchor("ack", "gateway")))


@pytest.mark.parametrize(
    ("step", "kind", "title"),
    [
        (READY, "wait", "local agent ready"),
        (WaitStep(1, None, "job.q1", "ended"), "wait", "job q1 ended"),
        (WaitStep(1, None, "fault.f", "fired"), "wait", "fault f fired"),
        (AssignStep(1, None, "q1", "chat"), "assign", "assign q1 (chat)"),
        (CancelStep(1, None, "q1"), "cancel", "cancel q1"),
        (StreamStep(1, None, "q1", 40), "stream", "stream q1 to 40 events"),
        (StreamStep(1, None, "q1", None), "stream", "stream q1 to its end"),
        (SessionStep(1, None, "q1"), "session", "conversation q1"),
        (ResultStep(1, None, "q1"), "result", "result of q1"),
        (ApproveStep(1, None, "q1", "deny"), "approve", "deny q1"),
        (IdleStep(1, None, 1.5), "idle", "1.5 s pass"),
        (ContentStep(1, None, "q1", "job.stream", 1.5), "content", "job.stream of q1, a chunk every 1.5 s"),
        (InjectStep(1, None, INJECTED, AGENT, junk="no-json"), "inject", "no-json sent to local agent"),
        (InjectStep(1, None, INJECTED, AGENT, text="{}"), "inject", "a text sent to local agent"),
        (FaultStep(1, None, CUT), "fault", "gateway link cut, 3 s"),
        (FaultStep(1, None, CRASH), "fault", "agent2 crash, 2 s"),
        (FaultStep(1, None, ARMED), "fault", "ack of job.result #1 from gateway drop"),
        (anchored("reset"), "fault", "gateway link reset after ack #1 from gateway"),
    ],
)
def test_titles(step: Step, kind: str, title: str) -> None:
    """What the terminal shows of each."""
    assert describe(step) == (kind, title)


async def test_a_kind_that_nobody_knows_is_the_labs_mistake() -> None:
    """Not the scenario's."""
    with pytest.raises(MisuseError):
        describe(Step(1, None))
    with pytest.raises(MisuseError):
        await Bench().runner._do(Step(1, None))


async def test_steps_are_told_as_they_go() -> None:
    """Number, kind, title, line; how each ended, with its note."""
    bench = Bench(READY, FaultStep(9, None, ARMED))
    await bench.run(lambda: bench.session("ready", revision="2.3", capabilities=["job.chat"]))
    told = [entry.event for entry in bench.ctx.journal.entries if isinstance(entry.event, StepStarted | StepEnded)]
    assert told == [
        StepStarted(0, "wait", "local agent ready", 3),
        StepEnded(0, "done", "v2 2.3 · job.chat"),
        StepStarted(1, "fault", "ack of job.result #1 from gateway drop", 9),
        StepEnded(1, "done", "armed"),
    ]


async def test_faults_are_planned_and_then_struck_or_armed() -> None:
    """With what they excuse."""
    bench = Bench(FaultStep(4, None, CUT), FaultStep(5, None, ARMED))
    await bench.run()
    assert (bench.struck, bench.armed) == ([CUT], [ARMED])
    planned = [entry.event for entry in bench.ctx.journal.entries if isinstance(entry.event, FaultPlanned)]
    assert [(one.fault, one.what, one.line, one.excuses) for one in planned] == [
        ("f", "cut", 4, FAULT_KINDS["cut"].excuses),
        ("g", "drop", 5, FAULT_KINDS["drop"].excuses),
    ]


async def test_a_service_is_struck_at_once() -> None:
    """And not as a link is."""
    bench = Bench(FaultStep(6, None, CRASH))
    await bench.run()
    assert (bench.crashed, bench.struck, bench.armed) == ([CRASH], [], [])
    planned = [entry.event for entry in bench.ctx.journal.entries if isinstance(entry.event, FaultPlanned)]
    assert [(one.fault, one.what, one.target, one.line) for one in planned] == [("h", "crash", "service agent2", 6)]


@pytest.mark.parametrize(
    ("told", "sent"),
    [({"text": "{}"}, "{}"), ({"junk": "no-json"}, "this is no JSON"), ({"junk": "binary"}, b"\x00\x01\x02\x03")],
)
async def test_a_message_is_planned_as_a_fault_and_injected(told: dict[str, str], sent: str | bytes) -> None:
    """With what it excuses; a resume counts from it on."""
    bench = Bench(InjectStep(6, None, INJECTED, AGENT, **told))
    bench.session("resumed")
    await bench.run()
    assert bench.calls == [("inject", "agent", sent, INJECTED)]
    planned = [entry.event for entry in bench.ctx.journal.entries if isinstance(entry.event, FaultPlanned)]
    assert planned == [FaultPlanned("inject.0", "inject", AGENT, 6, FAULT_KINDS["inject"].excuses)]
    assert not bench.runner._conditions.has_resumed(AGENT)


async def test_a_message_cannot_be_injected_without_a_connection() -> None:
    """The step says so."""
    bench = Bench(InjectStep(6, None, INJECTED, AGENT, text="{}"))
    bench.refuses = "AGENT_OFFLINE"
    await bench.fails(StepFailed, "nothing could be sent")


@pytest.mark.parametrize(
    ("fails", "code", "words"),
    [
        (None, None, "3 chunks"),
        ("rate_limited", "rate_limited", "3 chunks, then rate_limited, as it must be"),
    ],
)
async def test_content_is_read_to_its_end(fails: str | None, code: str | None, words: str) -> None:
    """Whole, or as far as it must be."""
    bench = Bench(ContentStep(7, 5.0, "q1", "job.stream", 0.5, fails))

    def end() -> None:
        bench.reading.over, bench.reading.code = True, code
        bench.tell()

    await bench.run(end)
    assert (bench.calls, bench.last().note) == ([("read_content", "q1", "job.stream", 0.5)], words)


@pytest.mark.parametrize(
    ("fails", "code", "words"),
    [
        (None, "timeout", "timeout after 3 chunks, a whole answer was due"),
        ("rate_limited", None, "a whole answer after 3 chunks, rate_limited was due"),
    ],
)
async def test_content_that_ends_otherwise_fails(fails: str | None, code: str | None, words: str) -> None:
    """What came, and what was due."""
    bench = Bench(ContentStep(7, 5.0, "q1", "job.stream", 0.5, fails))
    bench.reading.over, bench.reading.code = True, code
    await bench.fails(StepFailed, words)


async def test_v1_is_waited_for() -> None:
    """Until the connection goes on in it."""
    bench = Bench(WaitStep(5, 5.0, AGENT, "v1"))
    await bench.run(lambda: bench.session("v1"))
    assert bench.last().note == "on the same connection"


async def test_a_resume_must_follow_the_fault() -> None:
    """An older one does not count, nor one that is lost again."""
    bench = Bench(FaultStep(4, None, CUT), WaitStep(5, 5.0, AGENT, "resumed"))
    bench.session("resumed")
    running = asyncio.create_task(bench.runner.run())
    for state in ("ended", "ready", "ended"):
        await asyncio.sleep(0)
        bench.session(state)
    await asyncio.sleep(0)
    assert not running.done()
    bench.session("resumed", sentAgain=3)
    await asyncio.wait_for(running, 10)
    assert bench.last().note == "resumed:true · 3 gateway frames sent again"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ((), "it never connected to the gateway"),
        ((SocketRefused(401, "x"), SocketRefused(401, "x")), "2 connections came with a credential"),
        ((SocketOpened("c1", "/agent", AGENT),), "it connected but did not register"),
        ((SessionChanged("c1", "ready", AGENT), SessionChanged("c1", "ended", AGENT)), "went ready → ended"),
    ],
)
async def test_an_agent_that_does_not_come(before: tuple[Any, ...], words: str) -> None:
    """The step says how far it got."""
    bench = Bench(WaitStep(3, 0.01, AGENT, "ready"))
    for event in before:
        bench.tell(event)
    await bench.fails(StepFailed, f"not within 0.01 s: {'its session ' if 'went' in words else ''}{words}")


@pytest.mark.parametrize("condition", ["disconnected", "refused"])
async def test_an_end_that_is_waited_for_may_be_the_agents(condition: str) -> None:
    """Its death is one, and later steps do not mind it."""
    bench = Bench(WaitStep(3, 5.0, AGENT, condition), IdleStep(4, None, 0.001))
    bench.ready = True

    def die() -> None:
        bench.sut.how = "it died"
        bench.tell()

    await bench.run(die)
    notes = [entry.event.note for entry in bench.ctx.journal.entries if isinstance(entry.event, StepEnded)]
    assert notes == ["it ended", ""]


@pytest.mark.parametrize(("came_up", "error"), [(False, SutFault), (True, StepFailed)])
@pytest.mark.parametrize("step", [READY, IdleStep(4, None, 30.0), StreamStep(4, 30.0, "q1", None)])
async def test_a_death_ends_any_step(step: Step, came_up: bool, error: type[LabError]) -> None:
    """One that was never ready could not begin; one that was has broken its promise. The journal has no last words."""
    bench = Bench(step)
    if came_up:
        bench.session("ready")
        bench.session("ended")

    def die() -> None:
        bench.sut.how = "it died; its last lines:\n  the prompt"
        bench.tell()

    await bench.fails(error, "  the prompt", die)
    assert bench.last().note == "it died; its last lines:"


async def test_a_death_behind_the_last_step_counts() -> None:
    """No step noticed it."""
    bench = Bench(FaultStep(4, None, CUT))
    bench.sut.how = "it died"
    with pytest.raises(SutFault, match="it died"):
        await bench.run()


async def test_a_condition_that_holds_goes_before_a_death() -> None:
    """What was waited for has come."""
    bench = Bench(ResultStep(4, 5.0, "q1"))
    bench.job.result, bench.job.results, bench.sut.how = {"outcome": "no_change"}, 1, "it died"
    with pytest.raises(SutFault):
        await bench.run()
    assert bench.last() == StepEnded(0, "done", "no_change")


async def test_a_defect_of_the_lab_ends_any_step() -> None:
    """As it is."""
    bench = Bench(IdleStep(4, None, 30.0))
    error = ValueError("x")
    with pytest.raises(ValueError, match="x"):
        await bench.run(lambda: bench.ctx.fail(error))
    assert any(isinstance(entry.event, Defect) for entry in bench.ctx.journal.entries)


async def test_a_step_that_is_interrupted_says_so() -> None:
    """And the interruption goes on."""
    bench = Bench(IdleStep(4, None, 30.0))
    running = asyncio.create_task(bench.runner.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.last() == StepEnded(0, "interrupted")


async def test_what_the_scenario_requires_must_be_announced() -> None:
    """Else it is not applicable; `reference` is no capability."""
    wanted = ("reference", "job.chat", "job.options")
    bench = Bench(READY, requires=wanted)
    missing = "not applicable: local_agent does not announce job.options"
    await bench.fails(NotApplicable, missing, lambda: bench.session("ready", capabilities=["job.chat"]))
    able = Bench(READY, requires=wanted)
    await able.run(lambda: able.session("ready", capabilities=["job.chat", "job.options"]))


@pytest.mark.parametrize(
    ("event", "shown"),
    [(SocketOpened("c1", "/agent", AGENT), True), (SocketRefused(401, "x"), True), (FaultEnded("x"), False)],
)
async def test_a_program_has_time_to_arrive(event: Any, shown: bool) -> None:
    """Until its gateway hears of it; then its patience is over."""
    bench = Bench(patience=10.0 if shown else 0.01)
    arriving = asyncio.create_task(bench.runner.await_arrivals())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not arriving.done()
    bench.tell(event)
    if shown:
        await asyncio.wait_for(arriving, 10)
    else:
        with pytest.raises(SutFault, match=r"nothing came within 0\.01 s of its start"):
            await arriving


async def test_a_reference_agent_is_not_waited_for() -> None:
    """Its steps say what is due of it."""
    await asyncio.wait_for(Bench().runner.await_arrivals(), 10)


@pytest.mark.parametrize(
    ("condition", "state", "words"),
    [
        ("accepted", {"answer": "accepted"}, None),
        ("accepted", {"results": 1}, None),
        ("accepted", {"answer": "rejected", "code": "rate_limited"}, "rejected (rate_limited), accepted was due"),
        ("rejected", {"answer": "rejected", "code": "rate_limited"}, None),
        ("rejected", {"answer": "accepted"}, "accepted, rejected was due"),
        ("running", {"state": "running"}, None),
        ("running", {"results": 1}, None),
        ("ended", {"results": 1}, None),
        ("ended", {"answer": "rejected"}, None),
        ("cancelled", {"results": 1, "result": {"outcome": "cancelled"}}, None),
        ("cancelled", {"results": 1, "result": {"outcome": "failed"}}, "the job ended failed, cancelled was due"),
        ("cancelled", {"answer": "rejected"}, "the job ended rejected, cancelled was due"),
    ],
)
async def test_waiting_for_a_job(condition: str, state: dict[str, Any], words: str | None) -> None:
    """Each condition, and the answer that was not due."""
    bench = Bench(WaitStep(3, 5.0, "job.q1", condition))

    def move() -> None:
        for name, value in state.items():
            setattr(bench.job, name, value)
        bench.tell()

    if words is None:
        await bench.run(move)
    else:
        await bench.fails(StepFailed, words, move)


async def test_waiting_for_a_fault() -> None:
    """That one, not another."""
    bench = Bench(WaitStep(3, 5.0, "fault.f", "fired"))
    await bench.run(
        lambda: bench.tell(FaultFired("other", "cut", "link x")), lambda: bench.tell(FaultFired("f", "cut", "link x"))
    )


@pytest.mark.parametrize(
    ("refuses", "fails", "words"),
    [
        (None, None, None),
        ("AGENT_OFFLINE", "AGENT_OFFLINE", None),
        ("AGENT_OFFLINE", None, "the gateway refused the job: AGENT_OFFLINE"),
        ("AGENT_OFFLINE", "AGENT_UNSUPPORTED", "the gateway refused the job: AGENT_OFFLINE"),
        (None, "AGENT_UNSUPPORTED", "the gateway took the job, AGENT_UNSUPPORTED was due"),
    ],
)
async def test_an_assign(refuses: str | None, fails: str | None, words: str | None) -> None:
    """Taken or refused, as it was due or not."""
    bench = Bench(AssignStep(3, None, "q1", "chat", fails=fails))
    bench.refuses = refuses
    if words is None:
        await bench.run()
    else:
        await bench.fails(StepFailed, words)


@pytest.mark.parametrize(
    ("goal", "state", "note", "words"),
    [
        (2, {"events": ["a", "b"], "pages": 1}, "2 events in 1 pages", None),
        (2, {"events": ["a"], "pages": 1, "done": True}, "", "the stream ended after 1 events, 2 were due"),
        (None, {"events": ["a"], "pages": 2, "done": True}, "1 events in 2 pages", None),
        (None, {"events": ["a"], "done": True, "odd": ["x"]}, "1 events in 0 pages · 1 out of place", None),
    ],
)
async def test_a_stream(goal: int | None, state: dict[str, Any], note: str, words: str | None) -> None:
    """To a number of events, or to its end."""
    bench = Bench(StreamStep(3, 5.0, "q1", goal))

    def move() -> None:
        vars(bench.follower).update(state)
        bench.tell()

    if words is None:
        await bench.run(move)
        assert bench.last().note == note
    else:
        await bench.fails(StepFailed, words, move)


async def test_a_stream_that_fails_or_is_slow() -> None:
    """With what there was."""
    bench = Bench(StreamStep(3, 5.0, "q1", None))
    bench.assigned.failure = StepFailed("job.stream was answered forbidden")
    await bench.fails(StepFailed, "job.stream was answered forbidden")
    slow = Bench(StreamStep(3, 0.01, "q1", 40))
    slow.follower.events, slow.follower.pages = ["a"] * 7, 2
    await slow.fails(StepFailed, "not within 0.01 s: 40 events of the stream; 7 events in 2 pages came")


async def test_a_conversation() -> None:
    """With its number of turns, or why it did not come."""
    bench = Bench(SessionStep(3, 5.0, "q1"))

    def come() -> None:
        bench.opening.view, bench.opening.over = SimpleNamespace(turns=[1, 2], truncated=True), True
        bench.tell()

    await bench.run(come)
    assert bench.last().note == "2 turns, truncated"
    failed = Bench(SessionStep(3, 5.0, "q1"))
    failed.opening.failure, failed.opening.over = StepFailed("chat.session was answered error"), True
    await failed.fails(StepFailed, "chat.session was answered error")
    slow = Bench(SessionStep(3, 0.01, "q1"))
    await slow.fails(StepFailed, "not within 0.01 s: no answer came")


@pytest.mark.parametrize(
    ("state", "note", "words"),
    [
        ({"result": {"outcome": "no_change"}, "results": 1}, "no_change", None),
        ({"result": {"outcome": "failed", "errorCode": "infra"}, "results": 1}, "failed (infra)", None),
        ({"answer": "rejected", "code": "rate_limited"}, "", "the job was rejected (rate_limited); it has no result"),
    ],
)
async def test_a_result(state: dict[str, Any], note: str, words: str | None) -> None:
    """As job.result says it."""
    bench = Bench(ResultStep(3, 5.0, "q1"))
    for name, value in state.items():
        setattr(bench.job, name, value)
    if words is None:
        await bench.run()
        assert bench.last().note == note
    else:
        await bench.fails(StepFailed, words)


async def test_an_approval_waits_until_it_is_asked_for() -> None:
    """And fails when the job ends without."""
    bench = Bench(ApproveStep(3, 5.0, "q1", "deny"), CancelStep(4, None, "q1", "user"))

    def ask() -> None:
        bench.job.approval_id = "ap-1"
        bench.tell()

    await bench.run(ask)
    assert bench.calls == [("approve", "q1", "deny"), ("cancel", "q1", "user")]
    never = Bench(ApproveStep(3, 5.0, "q1", "deny"))
    never.job.results = 1
    await never.fails(StepFailed, "job q1 ended without asking for an approval")
