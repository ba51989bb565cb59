"""A fault plan: an explicit list of faults, each anchored to a moment of the protocol.

A plan is data. The scenario's `fault` steps make it, a generator may, the runner carries it out, a shrinker
deletes from it; nothing rolls dice while a run goes on. What a kind of fault is called, what it acts on and
which laws it voids stands once, in `FAULT_KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from lab.faults.specs import ToxicSpec
from lab.faults.toxics import drawn_toxics
from lab.faults.weather import Phase, recurring


class Acts(StrEnum):
    """What a kind of fault acts on."""

    LINK = "link"
    FRAME = "frame"
    SOCKET = "socket"
    SERVICE = "service"
    PROCESS = "process"


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault: its word in scenarios, what it acts on, and the [law, party] pairs it voids by order.

    What a kind means and how it is drawn stand together on purpose, so that a new kind registers in one place.
    """

    name: str
    acts: Acts
    doc: str
    lasting: bool
    """Whether it holds for a while (`for:`), as against happening once."""
    excuses: tuple[tuple[str, str], ...] = ()
    durations: tuple[float, ...] = ()
    """Seconds that it may last when a plan is drawn; none for a kind that happens once."""
    delays: tuple[float, ...] = ()
    """Seconds of delay that may be drawn for it."""
    toxics: tuple[ToxicSpec, ...] = ()
    """Toxics that may be drawn for it."""
    times: tuple[int, ...] = (1,)
    """How many frames it may strike when a plan is drawn."""
    signed_only: bool = False
    """Whether it strikes frames that bear a signature alone."""
    masked: bool = True
    """Whether a caller sees nothing of it while every promise is kept; only for what strikes the way to a gateway."""
    touches: bool = False
    """Whether it has fired only once it touched a byte or a connection, which may be later than it struck, or never."""
    forgets: bool = False
    """Whether jobs that run may never be heard of again."""
    drawn: bool = True
    """Whether plans are drawn with it; not where it would say nothing of its own, or needs more than a moment."""


_KINDS = (
    FaultKind(
        "cut",
        Acts.LINK,
        "close every connection (FIN) and refuse new ones until healed",
        lasting=True,
        # 75 s: what comes again is old. 100 s: the gateway has no session any more (RS-009). 150 s: nor has the agent
        # (RS-008).
        durations=(0.1, 1.0, 3.0, 12.0, 40.0, 75.0, 100.0, 150.0),
    ),
    FaultKind(
        "reset", Acts.LINK, "reset every live connection (RST); new ones are accepted", lasting=False, touches=True
    ),
    FaultKind(
        "delay",
        Acts.LINK,
        "hold all bytes back for a time, in each direction",
        lasting=True,
        touches=True,
        durations=(1.0, 5.0, 20.0),
        delays=(0.05, 0.4, 2.0),
    ),
    FaultKind("heal", Acts.LINK, "end every fault on the link", lasting=False, drawn=False),
    FaultKind(
        "move",
        Acts.LINK,
        "close every connection (FIN) and lead new ones to another gateway",
        lasting=False,
        drawn=False,
    ),
    FaultKind(
        "toxic",
        Acts.LINK,
        "spoil what flows with toxics",
        lasting=True,
        touches=True,
        # Below the 10 s without ready (HS-020) behind which an agent rightly speaks v1 for ten minutes, without jobs.
        durations=(0.5, 3.0, 8.0),
        toxics=drawn_toxics(),
    ),
    FaultKind(
        "weather",
        Acts.LINK,
        "spoil what flows as a named weather does",
        lasting=True,
        touches=True,
        # Weather is made of toxics, and those are drawn.
        drawn=False,
    ),
    FaultKind("drop", Acts.FRAME, "lose the frame", lasting=False, times=(1, 1, 2, 4)),
    FaultKind("duplicate", Acts.FRAME, "deliver the frame twice", lasting=False),
    FaultKind(
        "hold",
        Acts.FRAME,
        "deliver the frame later; those behind it pass it",
        lasting=True,
        durations=(0.05, 1.0, 6.0),
    ),
    FaultKind(
        "tamper",
        Acts.FRAME,
        "break the frame's signature, so that it does not verify",
        lasting=False,
        excuses=(("gateway-frames-signed", "gateway"),),
        signed_only=True,
        masked=False,
    ),
    FaultKind(
        "inject",
        Acts.SOCKET,
        "have the gateway send a message of its own making",
        lasting=False,
        excuses=(("gateway-frames-valid", "gateway"), ("gateway-within-peer-revision", "gateway")),
        drawn=False,
    ),
    FaultKind(
        "crash",
        Acts.SERVICE,
        "die as a process does: connections torn, nobody there, jobs forgotten",
        lasting=True,
        durations=(0.5, 2.0, 8.0),
    ),
    FaultKind(
        "kill",
        Acts.PROCESS,
        "end the program at once, as SIGKILL does, and start it again; it knows what it had on disk",
        lasting=True,
        durations=(0.1, 2.0, 20.0),
        forgets=True,
    ),
    FaultKind(
        "pause",
        Acts.PROCESS,
        "stop the program where it is; it goes on as if nothing had been",
        lasting=True,
        durations=(0.5, 5.0, 25.0),
    ),
)

