"""Carrying out link faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.errors import EnvironmentFault, MisuseError
from lab.faults.link import Link
from lab.faults.plan import Fault, FrameAnchor
from lab.faults.specs import ToxicSpec
from lab.journal.events import Defect, FaultEnded, FaultFired, LinkChanged, SocketOpened
from lab.run.link_faults import LinkFaults
from tests.command_line import lab, make_project
from tests.run.made import context, frame


class FakeLink:
    """Notes what is done to it."""

    name = "gateway"

    def __init__(self) -> None:
        self.done: list[object] = []
        self.healed = asyncio.Event()
        self.error: Exception | None = None
        self.then: Callable[[], None] = lambda: None
        self.touch: Callable[[], None] = lambda: None
        self.connected = True

        self.delay = 0.0

    def cut(self) -> None:
        self.done.append("cut")

    def reset(self) -> None:
        self.done.append("reset")

    def move(self, upstream: tuple[str, int]) -> None:
        self.done.append(("move", upstream))

    def set_delay(self, seconds: float, touched: Callable[[], None] | None = None) -> None:
        self.delay = seconds
        self.done.append(("delay", seconds))
        self.touch = touched or self.touch

    def add_toxic(self, spec: ToxicSpec, touched: Callable[[], None]) -> None:
        self.done.append(("+", spec.name))
        self.touch = touched

    def remove_toxic(self, name: str) -> None:
        self.done.append(("-", name))

    async def settled(self) -> None:
        self.done.append("settled")

    def heal(self) -> None:
        self.healed.set()
        if self.error is not None:
            raise self.error
        self.delay = 0.0
        self.done.append("heal")

    def connections(self) -> list[Any]:
        return self.connected * [
            SimpleNamespace(upstream_local=("127.0.0.1", 5000)),
            SimpleNamespace(upstream_local=None),
        ]

    def cut_at(self, port: int, direction: str, offset: int, then: Callable[[], None]) -> None:
        self.done.append(("at", port, direction, offset))
        self.then = then


class Bench:
    def __init__(self) -> None:
        self.ctx = context()
        self.link = FakeLink()
        self.faults = LinkFaults(
            self.ctx, {"gateway": cast(Link, self.link)}, lambda name: {"other": ("127.0.0.1", 6000)}[name]
        )

    def events(self) -> list[object]:
        return [entry.event for entry in self.ctx.journal.entries]


def fault(kind: str, seconds: float | None = None, delay: float = 0.0, name: str = "f") -> Fault:
    return Fault(name, kind, "gateway", seconds=seconds, delay=delay)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("kind", "done"), [("cut", "cut"), ("reset", "reset"), ("delay", ("delay", 0.2)), ("heal", "heal")]
)
async def test_each_kind_does_what_it_says(kind: str, done: object) -> None:
    """And is told in the journal before it is done."""
    bench = Bench()
    bench.faults.strike(fault(kind, delay=0.2))
    bench.link.touch()
    await settle()
    assert bench.link.done == [done]
    assert bench.events() == [FaultFired("f", kind, "link gateway")]


async def test_a_move_leads_a_link_to_where_the_other_gateway_listens() -> None:
    """From now on."""
    bench = Bench()
    bench.faults.strike(Fault("f", "move", "gateway", moved_to="other"))
    assert bench.link.done == [("move", ("127.0.0.1", 6000))]
    assert bench.events() == [FaultFired("f", "move", "link gateway")]


def test_a_frame_fault_is_none_of_a_link() -> None:
    """The lab's own mistake."""
    with pytest.raises(MisuseError):
        Bench().faults.strike(fault("drop"))


async def test_a_fault_with_a_time_heals_itself() -> None:
    """Once, and its end is told."""
    bench = Bench()
    bench.faults.strike(fault("cut", seconds=0.01))
    await asyncio.wait_for(bench.link.healed.wait(), 10)
    await settle()
    assert bench.link.done == ["cut", "heal"]
    assert bench.events()[-1] == FaultEnded("f")


async def until_ended(bench: Bench, name: str) -> None:
    ended = asyncio.Event()
    bench.ctx.journal.listen(lambda entry: ended.set() if entry.event == FaultEnded(name) else None)
    await asyncio.wait_for(ended.wait(), 10)


async def test_the_end_of_a_cut_leaves_a_delay_that_still_holds() -> None:
    """Each lasting fault ends at its own time."""
    bench = Bench()
    bench.faults.strike(fault("delay", delay=0.2, name="slow"))
    bench.faults.strike(fault("cut", seconds=0.01, name="cut"))
    await until_ended(bench, "cut")
    assert bench.link.done == [("delay", 0.2), "cut", "heal", ("delay", 0.2)]
    assert FaultEnded("slow") not in bench.events()


