"""What the modules of the single routes share: the state, the checks, the clock, fresh ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lab.clock import timestamp
from lab.context import RunContext
from lab.draws import Draws
from lab.partner.model.answers import ApiRequest
from lab.partner.model.authority import Actor, Authority, Caller, Conversation
from lab.partner.model.receipts import ReceiptPlace, Receipts
from lab.partner.model.settings import PartnerSettings
from lab.partner.model.shape import actor_query_untrusted
from lab.partner.model.state import State

_OFFSET = "clock_offset_ms"


class WallClock:
    """The model's wall clock: the run's, moved by the lab control (PA-055). The move survives with the state."""

    def __init__(self, ctx: RunContext, state: State) -> None:
        self._ctx = ctx
        self._state = state
        self._offset_ms = int(state.meta(_OFFSET) or 0)

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return self._ctx.wall_ms() + self._offset_ms

    def move(self, by_ms: int) -> None:
        """Set it ahead, or back for a negative number."""
        self._offset_ms += by_ms
        self._state.set_meta(_OFFSET, str(self._offset_ms))


class Bell:
    """Wakes whoever waits for a change of the state: open streams, the turn runner. Listeners are called in order."""

    def __init__(self) -> None:
        self._listeners: dict[int, Callable[[], None]] = {}
        self._count = 0

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` at each change, until the returned function is called."""
        self._count += 1
        number = self._count
        self._listeners[number] = listener
        return lambda: self._listeners.pop(number, None) and None

    def ring(self) -> None:
        """Something that others may wait for has changed."""
        for listener in tuple(self._listeners.values()):
            listener()


@dataclass(frozen=True, slots=True)
class Parts:
    """Given to every route: `(parts, caller, request) -> Answer`, key and scope being checked already.

    A route raises `Refusal` for what it refuses, and rings the bell after a change that others wait for.
    """

    ctx: RunContext
    name: str
    settings: PartnerSettings
    state: State
    clock: WallClock
    authority: Authority
    receipts: Receipts
    ids: Draws
    instance_id: str
    bell: Bell = field(default_factory=Bell)

    def now_ms(self) -> int:
        """The model's wall clock."""
        return self.clock.now_ms()

    def stamp(self, ms: int | None) -> str | None:
        """A time as it stands on the wire (PA-048)."""
        return None if ms is None else timestamp(ms)

    def place(self, caller: Caller, operation: str, conversation_id: str = "") -> ReceiptPlace:
        """What an Idempotency-Key of this caller is unique within."""
        return ReceiptPlace(
            self.settings.organization_id, self.settings.environment, caller.namespace, operation, conversation_id
        )

    def own_conversation(self, caller: Caller, request: ApiRequest) -> tuple[Actor, Conversation]:
        """The actor of the query and the conversation of the path, which must be the actor's own."""
        actor = self.authority.actor_of(caller, *actor_query_untrusted(request))
        return actor, self.authority.conversation_of(actor, request.path["conversationId"])