FAULT_KINDS: Mapping[str, FaultKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


@dataclass(frozen=True)
class FrameAnchor:
    """The `nth` frame (from 1) that fits: the moment a fault waits for.

    `sender` is the name of a participant (a local agent or a gateway). `of` narrows an ack to the type of frame
    it acks. `content` narrows content.request and content.response to one kind of content, `chunk` to one index.
    """

    type: str
    sender: str
    nth: int = 1
    of: str | None = None
    content: str | None = None
    chunk: int | None = None

    def words(self) -> str:
        """The anchor in a few words, for reports."""
        narrowed = "".join(
            f" {text}"
            for text in (
                f"of {self.of}" if self.of else "",
                self.content or "",
                f"chunk {self.chunk}" if self.chunk is not None else "",
            )
            if text
        )
        return f"{self.type}{narrowed} #{self.nth} from {self.sender}"


@dataclass(frozen=True)
class Fault:
    """One entry of a plan.

    A link fault without `anchor` fires when its step is reached; with one it fires right after that frame, at
    its end in the stream of bytes. A frame fault always has one and acts on the frame itself.
    """

    id: str
    kind: str
    link: str | None = None
    anchor: FrameAnchor | None = None
    seconds: float | None = None
    """Duration of a lasting fault; None holds until healed."""
    delay: float = 0.0
    """Added to each direction of a link, in seconds, by `delay`."""
    times: int | None = 1
    """How many frames that fit it acts on, one after the other from the anchor's on; None acts on all of them."""
    socket: str | None = None
    """The local agent whose socket `inject` writes to."""
    moved_to: str | None = None
    """The gateway that `move` leads the link to."""
    service: str | None = None
    """The double that a service fault acts on."""
    process: str | None = None
    """The local agent that a process fault acts on."""
    line: int = 0
    toxics: tuple[ToxicSpec, ...] = ()
    """What `toxic` puts on the link, together."""
    weather: str | None = None
    """The name of the weather that `weather` brings."""
    phases: tuple[Phase, ...] = ()
    """What that weather is made of."""
    until: FrameAnchor | None = None
    """The frame that ends a lasting fault, counted from when it began."""
    every: float | None = None
    """With it the toxics stand for `seconds` at the beginning of each so many seconds, until they are ended."""

    @property
    def course(self) -> tuple[Phase, ...]:
        """What stands on the link, phase after phase, again and again; empty for a fault without toxics."""
        if self.every is not None and self.seconds is not None:
            return recurring(self.toxics, self.seconds, self.every)
        return self.phases or ((Phase(self.toxics),) if self.toxics else ())

    @property
    def holds(self) -> float | None:
        """Seconds after which it ends by itself; None where something else has to end it."""
        return None if self.every is not None else self.seconds

    @property
    def least(self) -> int:
        """How often it has to fire for the plan to be carried out."""
        return self.times or 1

    @property
    def target(self) -> str:
        """What it acts on, in a few words."""
        if FAULT_KINDS[self.kind].acts is Acts.LINK:
            return f"link {self.link}"
        if self.service is not None:
            return f"service {self.service}"
        if self.process is not None:
            return f"local agent {self.process}"
        if self.socket is not None:
            return self.socket
        if self.anchor is None:
            return "?"
        often = ", each" if self.times is None else f", {self.times} times" if self.times > 1 else ""
        return f"{self.anchor.words()}{often}"
