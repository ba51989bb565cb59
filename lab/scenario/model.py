"""A scenario as data: what the loader makes of a YAML file and the runner carries out.

Participants of the chat leg are plural; the singular keys of a file (`gateway`, `agent2`, `local_agent`) declare one
participant of that name. The partner leg is in lab.scenario.partner_model. Every part keeps the line it was written at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.faults.plan import Fault
from lab.scenario.partner_model import PartnerSpec
from lab.scenario.step import Step


@dataclass(frozen=True)
class GatewaySpec:
    """A gateway double. `limits` are members of ready.limits in the contract's names and units."""

    name: str
    tenant_mode: str = "client"
    signature: bool = True
    """Whether it signs its frames; without a key it does not do v2 (SG-019)."""
    revision: str = "2.3"
    limits: Mapping[str, int] = field(default_factory=dict)
    line: int = 0
    protocol_v2: bool = True
    """Whether it knows v2 at all; without it a v2 register stays unanswered."""
    instance_of: str | None = None
    """The gateway that this is one more instance of: the same agents, keys and jobs, no common sessions."""

    @property
    def root(self) -> str:
        """The name that all instances of one gateway share."""
        return self.instance_of or self.name


@dataclass(frozen=True)
class Agent2Spec:
    """An agent2 double. `scripts` maps a job kind to a script file below the project's root.

    `health_delay` is how long it takes to answer a health call, in seconds.
    """

    name: str
    kinds: tuple[str, ...] = ("fix", "implement")
    scripts: Mapping[str, Path] = field(default_factory=dict)
    line: int = 0
    health_delay: float = 0.0


@dataclass(frozen=True)
class LocalAgentSpec:
    """A Local Agent. `use` is reference, attach, the name of a profile, or a command line."""

    name: str
    use: str = "reference"
    gateway: str = "gateway"
    agent2: str = "agent2"
    signature_mode: str = "enforce"
    revision: str = "2.3"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the reference agent, by name (see lab.localagent.config)."""
    line: int = 0
    clock: float = 0.0
    """How far the reference agent's clock is ahead, in seconds."""


@dataclass(frozen=True)
class LinkSpec:
    """A link that stands before the gateway or agent2 named `to`; `of` narrows it to one local agent."""

    name: str
    to: str
    of: str | None = None
    delay: float = 0.0
    line: int = 0


@dataclass(frozen=True)
class WaitStep(Step):
    """Wait for `<subject>.<condition>`.

    A local agent: ready, resumed, disconnected, refused, v1. `job.<label>`: accepted, rejected, running, ended,
    cancelled (ended so), and repeated once a frame of the job came a second time.
    `fault.<id>`: fired.
    """

    subject: str
    condition: str


@dataclass(frozen=True)
class AssignStep(Step):
    """Assign a job. `inputs` are inline texts; `options` and `llm` are members of job.assign."""

    job: str
    kind: str
    inputs: tuple[str, ...] = ()
    to: str = "local_agent"
    options: Mapping[str, Any] = field(default_factory=dict)
    llm: str | None = "default"
    incident: str | None = None
    fails: str | None = None
    """The API or wire code the assign must fail with, such as AGENT_UNSUPPORTED; None when it must succeed."""


@dataclass(frozen=True)
class CancelStep(Step):
    """Cancel a job."""

    job: str
    reason: str = "user"


@dataclass(frozen=True)
class StreamStep(Step):
    """Follow a job's stream page by page until `events` are there, or `done` when None."""

    job: str
    events: int | None


@dataclass(frozen=True)
class SessionStep(Step):
    """Open the stored conversation of a job."""

    job: str


@dataclass(frozen=True)
class ResultStep(Step):
    """Wait for a job's job.result."""

    job: str


@dataclass(frozen=True)
class ApproveStep(Step):
    """Decide the approval that a job waits for. `decision` approve or deny."""

    job: str
    decision: str


@dataclass(frozen=True)
class IdleStep(Step):
    """Let `seconds` of lab time pass."""

    seconds: float


@dataclass(frozen=True)
class FaultStep(Step):
    """Make a fault happen now, or arm one that waits for its anchor."""

    fault: Fault


@dataclass(frozen=True)
class ContentStep(Step):
    """Ask for content of a job, `kind` job.stream (its first page) or chat.session, as a caller that reads slowly.

    It takes one chunk every `pace` seconds.
    """

    job: str
    kind: str
    pace: float
    fails: str | None = None
    """The code that the request must fail with; None when it must succeed."""


@dataclass(frozen=True)
class InjectStep(Step):
    """Have the gateway send a message of its own making to a local agent: `text`, or what a word of `junk` means."""

    fault: Fault
    to: str
    text: str | None = None
    junk: str | None = None


@dataclass(frozen=True)
class Expectation:
    """One line of `expect`: a dotted path and what is due there.

    Paths: `job.<label>.outcome|errorCode|filesChangedCount|runs|acks`, `stream.<label>.events|pages|emptyPages`,
    `session.<label>.turns|truncated`, `socket.<local agent>.opened|closes|errors|refusals|fallbacks`,
    `figures.<name>`. A due value is a scalar, a mapping of matchers (`count`, `min`, `max`, `contains`,
    `contiguous`), or a list of mappings of `role`, `contains` and `chars`.
    """

    path: str
    due: Any
    line: int


@dataclass(frozen=True)
class Scenario:
    """A whole scenario."""

    name: str
    about: str
    file: Path
    seed: int | None
    deadline: float
    gateways: Mapping[str, GatewaySpec]
    agent2s: Mapping[str, Agent2Spec]
    local_agents: Mapping[str, LocalAgentSpec]
    links: Mapping[str, LinkSpec]
    steps: tuple[Step, ...]
    expect: tuple[Expectation, ...] = ()
    must_judge: tuple[str, ...] = ()
    must_judge_line: int = 0
    requires: tuple[str, ...] = ()
    """What a run needs: `reference` (the SUT must be the reference agent) or a capability's name."""
    tags: tuple[str, ...] = ()
    partner: PartnerSpec | None = None
    """Who takes part in the partner leg; None for a scenario of the chat leg."""
    patient: bool = False
    """Whether the caller waits for an agent that is away, asks again, and takes what faults may bring about."""