async def test_the_end_of_a_delay_does_not_heal_a_cut() -> None:
    """And the link's own delay comes back."""
    bench = Bench()
    bench.link.delay = 0.05
    bench.faults.strike(fault("cut", name="cut"))
    bench.faults.strike(fault("delay", seconds=0.01, delay=0.2, name="slow"))
    await until_ended(bench, "slow")
    assert bench.link.done == ["cut", ("delay", 0.2), ("delay", 0.05)]
    assert not bench.link.healed.is_set()


async def test_heal_ends_all_that_holds() -> None:
    """Once and for all: no timer of theirs fires later."""
    bench = Bench()
    bench.faults.strike(fault("delay", seconds=0.02, delay=0.2, name="slow"))
    bench.faults.strike(fault("cut", seconds=0.03, name="cut"))
    bench.faults.strike(fault("heal"))
    assert bench.link.done == [("delay", 0.2), "cut", "heal"]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.06)
    assert bench.link.done == [("delay", 0.2), "cut", "heal"]
    assert [event for event in bench.events() if isinstance(event, FaultEnded)] == [
        FaultEnded("slow"),
        FaultEnded("cut"),
    ]


async def test_a_port_that_was_lost_meanwhile_ends_the_run() -> None:
    """It is known, with its name, and the fault is over all the same."""
    bench = Bench()
    bench.link.error = EnvironmentFault("the port is gone")
    bench.faults.strike(fault("heal"))
    await settle()
    assert bench.ctx.defects == [bench.link.error]
    assert bench.events()[-1] == Defect("EnvironmentFault")


async def test_a_fault_behind_a_heal_is_not_healed_with_it() -> None:
    """What is struck in the same turn takes effect in the order in which it was struck."""
    ctx = context()
    link = Link(ctx, "gateway", ("127.0.0.1", 9))
    await link.start()
    faults = LinkFaults(ctx, {"gateway": link}, lambda _: ("127.0.0.1", 9))
    try:
        faults.strike(fault("cut", name="first"))
        faults.strike(fault("heal", name="heal"))
        faults.strike(fault("cut", seconds=3, name="second"))
        await settle()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*link.address)
        changes = [entry.event.change for entry in ctx.journal.entries if isinstance(entry.event, LinkChanged)]
        assert changes == ["cut", "healed", "cut"]
    finally:
        faults.close()
        await link.close()


async def test_heal_leaves_a_link_the_delay_of_its_own() -> None:
    bench = Bench()
    bench.link.delay = 0.1
    bench.faults.strike(fault("delay", delay=0.3, name="slow"))
    bench.faults.strike(fault("heal", name="heal"))
    assert bench.link.done == [("delay", 0.3), "heal", ("delay", 0.1)]


async def test_after_the_end_nothing_heals() -> None:
    """The links are closed by then."""
    bench = Bench()
    bench.faults.strike(fault("cut", seconds=0.01))
    bench.faults.close()
    bench.faults.close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench.link.healed.wait(), 0.05)
    assert bench.link.done == ["cut"]


async def test_behind_a_frame_towards_the_agent_it_waits_for_the_offset() -> None:
    """It fires when the link says that exactly those bytes are through."""
    bench = Bench()
    bench.faults.strike_behind(fault("cut"), 5000, 1234)
    assert bench.link.done == [("at", 5000, "down", 1234)]
    assert bench.events() == []
    bench.link.then()
    assert bench.link.done[1:] == ["cut"]


@pytest.mark.parametrize(("port", "offset"), [(5000, None), (5001, 1234)])
async def test_otherwise_at_once(port: int, offset: int | None) -> None:
    """A frame from the agent is through already; a connection past the link cannot be cut by bytes."""
    bench = Bench()
    bench.faults.strike_behind(fault("cut"), port, offset)
    assert bench.link.done == ["cut"]


NOOP = "f.noop.1"


def toxic(**members: Any) -> Fault:
    return Fault("f", "toxic", "gateway", toxics=(ToxicSpec("noop"),), **members)


async def test_a_toxic_stands_for_its_time() -> None:
    """And leaves the rest of the link as it is."""
    bench = Bench()
    bench.faults.strike(fault("cut", name="c"))
    bench.faults.strike(toxic(seconds=0.01))
    bench.link.touch()
    bench.link.touch()
    await until_ended(bench, "f")
    assert bench.link.done == ["cut", ("+", NOOP), ("-", NOOP)]
    assert bench.events()[1] == FaultFired("f", "toxic", "link gateway", {"toxics": ["noop"]})


