"""Reading a script file: each fault raises `ScenarioError` with file, line and what was due.

    iterations:
      - model: synthetic-1
        steps:
          - wait: 200ms
          - thinking: "private"
          - text: "one event"
          - text: { of: "words dealt into 3 events", events: 3, every: 5ms }
          - repeat: { count: 200, every: 5ms, text: "event {n} " }
          - tool: { name: catalog_get, input: { productId: 9001 }, on_failure: stop, worker: 30ms }
          - tools: [ { name: catalog_get, input: { productId: 1 } }, { name: store_status } ]     in parallel
        usage: { input: 9120, output: 410, cache_read: 0, cache_write: 7, cache_write_1h: 5 }
        attempts: [ { model: synthetic-0, after: 50ms } ]     failed before this response
        blocking: true       no stream: the response comes as a whole
        deliver: 5ms         each text event takes so long to be delivered
        fails: "raw text of the provider's error, after the deltas"

Deltas come first and then tools, as in a response; an iteration with tools is followed by another one, and the last has
none, unless the script is `endless`. Without `usage` the provider told no counters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import yaml

from lab.durations import parse_duration
from lab.errors import Place, ScenarioError
from lab.partner.model.script import (
    DEFAULT_MAX_ITERATIONS,
    DELAYS,
    Attempt,
    Charge,
    Delta,
    Flush,
    ModelIteration,
    OnFailure,
    Pause,
    Script,
    Text,
    Thinking,
    ToolCall,
    When,
)
from lab.partner.model.usage import TOKEN_KIND, TokenCounts
from lab.yaml_marks import Spot, nearest, read_marks, read_script_text

MAX_DELTAS = 10_000
MAX_CHARS = 4 << 20
"""Most characters of text in one script, so that `repeat` cannot fill the memory."""
MOST_ITERATIONS = 100
MOST_PARALLEL = 16

_WORDS = (
    *("script", "about", "when", "max_iterations", "delays", "classification"),
    *("iterations", "endless", "billing", "flush"),
)
_COUNTERS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_MOST = (1 << 53) - 1
_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}")
_WORD = re.compile(r"\s*\S+\s*")


def load_script(path: Path) -> Script:
    """The script in the file `path`. Whatever is wrong with it raises `ScenarioError` with its place."""
    text = read_script_text(path, "fixtures/partner/hello.yaml")
    return parse_script(text, str(path))


def load_scripts(path: Path) -> tuple[Script, ...]:
    """The script in a file, or those of a folder in the order of their names. Raises as `load_script` does."""
    if not path.is_dir():
        return (load_script(path),)
    files = sorted(path.glob("*.yaml"))
    if not files:
        raise ScenarioError(Place(str(path), 1), "", "The folder has no script; due is a file such as hello.yaml.")
    scripts = tuple(load_script(file) for file in files)
    general = [file for file, script in zip(files, scripts, strict=True) if script.when is None]
    if len(general) > 1:
        message = f"Nothing would choose this script, as {general[0].name} has no `when` either; give one of them some."
        raise ScenarioError(Place(str(general[1]), 1), "", message)
    return scripts


@lru_cache(maxsize=64)
def parse_script(text: str, file: str) -> Script:
    """The script `text`, which errors call `file`. The same text is read once."""
    return read_script(read_marks(text, file))


def read_script(root: Spot) -> Script:
    """The script at `root`."""
    members = root.members("a script", _WORDS, ("script", "about", "iterations"))
    endless = "endless" in members and members["endless"].flag("`endless`")
    most = DEFAULT_MAX_ITERATIONS
    if "max_iterations" in members:
        most = members["max_iterations"].count("the most iterations of a turn", 1, MOST_ITERATIONS)
    return Script(
        name=members["script"].text("the script's name"),
        about=members["about"].text("what the script shows"),
        iterations=_iterations(members["iterations"], most, endless),
        when=_when(members["when"]) if "when" in members else None,
        max_iterations=most,
        endless=endless,
        delays=_delays(members["delays"]) if "delays" in members else {},
        classification=_attempt(members["classification"]) if "classification" in members else None,
        billing=tuple(_charge(spot) for spot in members["billing"].items("a list of billing events"))
        if "billing" in members
        else (),
        flush=_flush(members["flush"]) if "flush" in members else Flush(),
    )


def _iterations(spot: Spot, most: int, endless: bool) -> tuple[ModelIteration, ...]:
    items = spot.items("a list of model iterations")
    if not items:
        raise spot.fault("A turn asks the model at least once: an iteration is due here.")
    if len(items) > most:
        raise items[most].fault(f"The turn ends after {most} iterations, so this one never comes; see max_iterations.")
    budget = _Budget()
    iterations = tuple(_iteration(item, budget) for item in items)
    for item, iteration in zip(items[:-1], iterations, strict=False):
        if not iteration.calls and iteration.fails is None:
            raise item.fault("The turn is over after an iteration without a tool; it must be the last, or call one.")
    if endless and not iterations[-1].calls:
        raise items[-1].fault("An endless script goes on because its last iteration calls a tool; one is due here.")
    if not endless and iterations[-1].calls:
        raise items[-1].fault(
            "The model is asked again after a tool: a last iteration without one is due, or `endless`."
        )
    return iterations


@dataclass(slots=True)
class _Budget:
    """What one script may hold in all."""

    deltas: int = 0
    characters: int = 0

    def take(self, spot: Spot, delta: Delta) -> None:
        self.deltas += 1
        self.characters += 0 if isinstance(delta, Pause) else len(delta.text)
        if self.deltas > MAX_DELTAS or self.characters > MAX_CHARS:
            raise spot.fault(f"A script may hold {MAX_DELTAS} deltas and {MAX_CHARS} characters at most.")


@dataclass(slots=True)
class _Steps:
    """Reads the steps of one iteration."""

    budget: _Budget
    deltas: list[Delta] = field(default_factory=list)
    calls: list[tuple[ToolCall, ...]] = field(default_factory=list)

    def read(self, spot: Spot) -> None:
        members = spot.mapping("a step, such as `text:`")
        if len(members) != 1:
            raise spot.fault("A step is one word with its value; begin the next step with `-`.")
        ((word, value),) = members.items()
        reader = _STEPS.get(word)
        if reader is None:
            words = ", ".join(f"`{step}`" for step in _STEPS)
            raise value.key_fault(f"`{word}` is no step; one of {words} is due.", nearest(word, _STEPS))
        if self.calls and word not in ("tool", "tools"):
            raise value.key_fault(
                "A response ends with its tools: what comes after them belongs to the next iteration."
            )
        reader(self, value)

    def _take(self, spot: Spot, delta: Delta) -> None:
        self.budget.take(spot, delta)
        self.deltas.append(delta)

    def _wait(self, spot: Spot) -> None:
        self._take(spot, Pause(duration(spot)))

    def _pause(self, spot: Spot, seconds: float) -> None:
        if seconds:
            self._take(spot, Pause(seconds))

    def _thinking(self, spot: Spot) -> None:
        self._take(spot, Thinking(_characters(spot)))

    def _text(self, spot: Spot) -> None:
        if not spot.is_mapping:
            self._take(spot, Text(_characters(spot)))
            return
        members = spot.members("a text, or `of`, `events` and `every`", ("of", "events", "every"), ("of", "events"))
        words = _WORD.findall(members["of"].text("the text to deal"))
        count = members["events"].count("the number of events", 1, MAX_DELTAS)
        if count > len(words):
            raise members["events"].fault(f"The text has {len(words)} words, too few for {count} events.")
        every = duration(members["every"]) if "every" in members else 0.0
        for index in range(count):
            dealt = words[index * len(words) // count : (index + 1) * len(words) // count]
            self._pause(spot, every)
            self._take(spot, Text("".join(dealt)))

    def _repeat(self, spot: Spot) -> None:
        members = spot.members("`count`, `every` and `text`", ("count", "every", "text"), ("count", "text"))
        count = members["count"].count("the number of events", 1, MAX_DELTAS)
        every = duration(members["every"]) if "every" in members else 0.0
        template = members["text"].text("a text")
        for n in range(1, count + 1):
            self._pause(spot, every)
            self._take(spot, Text(template.replace("{n}", str(n))))

    def _tool(self, spot: Spot) -> None:
        self.calls.append((_call(spot),))

    def _tools(self, spot: Spot) -> None:
        items = spot.items("a list of tools that are called in parallel")
        if not 2 <= len(items) <= MOST_PARALLEL:
            raise spot.fault(f"2 to {MOST_PARALLEL} tools are called in parallel; a single one is `tool:`.")
        self.calls.append(tuple(_call(item) for item in items))


_STEPS: dict[str, Callable[[_Steps, Spot], None]] = {
    "wait": _Steps._wait,
    "text": _Steps._text,
    "repeat": _Steps._repeat,
    "thinking": _Steps._thinking,
    "tool": _Steps._tool,
    "tools": _Steps._tools,
}


def _iteration(spot: Spot, budget: _Budget) -> ModelIteration:
    words = ("model", "steps", "usage", "attempts", "blocking", "deliver", "fails")
    members = spot.members("a model iteration", words, ("model", "steps"))
    steps = _Steps(budget)
    for step in members["steps"].items("a list of steps"):
        steps.read(step)
    fails = members["fails"].text("the provider's error") if "fails" in members else None
    if fails is not None and steps.calls:
        raise members["fails"].key_fault("A response that fails asks for no tool; take one of the two out.")
    attempts = members["attempts"].items("a list of attempts that failed") if "attempts" in members else []
    return ModelIteration(
        model=_model(members["model"]),
        deltas=tuple(steps.deltas),
        calls=tuple(steps.calls),
        usage=_counts(members["usage"]) if "usage" in members else None,
        blocking="blocking" in members and members["blocking"].flag("`blocking`"),
        deliver=duration(members["deliver"]) if "deliver" in members else 0.0,
        attempts=tuple(_attempt(attempt) for attempt in attempts),
        fails=fails,
    )


def _call(spot: Spot) -> ToolCall:
    members = spot.members("a tool call", ("name", "input", "on_failure", "worker"), ("name",))
    value = json_value(members["input"]) if "input" in members else {}
    if not isinstance(value, dict):
        raise members["input"].fault("The tool's input is due here: a mapping of its arguments.")
    failure = (
        members["on_failure"].word("what the model does", tuple(OnFailure)) if "on_failure" in members else "answer"
    )
    return ToolCall(
        members["name"].text("the tool's name"),
        value,
        OnFailure(failure),
        duration(members["worker"]) if "worker" in members else 0.0,
    )


def _attempt(spot: Spot) -> Attempt:
    members = spot.members("a request to a model", ("model", "after", "usage"), ("model",))
    return Attempt(
        _model(members["model"]),
        duration(members["after"]) if "after" in members else 0.0,
        _counts(members["usage"]) if "usage" in members else None,
    )


def _counts(spot: Spot) -> TokenCounts:
    members = spot.members("the provider's counters", _COUNTERS, ("input", "output"))
    return TokenCounts(**{name: value.count(f"`{name}`", 0, _MOST) for name, value in members.items()})


def _charge(spot: Spot) -> Charge:
    members = spot.members("a billing event", ("kind", "pico"), ("kind",))
    kind = members["kind"].text("the kind of the event")
    if not _KIND.fullmatch(kind) or kind == TOKEN_KIND:
        message = f"A kind is a word such as `runtime_seconds`; `{TOKEN_KIND}` comes from the responses' usage alone."
        raise members["kind"].fault(message)
    return Charge(kind, members["pico"].count("pico-dollars", 0, _MOST) if "pico" in members else None)


def _flush(spot: Spot) -> Flush:
    members = spot.members("how the ledger's last write goes", ("after", "fails"))
    after = duration(members["after"]) if "after" in members else 0.0
    return Flush(after, "fails" in members and members["fails"].flag("`fails`"))


def _when(spot: Spot) -> When:
    members = spot.members("which messages the script is for", ("agent", "contains"))
    if not members:
        raise spot.fault("`agent`, `contains` or both are due here.")
    agent = members["agent"].text("an agent's id") if "agent" in members else None
    return When(agent, members["contains"].text("a part of the message") if "contains" in members else None)


def _delays(spot: Spot) -> dict[str, float]:
    return {name: duration(value) for name, value in spot.members("delays by stage", DELAYS).items()}


def _model(spot: Spot) -> str:
    name = spot.text("the name of a model")
    if not _MODEL.fullmatch(name):
        raise spot.fault("A model's name is 1 to 64 letters, digits and `.`, `_`, `:`, `/`, `-`.")
    return name


def _characters(spot: Spot) -> str:
    """A text, which may be empty: a delta without a character is one that a provider may send."""
    value = spot.scalar("a text")
    if not isinstance(value, str):
        raise spot.fault("A text is due here; put quotes around it.")
    return value


def duration(spot: Spot) -> float:
    """The duration written at `spot`, in seconds."""
    try:
        return parse_duration(str(spot.scalar("a duration")))
    except ValueError as error:
        raise spot.fault(f"This is {error}.") from error


def json_value(spot: Spot) -> object:
    """What stands at `spot`, as JSON has it."""
    if isinstance(spot.node, yaml.MappingNode):
        return {name: json_value(value) for name, value in spot.mapping("a mapping").items()}
    if isinstance(spot.node, yaml.SequenceNode):
        return [json_value(item) for item in spot.items("a list")]
    kind = spot.node.tag.rpartition(":")[2]
    value = spot.scalar("a value")
    if kind == "null":
        return None
    if kind == "float" and isinstance(value, str):
        return _number(value)
    return value


def _number(text: str) -> float | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
