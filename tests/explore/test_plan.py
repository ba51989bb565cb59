"""Which plans a caller sees nothing of."""

from __future__ import annotations

import pytest

from lab.explore.plan import LONGEST_MASKED_CUT, Plan, Planned, is_masked
from lab.faults.plan import Fault, FrameAnchor
from tests.explore.made import frame_fault, link_fault

GATEWAY_LINKS = {"gateway": "gateway", "second": "b"}
CRASH = Planned(1, Fault("f", "crash", service="agent2", seconds=2.0))
TAMPER = Planned(0, Fault("t", "tamper", anchor=FrameAnchor("job.assign", "gateway")))


@pytest.mark.parametrize(
    ("plan", "masked"),
    [
        ((), True),
        ((link_fault("a"),), True),
        ((link_fault("a", link="second"),), True),
        ((link_fault("a", "delay", link="agent2", delay=0.4),), False),
        ((frame_fault("a"), frame_fault("b", "duplicate"), frame_fault("c", "hold", seconds=1.0)), True),
        ((TAMPER,), False),
        ((CRASH,), False),
        ((link_fault("a"), CRASH), False),
        ((link_fault("a", seconds=LONGEST_MASKED_CUT), link_fault("b", seconds=LONGEST_MASKED_CUT)), True),
        ((link_fault("a", seconds=LONGEST_MASKED_CUT + 1),), False),
        ((frame_fault("a"), link_fault("b", seconds=150.0)), False),
        ((link_fault("a", "delay", seconds=LONGEST_MASKED_CUT + 1, delay=0.4),), True),
        ((frame_fault("a"), link_fault("b", link="agent2")), False),
    ],
)
def test_what_the_protocol_makes_good_is_masked(plan: Plan, masked: bool) -> None:
    assert is_masked(plan, GATEWAY_LINKS) is masked
