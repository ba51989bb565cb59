"""The steps of a script file, read into beats.

- event: { phase: context, state: running, iteration: 1, filesChanged: 0 }
- audit: { code: … }
- wait: 200ms
- text: "one event"
- text: { every: 20ms, events: 40, of: "words dealt into 40 events; without `events` each line is one" }
- repeat: { count: 200, every: 20ms, text: "event {n}" }
- tool: { name: read_file, path: src/app.ts }
- approval: { id: ap-1 }
- answer: "…"
- done
- result: { outcome: no_change }      last; or `end: failed`, an end without a job.result
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from lab.agent2.beats import (
    CANARY,
    Action,
    AwaitApproval,
    Beat,
    EmitFrame,
    EmitLine,
    End,
    FrameType,
    LineType,
    Payload,
    Scalar,
)
from lab.durations import parse_duration
from lab.errors import Place
from lab.yaml_marks import Spot, nearest

MAX_BEATS = 10_000
MAX_CHARS = 8 << 20
"""Most characters of content in one script, so that `repeat` cannot fill the memory."""

# TY-015: the states of a job.event
EVENT_STATES = ("queued", "preparing", "running", "waiting_approval", "done", "failed", "cancelled")
# TY-016: the outcomes, and the state each of them leaves the job in
STATE_OF_OUTCOME = MappingProxyType(
    {"pr_opened": "done", "no_change": "done", "failed": "failed", "cancelled": "cancelled"}
)
END_WITHOUT_RESULT = ("done", "failed", "cancelled", "silent")
"""How a script may end early: with this terminal job.event, or with nothing at all (LA-027)."""

_EVENT_COUNTS = ("iteration", "filesChanged", "costMicros", "tokensIn", "tokensOut")
_AUDIT_WORDS = (
    *("code", "workspaceId", "approvalId", "incidentId", "requestId", "runId", "ruleId", "alias"),
    *("actionType", "decision", "mode", "errorCode", "phase", "count"),
)
_RESULT_TEXTS = ("errorCode", "prUrl", "branch", "commitSha", "diffSha256")
_TESTS = ("passed", "failed", "skipped")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_WORD = re.compile(r"\s*\S+\s*")
_ROW = re.compile(r"\s*\S[^\n]*\n*")
_MOST = (1 << 53) - 1


@dataclass
class StepReader:
    """Reads the steps of one file; `shown` is what sources call the file."""

    shown: str
    beats: list[Beat] = field(default_factory=list)
    canaries: dict[str, Place] = field(default_factory=dict)
    _waited: float = 0.0
    _chars: int = 0

    def read(self, steps: Spot) -> None:
        """Read all steps. The first fault raises `ScenarioError`."""
        items = steps.items("a list of steps")
        for spot in items:
            if self.beats and isinstance(self.beats[-1].action, End):
                raise spot.fault("The job is over by now: nothing may follow its end.")
            self._step(spot)
        if not self.beats or not isinstance(self.beats[-1].action, End):
            raise steps.fault("The last step must be `result:`, or `end:` for an end without a result.")

    def _step(self, spot: Spot) -> None:
        if not spot.is_mapping:
            spot.word("a step", ("done",))
            self._line(spot, LineType.DONE, (), spot.place.line)
            return
        members = spot.mapping("a step")
        if len(members) != 1:
            raise spot.fault("A step is one word with its value; begin the next step with `-`.")
        ((word, value),) = members.items()
        reader = _STEPS.get(word)
        if reader is None:
            words = ", ".join(f"`{step}`" for step in (*_STEPS, "done"))
            raise value.key_fault(f"`{word}` is no step; one of {words} is due.", nearest(word, (*_STEPS, "done")))
        reader(self, value)

    def _beat(self, spot: Spot, action: Action) -> None:
        if len(self.beats) >= MAX_BEATS:
            raise spot.fault(f"A script may do {MAX_BEATS} things at most.")
        self.beats.append(Beat(self._waited, action))
        self._waited = 0.0

    def _line(self, spot: Spot, kind: LineType, members: tuple[tuple[str, Scalar], ...], line: int) -> None:
        texts = [value for _, value in members if isinstance(value, str)]
        self._chars += sum(len(text) for text in texts)
        if self._chars > MAX_CHARS:
            raise spot.fault(f"A script may say {MAX_CHARS} characters at most.")
        for text in texts:
            if text.count("{canary:") != len(CANARY.findall(text)):
                raise spot.fault("A canary is written `{canary:NAME}`, its name of letters, digits, `-` and `_`.")
        action = EmitLine(kind, members, f"{self.shown}:{line}")
        for name in action.canaries:
            self.canaries.setdefault(name, spot.place)
        self._beat(spot, action)

    def _wait(self, spot: Spot) -> None:
        self._waited += duration(spot)

    def _text(self, spot: Spot) -> None:
        if not spot.is_mapping:
            self._line(spot, LineType.TEXT, (("text", spot.text("a text")),), spot.text_line)
            return
        members = spot.members("a text, or `of`, `events` and `every`", ("of", "events", "every"), ("of",))
        text = members["of"]
        pieces = self._dealt(text, members.get("events"))
        every = duration(members["every"]) if "every" in members else 0.0
        for piece, line in pieces:
            self._waited += every
            self._line(text, LineType.TEXT, (("text", piece),), line)

    def _dealt(self, text: Spot, events: Spot | None) -> list[tuple[str, int]]:
        value = text.text("the text to deal")
        if events is None:
            starts = [match.start() for match in _ROW.finditer(value)]
        else:
            words = [match.start() for match in _WORD.finditer(value)]
            count = events.count("the number of events", 1, MAX_BEATS)
            if count > len(words):
                raise events.fault(f"The text has {len(words)} words, too few for {count} events.")
            starts = [words[index * len(words) // count] for index in range(count)]
        return list(_pieces(value, starts, text))

    def _repeat(self, spot: Spot) -> None:
        members = spot.members("`count`, `every` and `text`", ("count", "every", "text"), ("count", "text"))
        count = members["count"].count("the number of events", 1, MAX_BEATS)
        every = duration(members["every"]) if "every" in members else 0.0
        text = members["text"]
        template = text.text("a text")
        for n in range(1, count + 1):
            self._waited += every
            self._line(text, LineType.TEXT, (("text", template.replace("{n}", str(n))),), text.text_line)

    def _tool(self, spot: Spot) -> None:
        members = spot.mapping("`name` and further members of the tool event")
        if "name" not in members:
            raise spot.fault("`name` is missing.")
        if "type" in members:
            raise members["type"].key_fault("`type` is always `tool` here.")
        values = tuple((name, value.scalar("a text, a number or a truth value")) for name, value in members.items())
        self._line(spot, LineType.TOOL, values, spot.place.line)

    def _answer(self, spot: Spot) -> None:
        self._line(spot, LineType.ANSWER, (("text", spot.text("the answer")),), spot.text_line)

    def _event(self, spot: Spot) -> None:
        members = spot.members("the members of a job.event", ("state", "phase", *_EVENT_COUNTS, "terminal"))
        payload: dict[str, object] = {"state": "running"}
        for name, value in members.items():
            if name == "state":
                payload[name] = value.word("a state", EVENT_STATES)
            elif name == "terminal":
                payload[name] = value.flag("`terminal`")
            elif name == "phase":
                payload[name] = value.text("a phase")
            else:
                payload[name] = value.count(f"`{name}`", 0, _MOST)
        self._beat(spot, EmitFrame(FrameType.JOB_EVENT, payload))

    def _audit(self, spot: Spot) -> None:
        members = spot.members("the members of an audit.event", _AUDIT_WORDS, ("code",))
        payload = {name: value.scalar(f"`{name}`") for name, value in members.items()}
        self._beat(spot, EmitFrame(FrameType.AUDIT_EVENT, payload))

    def _approval(self, spot: Spot) -> None:
        name = spot.members("the approval's `id`", ("id",), ("id",))["id"]
        approval_id = name.text("the approval's id")
        if not _ID.fullmatch(approval_id):
            raise name.fault("An id is 1 to 128 letters, digits and `.`, `_`, `:`, `-`.")
        if any(beat.action == AwaitApproval(approval_id) for beat in self.beats):
            raise name.fault(f"`{approval_id}` was waited for before: each approval has an id of its own.")
        self._beat(spot, AwaitApproval(approval_id))

    def _result(self, spot: Spot) -> None:
        words = ("outcome", *_RESULT_TEXTS, "filesChangedCount", "tests")
        members = spot.members("the members of a job.result", words, ("outcome",))
        outcome = members["outcome"].word("an outcome", STATE_OF_OUTCOME)
        payload: dict[str, object] = {"outcome": outcome}
        for name, value in members.items():
            if name in _RESULT_TEXTS:
                payload[name] = value.text(f"`{name}`")
            elif name == "filesChangedCount":
                # CHAT-009: the agent must cope with a count that is none, so a script may say one
                payload[name] = value.scalar("the number of files")
            elif name == "tests":
                payload[name] = _tests(value)
        self._beat(spot, End(payload, STATE_OF_OUTCOME[outcome]))

    def _end(self, spot: Spot) -> None:
        state = spot.word("an end without a result", END_WITHOUT_RESULT)
        self._beat(spot, End(None, None if state == "silent" else state))


_STEPS: dict[str, Callable[[StepReader, Spot], None]] = {
    "wait": StepReader._wait,
    "text": StepReader._text,
    "repeat": StepReader._repeat,
    "tool": StepReader._tool,
    "answer": StepReader._answer,
    "event": StepReader._event,
    "audit": StepReader._audit,
    "approval": StepReader._approval,
    "result": StepReader._result,
    "end": StepReader._end,
}


def duration(spot: Spot) -> float:
    """The duration written at `spot`, in seconds."""
    try:
        return parse_duration(str(spot.scalar("a duration")))
    except ValueError as error:
        raise spot.fault(f"This is {error}.") from error


def _tests(spot: Spot) -> Payload:
    members = spot.members("the counts of tests", _TESTS, _TESTS)
    return {name: members[name].count(f"`{name}`", 0, _MOST) for name in _TESTS}


def _pieces(value: str, starts: list[int], text: Spot) -> Iterator[tuple[str, int]]:
    """Each piece of `value` with its line; together they are `value` again."""
    line, counted = text.text_line, 0
    for start, end in pairwise([*starts, len(value)]):
        piece = value[start:end]
        first = start + len(piece) - len(piece.lstrip())
        if text.is_literal:
            line += value.count("\n", counted, first)
            counted = first
        yield piece, line
