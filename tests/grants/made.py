"""An issuer with keys that are known, and what it is asked."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

from lab.grants.binding import GrantBinding
from lab.grants.issuer import IssuerAnswer, IssuerCore, Route
from lab.grants.seal import NONCE_BYTES, Seal

SEAL_KEY = b"k" * 32
ISSUER_KEY = "issuer-key-of-the-test"
REGISTER_KEY = "register-key-of-the-test"
CONTROL_KEY = "control-key-of-the-test"
KEYS = {
    Route.GRANTS: ISSUER_KEY,
    Route.CONVERSATIONS: REGISTER_KEY,
    Route.LAB_GRANTS: CONTROL_KEY,
    Route.LAB_REVOCATIONS: CONTROL_KEY,
}
DESTINATION = "https://93.184.216.34/mcp"
NOW_MS = 1_700_000_000_000
CONVERSATION = {
    "conversationId": "c-1",
    "actorId": "actor-1",
    "teamId": "team-1",
    "agentId": "agent-1",
    "destination": DESTINATION,
}
WANTED = {"conversationId": "c-1", "agentId": "agent-1", "destination": DESTINATION}
BINDING = GrantBinding("g-1", "org-1", "test", "team-1", "actor-1", "agent-1", "c-1", DESTINATION, NOW_MS, NOW_MS + 1)


@dataclass
class Hand:
    """Asks an issuer whose time is set by hand."""

    ttl_s: int = 300
    ends_at_ms: int | None = None
    now_ms: int = NOW_MS
    seal: Seal = field(default_factory=lambda: Seal(SEAL_KEY))

    def __post_init__(self) -> None:
        numbers = itertools.count(1)
        self.core = IssuerCore(
            self.seal,
            ISSUER_KEY,
            REGISTER_KEY,
            CONTROL_KEY,
            "org-1",
            "test",
            ids=lambda: f"g-{next(numbers)}",
            nonce=lambda: next(numbers).to_bytes(NONCE_BYTES, "big"),
            now_ms=lambda: self.now_ms,
            ttl_s=self.ttl_s,
            ends_at_ms=self.ends_at_ms,
        )

    def ask(self, route: Route, body: object, key: str | None = None) -> IssuerAnswer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.core.answer_untrusted(route, [f"Bearer {KEYS[route] if key is None else key}"], raw)

    def register(self, **other: object) -> IssuerAnswer:
        return self.ask(Route.CONVERSATIONS, {**CONVERSATION, **other})

    def mint(self, **other: object) -> str:
        """A grant for the conversation."""
        answer = self.ask(Route.GRANTS, {**WANTED, **other})
        assert answer.status == 200, answer
        return str(answer.body["grant"])

    def opened(self, grant: object) -> GrantBinding:
        binding = self.seal.open(str(grant))
        assert binding is not None
        return binding
