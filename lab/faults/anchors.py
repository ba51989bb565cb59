"""Counting the frames that faults wait for."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.plan import FAULT_KINDS, Acts, Fault, FrameAnchor


@dataclass(frozen=True)
class SeenFrame:
    """What an anchor is matched against."""

    type: str
    sender: str
    of: str | None = None
    content: str | None = None
    chunk: int | None = None


@dataclass
class _Armed:
    """A fault that waits: for the frame that is `to_pass` frames away, and then `times` times in all."""

    fault: Fault
    to_pass: int
    times: int | None
    fired: int = 0

    @property
    def over(self) -> bool:
        return self.times is not None and self.fired >= self.times


class AnchorWatch:
    """Counts the frames that fit an armed fault's anchor, from the moment it was armed."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def arm(self, fault: Fault) -> None:
        """Watch for `fault`'s anchor."""
        if fault.anchor is None:
            raise ValueError(f"fault {fault.id} has no anchor to watch for")
        self._armed.append(_Armed(fault, fault.anchor.nth, fault.times))

    def disarm(self, fault_id: str) -> None:
        """Stop watching for a fault that has not fired."""
        self._armed = [armed for armed in self._armed if armed.fault.id != fault_id]

    def unfired(self) -> tuple[Fault, ...]:
        """The faults that still wait."""
        return tuple(armed.fault for armed in self._armed if not armed.fired)

    def see(self, frame: SeenFrame) -> tuple[Fault, ...]:
        """The faults that fire at this frame; each fires once, or as often as its `times` say.

        A frame takes one frame fault. A further one that is due waits for the next frame that fits.
        """
        fired: list[Fault] = []
        taken = False
        for armed in self._armed:
            fault = armed.fault
            on_frame = FAULT_KINDS[fault.kind].acts is Acts.FRAME
            if fault.anchor is None or not _fits(fault.anchor, frame):
                continue
            if armed.to_pass > 1:
                armed.to_pass -= 1
            elif not (on_frame and taken):
                fired.append(fault)
                armed.fired += 1
                taken = taken or on_frame
        self._armed = [armed for armed in self._armed if not armed.over]
        return tuple(fired)


def _fits(anchor: FrameAnchor, frame: SeenFrame) -> bool:
    return (
        anchor.type == frame.type
        and anchor.sender == frame.sender
        and anchor.of in (None, frame.of)
        and anchor.content in (None, frame.content)
        and anchor.chunk in (None, frame.chunk)
    )
