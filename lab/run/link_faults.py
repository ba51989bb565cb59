"""Carrying out link faults: at once, or behind the frame that their anchor names.

A fault has fired when it touched something: `reset` a connection that was there, toxics and a delay a byte or a
connection. `cut`, `move` and `heal` change the link itself, so they fire as they are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.fault_link import FaultLink, embedded
from lab.faults.plan import FAULT_KINDS, Fault
from lab.journal.events import FaultEnded, FaultFired, JsonObject
from lab.run.frame_watch import FrameWatch
from lab.run.toxic_course import ToxicCourse


class _Firing:
    """Call it when a fault touches something: the journal is told the first time."""

    def __init__(self, ctx: RunContext, fault: Fault) -> None:
        self._ctx = ctx
        self._fault: Fault | None = fault

    def __call__(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            self._ctx.journal.record("faults", FaultFired(fault.id, fault.kind, fault.target, _detail(fault)))


@dataclass
class _Lasting:
    """A fault that holds on a link, its toxics, and the timer that ends it."""

    fault: Fault
    course: ToxicCourse
    fires: _Firing
    timer: asyncio.TimerHandle | None = None


class LinkFaults:
    """Strikes links, and ends each lasting fault at its time without touching the others on its link.

    `address_of` tells where a gateway listens.
    """

    def __init__(
        self, ctx: RunContext, links: Mapping[str, FaultLink], address_of: Callable[[str], tuple[str, int]]
    ) -> None:
        self._ctx = ctx
        self._links = links
        self._address_of = address_of
        self._lasting: dict[str, list[_Lasting]] = {}
        self._own_delays: dict[str, float] = {}
        self._frames: FrameWatch | None = None
        """Made when the first fault has to end at a frame."""

    def strike(self, fault: Fault) -> None:
        """Make a link fault happen now."""
        link = self._links[fault.link or ""]
        self._own_delays.setdefault(link.name, link.delay)
        fires = _Firing(self._ctx, fault)
        match fault.kind:
            case "cut":
                fires()
                link.cut()
            case "reset":
                if embedded(link).connections():
                    fires()
                embedded(link).reset()
            case "delay":
                equal = [one.fires for one in self._slow(link) if one.fault.delay == fault.delay]
                link.set_delay(fault.delay, _all_of([*equal, fires]))
            case "move":
                fires()
                embedded(link).move(self._address_of(fault.moved_to or ""))
            case "heal":
                fires()
                self._end_all(link)
            case "toxic" | "weather":
                pass
            case _:
                raise MisuseError(f"{fault.kind} is no fault of a link")
        if FAULT_KINDS[fault.kind].lasting:
            self._keep(link, fault, fires)

    def _keep(self, link: FaultLink, fault: Fault, fires: _Firing) -> None:
        lasting = _Lasting(fault, ToxicCourse(link, fault, fires), fires)
        self._lasting.setdefault(link.name, []).append(lasting)
        lasting.course.start()
        if fault.holds is not None:
            loop = asyncio.get_running_loop()
            lasting.timer = loop.call_later(fault.holds, self._end_one, link, lasting)
        if fault.until is not None:
            self._frames = self._frames or FrameWatch(self._ctx, self._end_at_frame)
            self._frames.wait(fault)

    async def settled(self, fault: Fault) -> None:
        """Returns once what was done to the fault's link has taken effect."""
        await self._links[fault.link or ""].settled()

    def strike_behind(self, fault: Fault, port: int, offset: int | None) -> None:
        """Strike right behind a frame: at `offset` of the stream towards the agent, at once for a frame from it."""
        link = embedded(self._links[fault.link or ""])
        ends = [state.upstream_local for state in link.connections()]
        if offset is not None and any(end is not None and end[1] == port for end in ends):
            link.cut_at(port, "down", offset, lambda: self.strike(fault))
        else:
            self.strike(fault)

    def _end_at_frame(self, fault: Fault) -> None:
        link = self._links[fault.link or ""]
        for lasting in [one for one in self._lasting.get(link.name, []) if one.fault is fault]:
            if lasting.timer is not None:
                lasting.timer.cancel()
            self._end_one(link, lasting)

    def _forget_frame_of(self, lasting: _Lasting) -> None:
        if self._frames is not None:
            self._frames.forget(lasting.fault)

    def _end_one(self, link: FaultLink, lasting: _Lasting) -> None:
        left = self._lasting[link.name]
        left.remove(lasting)
        self._forget_frame_of(lasting)
        if lasting.fault.course:
            lasting.course.stop()
            self._ctx.journal.record("faults", FaultEnded(lasting.fault.id))
            return
        still_cut = any(one.fault.kind == "cut" for one in left)
        slow = self._slow(link)
        delay = slow[-1].fault.delay if slow else self._own_delays[link.name]
        fires = _all_of([one.fires for one in slow if one.fault.delay == delay])
        if still_cut or lasting.fault.kind != "cut":
            link.set_delay(delay, fires)
            self._ctx.journal.record("faults", FaultEnded(lasting.fault.id))
        else:
            self._mend(link, [lasting.fault], delay, fires)

    def _slow(self, link: FaultLink) -> list[_Lasting]:
        """The delays that stand; what the last of them asks holds, for all that ask the same."""
        return [one for one in self._lasting.get(link.name, []) if one.fault.kind == "delay"]

    def _end_all(self, link: FaultLink) -> None:
        ended = self._lasting.pop(link.name, [])
        for lasting in ended:
            self._forget_frame_of(lasting)
            lasting.course.stop()
            if lasting.timer is not None:
                lasting.timer.cancel()
        self._mend(link, [lasting.fault for lasting in ended], self._own_delays[link.name])

    def _mend(self, link: FaultLink, ended: list[Fault], delay: float, fires: Callable[[], None] | None = None) -> None:
        """Listen again, with what delay is left."""
        try:
            link.heal()
        except EnvironmentFault as error:
            # A port lost to another program ends the run, with its name.
            self._ctx.fail(error)
            return
        if delay:
            link.set_delay(delay, fires)
        for fault in ended:
            self._ctx.journal.record("faults", FaultEnded(fault.id))

    def close(self) -> None:
        """No more mending: the run is over."""
        if self._frames is not None:
            self._frames.close()
            self._frames = None
        for lasting in [one for left in self._lasting.values() for one in left]:
            lasting.course.forget()
            if lasting.timer is not None:
                lasting.timer.cancel()


def _all_of(fires: Sequence[_Firing]) -> Callable[[], None]:
    def fire() -> None:
        for one in fires:
            one()

    return fire


def _detail(fault: Fault) -> JsonObject:
    """What of a fault the journal tells beside its kind: its weather, or its toxics."""
    if fault.weather is not None:
        return {"weather": fault.weather}
    return {"toxics": [toxic.type for toxic in fault.toxics]} if fault.toxics else {}
