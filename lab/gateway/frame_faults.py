"""Frame faults, at the gateway's socket: the one place that sees every frame of a chat leg."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass

from lab.faults.anchors import AnchorWatch, SeenFrame
from lab.faults.plan import FAULT_KINDS, Acts, Fault
from lab.journal.events import Frame

REMEMBERED = 4096
"""Frames whose type an ack can still be told by, and requests whose kind a chunk can be told by."""


@dataclass(frozen=True)
class Passage:
    """What becomes of one frame. `link_faults` strike right behind it."""

    fate: str = "passed"
    fault: Fault | None = None
    link_faults: tuple[Fault, ...] = ()

    @property
    def copies(self) -> bool:
        """Whether it is delivered twice."""
        return self.fault is not None and self.fault.kind == "duplicate"

    @property
    def tampers(self) -> bool:
        """Whether its signature is to be broken."""
        return self.fault is not None and self.fault.kind == "tamper"


class FrameFaults:
    """Decides the fate of each frame by the faults that are armed; the first frame fault that fits wins."""

    def __init__(self) -> None:
        self.watch = AnchorWatch()
        self._types: OrderedDict[str, str] = OrderedDict()
        self._contents: OrderedDict[str, str] = OrderedDict()

    def pass_frame(self, frame: Frame, sender: str) -> Passage:
        """The passage of a frame that `sender` sent."""
        fired = self.watch.see(self.seen(frame, sender))
        on_frame = [fault for fault in fired if FAULT_KINDS[fault.kind].acts is Acts.FRAME]
        on_link = tuple(fault for fault in fired if FAULT_KINDS[fault.kind].acts is Acts.LINK)
        if not on_frame:
            return Passage(link_faults=on_link)
        fate = {"drop": "dropped", "hold": "delayed"}.get(on_frame[0].kind, "passed")
        return Passage(fate, on_frame[0], on_link)

    def seen(self, frame: Frame, sender: str) -> SeenFrame:
        """A frame as an anchor sees it; frames have to be shown in order, since an ack is told by what it acks."""
        if frame.msg_id is not None and frame.type is not None:
            _remember(self._types, frame.msg_id, frame.type)
        if frame.type == "content.request" and frame.request_id is not None:
            _remember(self._contents, frame.request_id, str(frame.payload.get("kind")))
        return SeenFrame(
            type=frame.type or "?",
            sender=sender,
            of=self._types.get(str(frame.payload.get("ackMsgId"))) if frame.type == "ack" else None,
            content=self._contents.get(frame.request_id) if frame.request_id is not None else None,
            chunk=frame.chunk.get("index") if frame.chunk is not None else None,
        )


def tampered(text: str) -> str:
    """A signed frame with the first character of its signature altered; everything else stays as it was."""
    signature = json.loads(text)["sig"]["signature"]
    other = "A" if signature[0] != "A" else "B"
    return text.replace(f'"{signature}"', f'"{other}{signature[1:]}"', 1)


def _remember(table: OrderedDict[str, str], key: str, value: str) -> None:
    table[key] = value
    if len(table) > REMEMBERED:
        table.popitem(last=False)
