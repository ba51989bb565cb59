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

LONGEST_MASKED_CUT = 60.0
"""Seconds that a gateway's link may be cut so that, whatever else delays the agent, its session still waits for it."""


def is_masked(plan: Plan, gateway_links: Mapping[str, str]) -> bool:
    """Whether a caller sees nothing of these faults as long as every promise is kept.

    What strikes the link to the gateway, or a frame on it, is made good by the protocol. What strikes agent2, or the
    agent itself, may change how a job ends, so a scenario's own expectations are not held against it.
    """
    return all(_is_masked(planned.fault, gateway_links) for planned in plan)


def _is_masked(fault: Fault, gateway_links: Mapping[str, str]) -> bool:
    kind = FAULT_KINDS[fault.kind]
    if kind.name == "cut" and (fault.seconds or 0.0) > LONGEST_MASKED_CUT:
        # RS-006: a session that is over takes the frames with it that were not delivered.
        return False
    return kind.masked and (kind.acts is Acts.FRAME or fault.link in gateway_links)