@pytest.mark.parametrize("kind", ["toxic", "delay", "reset"])
async def test_what_touched_nothing_has_not_fired(kind: str) -> None:
    bench = Bench()
    bench.link.connected = False
    bench.faults.strike(toxic() if kind == "toxic" else fault(kind, delay=0.2))
    assert len(bench.link.done) == 1
    assert not [event for event in bench.events() if isinstance(event, FaultFired)]


async def test_delays_that_ask_the_same_fire_together() -> None:
    bench = Bench()
    for name, delay in (("other", 0.1), ("one", 0.2), ("two", 0.2)):
        bench.faults.strike(fault("delay", delay=delay, name=name))
    bench.link.touch()
    assert [event.fault for event in bench.events() if isinstance(event, FaultFired)] == ["one", "two"]


async def test_a_delay_below_another_fires_when_that_is_over() -> None:
    bench = Bench()
    bench.faults.strike(fault("delay", delay=0.1, name="below"))
    bench.faults.strike(fault("delay", seconds=0.01, delay=0.2, name="above"))
    await until_ended(bench, "above")
    bench.link.touch()
    assert [event.fault for event in bench.events() if isinstance(event, FaultFired)] == ["below"]


async def test_heal_takes_toxics_out() -> None:
    bench = Bench()
    bench.faults.strike(toxic(seconds=0.01, every=10))
    bench.faults.strike(fault("heal", name="h"))
    assert bench.link.done == [("+", NOOP), ("-", NOOP), "heal"]


async def test_a_toxic_stands_until_its_frame() -> None:
    """The second that fits, counted from when it struck; and once."""
    bench = Bench()
    tell = partial(bench.ctx.journal.record, "gw")
    tell(SocketOpened("c1", "/agent", "la"))
    tell(frame(type="job.result"))
    bench.faults.strike(toxic(until=FrameAnchor("job.result", "la", 2)))
    tell(frame(type="job.result"))
    await settle()
    assert bench.link.done == [("+", NOOP)]
    tell(frame(type="job.result", direction="cp-to-la"))
    tell(frame(type="job.event"))
    await settle()
    assert bench.link.done == [("+", NOOP)]
    tell(frame(type="job.result"))
    tell(frame(type="job.result"))
    await settle()
    assert bench.link.done == [("+", NOOP), ("-", NOOP)]
    assert bench.events()[-1] == FaultEnded("f")
    bench.faults.close()


async def test_an_ack_is_told_by_a_frame_before_the_fault() -> None:
    bench = Bench()
    tell = partial(bench.ctx.journal.record, "gw")
    tell(SocketOpened("c1", "/agent", "la"))
    tell(frame(type="job.result", msg_id="m1"))
    bench.faults.strike(toxic(until=FrameAnchor("ack", "gw", of="job.result")))
    tell(frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m0"}))
    tell(frame(type="ack", direction="cp-to-la", payload={"ackMsgId": "m1"}))
    await settle()
    assert bench.link.done == [("+", NOOP), ("-", NOOP)]


async def test_a_toxic_that_was_healed_waits_for_no_frame() -> None:
    bench = Bench()
    tell = partial(bench.ctx.journal.record, "gw")
    tell(SocketOpened("c1", "/agent", "la"))
    bench.faults.strike(toxic(until=FrameAnchor("job.result", "la")))
    bench.faults.strike(fault("heal", name="h"))
    tell(frame(type="job.result"))
    await settle()
    assert bench.link.done == [("+", NOOP), ("-", NOOP), "heal"]


async def test_settled_is_the_links() -> None:
    bench = Bench()
    await bench.faults.settled(fault("cut"))
    assert bench.link.done == ["settled"]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("link: agent2, toxic: slow_connect, attributes: { delay: 100 }", 4),
        ("link: agent2, reset: true", 4),
        ("link: agent2, delay: 200ms", 4),
        ("link: gateway, toxic: slow_close, attributes: { delay: 100 }, for: 1s", 4),
        ("link: gateway, toxic: latency, attributes: { latency: 5 }, toxicity: 0.000001", 4),
        ("link: gateway, toxic: latency, attributes: { latency: 5 }", 0),
        ("link: gateway, delay: 200ms, for: 20s", 0),
        ("link: gateway, reset: true", 0),
        ("link: gateway, weather: packet-loss-5", 0),
    ],
)
def test_a_run_whose_fault_touched_nothing_says_nothing(tmp_path: Path, fault: str, status: int) -> None:
    text = f"""steps:
  - wait: {{ for: local_agent.ready, within: 10s }}
  - fault: {{ {fault} }}
  - idle: 25s
  - wait: {{ for: local_agent.ready, within: 10s }}
"""
    make_project(tmp_path, one=text)
    done = lab("run", "scenarios/one.yaml", "--clock", "virtual", "--seed", "7", cwd=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("it touched no byte and no connection" in done.stdout) is (status == 4)
