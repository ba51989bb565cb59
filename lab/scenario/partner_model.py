"""The partner leg of a scenario as data: its participants and its steps.

Labels stand for what the partner API names by ids: conversations, runs and files. `fails` of a step is the error code
that its call must end with; None when it must succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.scenario.step import Step

DEFAULT_TEAM = "shop"
DEFAULT_AGENT = "store"

KEYS = ("chat", "provisioning", "store", "issuer", "unknown", "none")
ONLY = "only:"
"""What `key` of a call may be: one of these words, or a key of the scope behind `only:`."""


@dataclass(frozen=True)
class PartnerAgentSpec:
    """An agent of the reference model. `mcp` is store, none, lost or several: which stores it is allowed."""

    name: str
    team: str
    mcp: str = "store"
    script: Path | None = None
    profile: bool = True


@dataclass(frozen=True)
class PartnerApiSpec:
    """The partner API. `use` is reference, the name of a profile, or a URL; the rest sets the reference model up."""

    use: str = "reference"
    teams: tuple[str, ...] = (DEFAULT_TEAM,)
    agents: Mapping[str, PartnerAgentSpec] = field(default_factory=dict)
    mcp_era: str = "2025"
    keep_alive: float = 15.0
    keeps_state: bool = False
    checks_claims: bool = False
    status_after_error: bool = False
    line: int = 0


@dataclass(frozen=True)
class MisbehaviourSpec:
    """What the store does wrong: `do`, for the `nth` request (None: each) of `method` and `tool`, None for any."""

    do: str
    method: str | None = None
    tool: str | None = None
    nth: int | None = None
    seconds: float | None = None
    status: int | None = None
    line: int = 0


@dataclass(frozen=True)
class StoreSpec:
    """The store double. `answers` json or sse; `refusal` is how a call without a right grant is refused."""

    answers: str = "json"
    refusal: str = "http"
    misbehave: tuple[MisbehaviourSpec, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class IssuerSpec:
    """The grant issuer double. `ttl` is the life of a grant in seconds."""

    ttl: float = 300.0
    line: int = 0


@dataclass(frozen=True)
class PartnerSpec:
    """Who takes part in the partner leg."""

    api: PartnerApiSpec
    store: StoreSpec
    issuer: IssuerSpec


@dataclass(frozen=True)
class MembershipStep(Step):
    """Confirm an employee's membership. `revision` None: one more than the driver's last.

    `lease` in seconds is confirmed once; None asks for the driver's own, which is renewed as long as the run lasts.
    """

    user: str
    team: str
    role: str = "member"
    active: bool = True
    revision: int | None = None
    lease: float | None = None
    fails: str | None = None


@dataclass(frozen=True)
class ConversationStep(Step):
    """Create a conversation. `again` is the label of one whose Idempotency-Key is sent again."""

    conversation: str
    user: str
    team: str
    agent: str
    again: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class GrantStep(Step):
    """Mint a grant. With `wrong` (claims by name) the issuer's control makes it."""

    conversation: str
    wrong: Mapping[str, str] = field(default_factory=dict)
    fails: str | None = None


@dataclass(frozen=True)
class BindStep(Step):
    """Bind the latest grant. What is not None replaces what the driver knows."""

    conversation: str
    expected: int | None = None
    destination: str | None = None
    server: str | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class ContextStep(Step):
    """Read the context. `active` and `version` are what is due, None for anything."""

    conversation: str
    active: bool | None = None
    version: int | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class RecoverStep(Step):
    """Recover the context."""

    conversation: str
    fails: str | None = None


@dataclass(frozen=True)
class AttachStep(Step):
    """Upload a file of `text`, or of `size` bytes that are made."""

    file: str
    conversation: str
    type: str
    name: str
    text: str | None = None
    size: int | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class DownloadStep(Step):
    """Read a file back; `conversation` is another one than the file's."""

    file: str
    conversation: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class MessageStep(Step):
    """Send a message. `again` is the label of a run whose Idempotency-Key is sent again."""

    run: str
    conversation: str
    text: str | None = None
    files: tuple[str, ...] = ()
    timezone: str | None = None
    again: str | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class FollowStep(Step):
    """Follow a run's events until there are `events`, or to the end when None.

    With `replay` from the first event again; `after` is a Last-Event-ID as it is.
    """

    run: str
    events: int | None = None
    replay: bool = False
    after: str | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class PollStep(Step):
    """Ask for a run until it has `ended`, is `running`, or once (`now`)."""

    run: str
    until: str = "ended"
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class HistoryStep(Step):
    """Walk through a conversation's history; with `cursor` read that one page."""

    conversation: str
    limit: int | None = None
    cursor: str | None = None
    user: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class CallStep(Step):
    """A call as it stands. `key` is one of `KEYS`, or only:<scope>; `status` is what is due."""

    method: str
    path: str
    status: int
    key: str = "chat"
    actor: str | None = None
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    fails: str | None = None


@dataclass(frozen=True)
class ControlStep(Step):
    """A control of the lab's model or issuer, by its word, and the word or number of seconds it is given."""

    control: str
    value: str | float


@dataclass(frozen=True)
class StoreStep(Step):
    """Change the store: what it does wrong from here on (None: no change), and whether it forgets its sessions."""

    misbehave: tuple[MisbehaviourSpec, ...] | None = None
    forget_sessions: bool = False
