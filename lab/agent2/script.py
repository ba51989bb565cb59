"""A script: what agent2 does with a job, as data, and its file below `fixtures/agent2/`.

Beside its steps (see `lab.agent2.steps`) a script may order misbehaviour:

    http: { status: 503 }                                   the answer to POST /jobs
    ignore_cancel: true                                     a cancel is accepted and changes nothing
    break_stream: { stream: events, after: 3, times: 2 }    the connection is torn after so many events
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from lab.agent2.beats import Beat, EmitLine, LineType, StreamName
from lab.agent2.steps import MAX_BEATS, StepReader
from lab.errors import Place
from lab.yaml_marks import Spot, read_marks, read_script_text

_WORDS = ("script", "about", "http", "ignore_cancel", "break_stream", "steps")


@dataclass(frozen=True)
class BreakStream:
    """Tear a reader's connection once it has `after` events; `times` readers meet this."""

    stream: StreamName
    after: int
    times: int = 1


@dataclass(frozen=True)
class Script:
    """A script. `canaries` names the secrets that it wants at run time, and where it first does."""

    name: str
    about: str
    beats: tuple[Beat, ...]
    http_status: int | None = None
    ignore_cancel: bool = False
    break_stream: BreakStream | None = None
    canaries: Mapping[str, Place] = field(default_factory=dict)

    def answers(self, characters: int) -> tuple[str, ...]:
        """The first `characters` of each answer that has so many and takes no canary."""
        lines = [beat.action for beat in self.beats if isinstance(beat.action, EmitLine)]
        texts = [
            str(value)
            for line in lines
            if line.type is LineType.ANSWER and not line.canaries
            for name, value in line.members
            if name == "text"
        ]
        return tuple(text[:characters] for text in texts if len(text) >= characters)


def load_script(path: Path) -> Script:
    """The script in the file `path`. Whatever is wrong with it raises `ScenarioError` with its place."""
    text = read_script_text(path, "fixtures/agent2/short-answer.yaml")
    return parse_script(text, str(path), _shown(path))


@lru_cache(maxsize=64)
def parse_script(text: str, file: str, shown: str | None = None) -> Script:
    """The script `text`, which errors call `file` and the sources of its lines `shown` (else `file`).

    The same text is read once: those who run one scenario thousands of times would read it each time.
    """
    root = read_marks(text, file)
    members = root.members("a script", _WORDS, ("script", "about", "steps"))
    steps = StepReader(shown or file)
    steps.read(members["steps"])
    return Script(
        name=members["script"].text("the script's name"),
        about=members["about"].text("what the script shows"),
        beats=tuple(steps.beats),
        http_status=_http(members["http"]) if "http" in members else None,
        ignore_cancel="ignore_cancel" in members and members["ignore_cancel"].flag("`ignore_cancel`"),
        break_stream=_break_stream(members["break_stream"]) if "break_stream" in members else None,
        canaries=steps.canaries,
    )


def _http(spot: Spot) -> int:
    return spot.members("`status`", ("status",), ("status",))["status"].count("an HTTP status of refusal", 400, 599)


def _break_stream(spot: Spot) -> BreakStream:
    members = spot.members("`stream`, `after` and `times`", ("stream", "after", "times"), ("stream", "after"))
    return BreakStream(
        StreamName(members["stream"].word("a stream", tuple(StreamName))),
        members["after"].count("the number of events before the break", 0, MAX_BEATS),
        members["times"].count("the number of breaks", 1, 1000) if "times" in members else 1,
    )


def _shown(path: Path) -> str:
    """The path from the project's `fixtures` folder on, so that a source reads the same on every machine."""
    parts = path.parts
    if "fixtures" not in parts:
        return path.as_posix()
    start = len(parts) - 1 - parts[::-1].index("fixtures")
    return "/".join(parts[start:])
