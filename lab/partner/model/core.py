"""The partner API as a pure core: a request in, an answer out, everything remembered in the state.

A route is a function `(parts, caller, request) -> Answer`. The checks run in the order of PA-050: key, organization,
scope, then in the route itself shape, actor and lease, ownership, receipt, state. The first failure answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lab.context import RunContext
from lab.partner.model.answers import Answer, ApiRequest, refused
from lab.partner.model.attachments import get_content, post_attachment
from lab.partner.model.authority import Authority, Caller, key_hash
from lab.partner.model.context import get_context, put_context
from lab.partner.model.conversations import post_conversation
from lab.partner.model.event_stream import Opening, open_stream
from lab.partner.model.history import get_history
from lab.partner.model.keyring import KeyringFile, open_keyring
from lab.partner.model.memberships import put_membership
from lab.partner.model.messages import post_message
from lab.partner.model.parts import Parts, WallClock
from lab.partner.model.receipts import Receipts
from lab.partner.model.refusals import Refusal
from lab.partner.model.runs import get_run
from lab.partner.model.seeding import seed
from lab.partner.model.settings import PartnerSettings
from lab.partner.model.state import State
from lab.partner.model.words import BASE, Scope

RouteFunction = Callable[[Parts, Caller, ApiRequest], Answer]

_LIVES: Final = "lives"
_INSTANCE: Final = "instance_id"


@dataclass(frozen=True, slots=True)
class Operation:
    """One of the ten operations (PA-009). Any one of `scopes` opens it (PA-010); `upload` takes a multipart body."""

    method: str
    below: str
    """The path below the base."""
    scopes: tuple[Scope, ...]
    function: RouteFunction
    upload: bool = False

    @property
    def route(self) -> str:
        """How the journal names it."""
        return f"{self.method} {self.below}"

    @property
    def path(self) -> str:
        """The path as a template."""
        return BASE + self.below


_CONVERSATION: Final = "/conversations/{conversationId}"

OPERATIONS: Final = (
    Operation("PUT", "/memberships", (Scope.MEMBERSHIP,), put_membership),
    Operation("POST", "/conversations", (Scope.CREATE,), post_conversation),
    Operation("GET", f"{_CONVERSATION}/context", (Scope.CONTEXT,), get_context),
    Operation("PUT", f"{_CONVERSATION}/context", (Scope.CONTEXT,), put_context),
    Operation("POST", f"{_CONVERSATION}/attachments", (Scope.RUN,), post_attachment, upload=True),
    Operation("POST", f"{_CONVERSATION}/messages", (Scope.RUN,), post_message),
    Operation("GET", f"{_CONVERSATION}/messages", (Scope.READ,), get_history),
    Operation("GET", f"{_CONVERSATION}/runs/{{runId}}", (Scope.READ,), get_run),
    Operation(
        "GET",
        f"{_CONVERSATION}/attachments/{{attachmentId}}/content",
        # AT-018: the second one without naming an actor
        (Scope.READ, Scope.CONVERSATION_READ),
        get_content,
    ),
)


STREAM_ROUTE: Final = f"GET {_CONVERSATION}/runs/{{runId}}/events"
STREAM_PATH: Final = f"{BASE}{_CONVERSATION}/runs/{{runId}}/events"
"""The tenth one, which is no single answer."""


class PartnerCore:
    """One life of the model. `start_number` counts the starts of its server, from 1; call `close` once at the end.

    Opens the state and brings in what the settings provision. A state that cannot be used raises `EnvironmentFault`.
    """

    def __init__(self, ctx: RunContext, name: str, settings: PartnerSettings, start_number: int = 1) -> None:
        secrets = ctx.secret_draws(name, f"model start {start_number}")
        # A later start without a state makes keys of its own (FX-026).
        self.keyring: KeyringFile = open_keyring(
            settings.state_path, settings.keys if start_number == 1 else None, secrets
        )
        state = State(settings.state_path, bytes.fromhex(self.keyring.keyring.seal_key), self._nonce)
        # With a state the lives are counted in it: what a former life drew, of another process too, never comes again.
        life = start_number if settings.state_path is None else int(state.meta(_LIVES) or 0) + 1
        self._nonces = ctx.secret_draws(name, f"model nonces {life}")
        self.key_draws = ctx.secret_draws(name, f"model keys {life}")
        ids = ctx.draws(name, f"model ids {life}")
        state.set_meta(_LIVES, str(life))
        instance_id = state.meta(_INSTANCE) or secrets.uuid()
        state.set_meta(_INSTANCE, instance_id)
        clock = WallClock(ctx, state)
        authority = Authority(state, settings.organization_id, clock.now_ms)
        seed(state, settings, self.keyring.keyring, ids)
        self.parts = Parts(ctx, name, settings, state, clock, authority, Receipts(state), ids, instance_id)

    def admit(self, authorization: Sequence[str], organization_id: str | None, *scopes: Scope) -> Caller:
        """The caller, or a refusal: key, organization, scope."""
        caller = self.parts.authority.check_key(authorization, organization_id)
        if scopes:
            self.parts.authority.check_scope(caller, *scopes)
        return caller

    def answer(self, operation: Operation, request: ApiRequest) -> Answer:
        """Serve a request of one of `OPERATIONS`; refusals are answers too."""
        try:
            caller = self.admit(request.header("Authorization"), request.path["orgId"], *operation.scopes)
            return operation.function(self.parts, caller, request)
        except Refusal as refusal:
            return refused(refusal)

    def open_stream(self, request: ApiRequest) -> Opening | Answer:
        """The stream of a run's events that may be opened, or the answer that refuses it (SSE-054)."""
        try:
            caller = self.admit(request.header("Authorization"), request.path["orgId"], Scope.READ)
            return open_stream(self.parts, caller, request)
        except Refusal as refusal:
            return refused(refusal)

    def role_of(self, key: str) -> str | None:
        """Whose key this is or was, for the journal."""
        row = self.parts.state.row("SELECT role FROM keys WHERE key_hash = ?", key_hash(key))
        return None if row is None else str(row["role"])

    def close(self) -> None:
        """Let go of the state."""
        self.parts.state.close()

    def _nonce(self, size: int) -> bytes:
        return self._nonces.bytes(size)
