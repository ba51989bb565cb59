"""Carrying out a fault that acts at once, the same way in every run and in a living environment."""

from __future__ import annotations

from typing import Protocol

from lab.context import RunContext
from lab.faults.plan import FAULT_KINDS, Acts, Fault
from lab.journal.events import FaultPlanned


class Services(Protocol):
    """What can strike a participant."""

    async def strike(self, fault: Fault) -> None:
        """Begin it."""


class LinkFaults(Protocol):
    """What can strike a link."""

    def strike(self, fault: Fault) -> None:
        """Begin it."""

    async def settled(self, fault: Fault) -> None:
        """Wait until it has begun."""


def plan_fault(ctx: RunContext, fault: Fault) -> None:
    """Record that a fault is to come, and what it excuses."""
    excuses = FAULT_KINDS[fault.kind].excuses
    ctx.journal.record("faults", FaultPlanned(fault.id, fault.kind, fault.target, fault.line, excuses, fault.least))


async def strike(fault: Fault, services: Services, links: LinkFaults) -> None:
    """Begin a planned fault of a participant or of a link."""
    if FAULT_KINDS[fault.kind].acts is Acts.SERVICE:
        await services.strike(fault)
        return
    links.strike(fault)
    await links.settled(fault)
