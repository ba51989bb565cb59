"""What is drawn: faults, each with the step before which it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.faults.plan import FAULT_KINDS, Acts, Fault


@dataclass(frozen=True)
class Planned:
    """A fault, and the number of the scenario's step that it stands before.

    One that waits for a frame stands before the first step, so that frames are counted from the beginning.
    """

    before: int
    fault: Fault


Plan = tuple[Planned, ...]


def is_masked(plan: Plan, gateway_links: Mapping[str, str]) -> bool:
    """Whether a caller sees nothing of these faults as long as every promise is kept.

    What strikes the link to the gateway, or a frame on it, is made good by the protocol. What strikes agent2, or the
    agent itself, may change how a job ends, so a scenario's own expectations are not held against it.
    """
    return all(
        FAULT_KINDS[planned.fault.kind].masked
        and (FAULT_KINDS[planned.fault.kind].acts is Acts.FRAME or planned.fault.link in gateway_links)
        for planned in plan
    )
