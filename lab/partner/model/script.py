"""A script: what the model behind a run "thinks", as data. Its file lies below `fixtures/partner/`.

script: product-9001
about: one look into the catalogue, then the answer
when: { agent: "…", contains: "9001" }          optional: which messages it is for; both must fit
max_iterations: 8
delays: { admission: 20ms, tool_setup: 5ms }    see `DELAYS`
classification: { model: small, usage: { input: 40, output: 1 } }
iterations: [ … ]                               see `lab.partner.model.script_reading`
endless: true                                   the last iteration comes again and again
billing: [ { kind: runtime_seconds, pico: 1200 }, { kind: gpu_seconds } ]     without `pico`: no price
flush: { after: 50ms, fails: true }             how the ledger's last write goes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lab.partner.model.usage import TokenCounts

DELAYS = (
    *("queue", "admission", "lock", "agent", "prompt", "tool_setup", "worker", "classification"),
    *("model", "first_token", "history", "other", "final"),
)
"""Where a script may wait. `queue` is before the claim, `model` before each request, `first_token` before a response's
first delta, `final` between the frozen snapshot and the terminal event; the others once in their stage."""
DEFAULT_MAX_ITERATIONS = 8


class OnFailure(StrEnum):
    """What the model does after a call that failed or was refused (MCP-023)."""

    ANSWER = "answer"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Text:
    """A delta of the answer; an empty one is no event."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A private delta (SSE-020)."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The model is silent for so many seconds."""

    seconds: float


Delta = Text | Thinking | Pause


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for. `worker` is the wait for a worker inside of the call, in seconds."""

    name: str
    input: Mapping[str, object]
    on_failure: OnFailure = OnFailure.ANSWER
    worker: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that the provider took `seconds` for; its `usage` is billed, None when the provider told none."""

    model: str
    seconds: float = 0.0
    usage: TokenCounts | None = None


@dataclass(frozen=True, slots=True)
class ModelIteration:
    """One request to a model, its response, and the calls that it asks for: groups one after another, each in parallel.

    `attempts` are what failed before (retries, fallbacks: TM-036). `deliver` is what each text event takes to be
    delivered, in seconds. `fails` is the provider's raw error, after the deltas; it never leaves the model (PA-018).
    """

    model: str
    deltas: tuple[Delta, ...]
    calls: tuple[tuple[ToolCall, ...], ...] = ()
    usage: TokenCounts | None = None
    blocking: bool = False
    deliver: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    fails: str | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """A billing event that no model response causes; `pico` None: it has no price."""

    kind: str
    pico: int | None


@dataclass(frozen=True, slots=True)
class Flush:
    """The ledger's last write: `after` so many seconds it is done, or `fails`."""

    after: float = 0.0
    fails: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """Which messages a script is for; None: any."""

    agent: str | None = None
    contains: str | None = None

    def fits(self, agent_id: str, message: str) -> bool:
        """Whether both conditions hold."""
        return self.agent in (None, agent_id) and (self.contains is None or self.contains in message)


@dataclass(frozen=True, slots=True)
class Script:
    """A script. With `endless` the last iteration repeats until `max_iterations`, where the turn is limited."""

    name: str
    about: str
    iterations: tuple[ModelIteration, ...]
    when: When | None = None
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    endless: bool = False
    delays: Mapping[str, float] = field(default_factory=dict)
    classification: Attempt | None = None
    billing: tuple[Charge, ...] = ()
    flush: Flush = Flush()

    def delay(self, name: str) -> float:
        """The seconds to wait at `name`, one of `DELAYS`."""
        return self.delays.get(name, 0.0)

    def iteration(self, index: int) -> ModelIteration:
        """The iteration with this index from 0, however often the last one comes."""
        return self.iterations[min(index, len(self.iterations) - 1)]

    @property
    def answer(self) -> str:
        """All text of the iterations, each once."""
        deltas = [delta for iteration in self.iterations for delta in iteration.deltas]
        return "".join(delta.text for delta in deltas if isinstance(delta, Text))


BUILT_IN = Script(
    "built-in",
    "a greeting, for an agent that has no script",
    (ModelIteration("synthetic-1", (Text("Hello. "), Text("How can I help?")), usage=TokenCounts(12, 7)),),
)


class ScriptShelf:
    """The scripts of each agent, in order."""

    def __init__(self, by_agent: Mapping[str, Sequence[Script]]) -> None:
        self._by_agent = {agent: tuple(scripts) for agent, scripts in by_agent.items()}

    def choose(self, agent_id: str, message: str) -> Script:
        """The first script whose `when` fits the message, else the first without one, else the built-in one."""
        scripts = self._by_agent.get(agent_id, ())
        fitting = (script for script in scripts if script.when is not None and script.when.fits(agent_id, message))
        general = (script for script in scripts if script.when is None)
        return next(fitting, None) or next(general, BUILT_IN)
