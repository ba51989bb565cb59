"""Journals of the partner leg written by hand: what driver, model, store and issuer saw of one employee's turn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from lab.journal.events import Event, ParticipantDeclared, RunEnded, RunStarted, digest
from lab.journal.partner_events import (
    IssuerRequest,
    PartnerAnswerText,
    PartnerCall,
    PartnerDelivery,
    PartnerEvent,
    PartnerRequest,
    PartnerStream,
    PartnerTurn,
    StoreRequest,
)
from lab.journal.writer import Entry
from lab.laws import Judged, Status, Violation, judge_all
from lab.laws.partner.registry import PARTNER_LAWS

EPOCH_MS = 1_700_000_000_000
STORE_URL = "https://93.184.216.34/mcp"
ROUTES = {
    "membership": "PUT /memberships",
    "create": "POST /conversations",
    "context": "GET /conversations/{conversationId}/context",
    "bind": "PUT /conversations/{conversationId}/context",
    "upload": "POST /conversations/{conversationId}/attachments",
    "message": "POST /conversations/{conversationId}/messages",
    "history": "GET /conversations/{conversationId}/messages",
    "run": "GET /conversations/{conversationId}/runs/{runId}",
    "file": "GET /conversations/{conversationId}/attachments/{attachmentId}/content",
    "grant": "POST grants",
    "register": "POST conversations",
    "clock": "POST /__lab/clock",
    "unbind": "POST /__lab/bindings/revoke",
}
WITH_KEY = frozenset({"message", "create"})
NAMES = {"partner_api": "api", "partner_client": "driver", "store": "store", "issuer": "issuer"}

PENDING: Mapping[str, Any] = {"complete": False, "totalMs": 0, "iterations": []}
STAGES = ("admissionMs", "agentMs", "promptMs", "toolSetupMs", "workerMs", "classificationMs")
TIMINGS: Mapping[str, Any] = {
    "complete": True,
    **dict.fromkeys(STAGES, 1),
    "setupMs": 6,
    "queuedMs": 2,
    "lockMs": 0,
    "modelMs": 30.5,
    "toolMs": 10,
    "historyMs": 1,
    "otherMs": 0.5,
    "totalMs": 50,
    "iterations": [{"wallMs": 31, "modelMs": 30.5, "firstTokenMs": 4, "toolMs": 10, "tools": [{"durationMs": 10}]}],
}
COUNTERS = {"inputTokens": 9120, "outputTokens": 410, "cacheReadTokens": 0, "cacheWriteTokens": 0}
USAGE: Mapping[str, Any] = {
    "model": "m",
    **COUNTERS,
    "costUsd": "0.033510000000",
    "priceSide": "cost",
    "kinds": [
        {"kind": "llm_tokens", "costUsd": "0.033000000000"},
        {"kind": "runtime_seconds", "costUsd": "0.000510000000"},
    ],
}


def sha(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Made:
    """A conversation, a run and its turn by their ids."""

    conversation: str = "conv"
    run: str = "run"
    turn: str = "turn"


class PartnerTale:
    """Writes a journal entry by entry; each method gives the number of the entry it wrote."""

    def __init__(self) -> None:
        self.t = 0.0
        self.entries: list[Entry] = []
        self.made = Made()
        self.streams = 0
        self.calls = 0
        self.expires: dict[str, str] = {}
        self.actor = {"externalUserId": "user", "externalTeamId": "team"}
        self.add(RunStarted(1, "s", "", 7, "real", EPOCH_MS, "0", "2.3"), "runner")
        for role, name in NAMES.items():
            self.add(ParticipantDeclared(name, role, "double"), "runner")

    def add(self, event: Event, by: str = "driver") -> int:
        """Any event."""
        n = len(self.entries)
        self.entries.append(Entry(n, self.t, by, event))
        return n

    def wait(self, seconds: float) -> Self:
        """Time goes on."""
        self.t += seconds
        return self

    def end(self) -> int:
        """The last entry."""
        return self.add(RunEnded("completed"), "runner")

    def at(self, seconds: float) -> str:
        """An instant, in seconds from now, as it stands on the wire."""
        told = datetime.fromtimestamp(EPOCH_MS / 1000 + self.t + seconds, UTC)
        return told.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # The driver

    def call(
        self,
        operation: str,
        status: int = 200,
        sent: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] | None = None,
        marks: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> int:
        """A try of a call. It began at the entry before it, but where `began` says otherwise."""
        self.calls += 1
        scoped = operation not in ("membership", "create", "grant", "register", "clock")
        event = PartnerCall(
            fields.pop("call", f"c{self.calls}"),
            ROUTES[operation],
            status,
            key={"grant": "issuer-key", "register": "register-key", "clock": "lab-key"}.get(operation, "chat-key"),
            conversation_id=self.made.conversation if scoped else None,
            facts={"sent": {**self.actor, **(sent or {})}, "answer": dict(answer or {}), **(marks or {})},
            began=fields.pop("began", len(self.entries)),
        )
        if operation in WITH_KEY:
            event = replace(event, idempotency_key=f"k{self.calls}", request=sha(operation))
        return self.add(replace(event, **fields))

    def refused(
        self, operation: str, status: int, code: str, sent: Mapping[str, Any] | None = None, **more: Any
    ) -> int:
        """A call that was refused."""
        return self.call(operation, status, sent, code=code, **more)

    def lost(self, operation: str, sent: Mapping[str, Any] | None = None, **more: Any) -> int:
        """A call without an answer."""
        return self.call(operation, 0, sent, error="reset", **more)

    def membership(self, revision: int = 1, role: str = "member", active: bool = True, **answer: Any) -> int:
        """A confirmation that was taken."""
        until = self.at(240) if active else None
        sent = {"sourceRevision": revision, "role": role, "active": active, "validUntil": until}
        told = {**sent, "actorId": "actor", "teamId": "team-id", "subjectVersion": 1, "membershipVersion": 1}
        return self.call("membership", 200, sent, {**told, **answer})

    def create(self, mcp: bool = True, answer: Mapping[str, Any] | None = None, **fields: Any) -> int:
        """A conversation that was created."""
        target = {"serverId": "srv", "destination": STORE_URL} if mcp else None
        told = {"conversationId": self.made.conversation, "actorId": "actor", "teamId": "team-id", "agentId": "agent"}
        return self.call("create", 201, {"agentId": "agent"}, {**told, "mcp": target, **(answer or {})}, **fields)

    def register(self) -> int:
        """The conversation is registered with the issuer; both witnesses tell."""
        claims = {"actorId": "actor", "teamId": "team-id", "agentId": "agent", "destination": STORE_URL}
        self.issuer("conversations", facts=claims)
        return self.call("register", 200, {"conversationId": self.made.conversation, **claims})

    def grant(self, grant: str = "g1") -> int:
        """A grant is minted; both witnesses tell."""
        self.issuer(
            "grants", grant=grant, grant_id=f"id-{grant}", facts={"expiresAtMs": EPOCH_MS + (self.t + 300) * 1000}
        )
        asked = {"conversationId": self.made.conversation, "agentId": "agent", "destination": STORE_URL}
        self.expires[grant] = self.at(300)
        return self.call("grant", 200, asked, {"grant": grant, "expiresAt": self.at(300)})

    def bind(self, expected: int = 0, grant: str = "g1", version: int | None = None, **fields: Any) -> int:
        """A bind that was taken; the model's witness tells it too."""
        sent = {"serverId": "srv", "destination": STORE_URL, "grant": grant, "expectedVersion": expected}
        sent["expiresAt"] = fields.pop("expires", self.expires.get(grant, self.at(300)))
        began = len(self.entries)
        self.request("bind")
        told = {"version": expected + 1 if version is None else version}
        return self.call("bind", 200, sent, told, **{"began": began, **fields})

    def context(self, version: int, active: bool = True, expires: str | None = "later", **fields: Any) -> int:
        """GET context."""
        expires = self.at(100) if expires == "later" else expires
        return self.call("context", 200, {}, {"version": version, "expiresAt": expires, "active": active}, **fields)

    def message(
        self, run: str = "", text: str = "hello", answer: Mapping[str, Any] | None = None, **fields: Any
    ) -> int:
        """A message that was accepted; the model's witness tells it too."""
        began, key = len(self.entries), fields.get("idempotency_key", f"k{self.calls + 1}")
        body = fields.setdefault("request", sha(text))
        sent = {"message": digest("message", text), **fields.pop("sent", {})}
        self.request("message", 202, idempotency_key=key, request=body)
        told: dict[str, Any] = {"runId": run or self.made.run, "conversationId": self.made.conversation}
        told |= {
            "turnId": self.made.turn,
            "status": "accepted",
            "reason": None,
            "createdAt": "2023-11-14T22:13:20.000Z",
            **(answer or {}),
        }
        return self.call("message", 202, sent, told, **{"began": began, "run_id": told["runId"], **fields})

    def poll(self, status: str = "completed", k: int | None = None, began: int | None = None, **answer: Any) -> int:
        """GET run; of a terminal one with its figures."""
        over = status not in ("accepted", "running")
        told: dict[str, Any] = {"runId": self.made.run, "conversationId": self.made.conversation}
        told |= {
            "turnId": self.made.turn,
            "status": status,
            "reason": None,
            "createdAt": "2023-11-14T22:13:20.000Z",
            "toolErrors": [],
        }
        told |= {"timings": TIMINGS if over else PENDING, "usage": USAGE if over else None, **answer}
        marks = {} if k is None else {"poll": k}
        start = len(self.entries) if began is None else began
        return self.call("run", 200, {}, told, marks, run_id=self.made.run, began=start)

    def open(self, after: int | None = None, model: bool = True, **facts: Any) -> int:
        """The stream of the run is opened."""
        self.streams += 1
        if model:
            named = None if after is None else f"{self.made.run}:{after}"
            self.add(PartnerDelivery(self.streams, self.made.run, "opened", named), "api")
        return self.add(
            PartnerStream(self.streams, self.made.run, "opened", self.made.conversation, 200, None, after, 0, facts)
        )

    def close(self, change: str = "ended", misses: tuple[str, ...] = ()) -> int:
        """The stream is over."""
        return self.add(PartnerStream(self.streams, self.made.run, change, self.made.conversation, 200, misses=misses))

    def event(self, sequence: int | None, kind: str, event: Mapping[str, Any] | None = None, **facts: Any) -> int:
        """An event of the stream that was opened last; `event` overrides members of the entry."""
        made = PartnerEvent(
            self.streams,
            self.made.run,
            f"{self.made.run}:{sequence}",
            sequence,
            kind,
            kind,
            sha(f"{sequence}"),
            facts=facts,
        )
        return self.add(replace(made, **(event or {})))

    def tell(self, events: Sequence[tuple[str, Mapping[str, Any]]], first: int = 1) -> list[int]:
        """Events one after another."""
        return [self.event(number, kind, None, **facts) for number, (kind, facts) in enumerate(events, first)]

    def text(
        self, outcome: str = "completed", source: str = "run_status", text: str = "an answer", events: int = 6
    ) -> int:
        """The driver has followed the run to its end."""
        segments = (digest("text", text),) if text else ()
        return self.add(PartnerAnswerText(self.made.run, digest("text", text), events, outcome, source, segments))

    def item(self, role: str, text: str, **more: Any) -> dict[str, Any]:
        """An item of history."""
        told = {"id": f"{role}-{self.made.turn}", "turnId": self.made.turn, "role": role, "text": digest("text", text)}
        return {**told, "createdAt": "2023-11-14T22:13:20.000Z", "attachments": [], **more}

    def history(
        self, *items: Mapping[str, Any], cursor: str | None = None, following: str | None = None, page: int = 1
    ) -> int:
        """A page of history."""
        sent = {} if cursor is None else {"cursor": cursor}
        return self.call("history", 200, sent, {"items": list(items), "nextCursor": following}, {"page": page})

    # The model, the store, the issuer

    def request(self, operation: str, status: int = 200, **fields: Any) -> int:
        """A request at the model."""
        method, _, route = ROUTES[operation].partition(" ")
        scoped = operation not in ("membership", "create", "clock")
        event = PartnerRequest(
            method,
            route,
            status,
            key="chat-key",
            key_role="chat",
            conversation_id=self.made.conversation if scoped else None,
        )
        return self.add(replace(event, **fields), "api")

    def turn(self, change: str, **fields: Any) -> int:
        """The model's run changes or has an effect."""
        return self.add(PartnerTurn(self.made.run, self.made.conversation, self.made.turn, change, **fields), "api")

    def tool(self, call_id: str | None = "call_1", grant: str | None = "g1", **fields: Any) -> int:
        """A tools/call at the store, executed where nothing else is said."""
        claims = {"actorId": "actor", "teamId": "team-id", "agentId": "agent", "destination": STORE_URL}
        binding = {
            **claims,
            "conversationId": self.made.conversation,
            "grantId": f"id-{grant}",
            **fields.pop("claims", {}),
        }
        event = StoreRequest(
            "POST",
            "2025",
            "tools/call",
            200,
            tool="catalog_get",
            executed=True,
            grant=grant,
            binding=None if grant is None else binding,
            turn_id=self.made.turn,
            call_id=call_id,
        )
        return self.add(replace(event, **fields), "store")

    def issuer(self, route: str, status: int = 200, **fields: Any) -> int:
        """A request at the issuer."""
        event = IssuerRequest(route, status, conversation_id=self.made.conversation)
        return self.add(replace(event, **fields), "issuer")

    # What came of it

    def judged(self, law: str) -> Judged:
        """One law's word on this journal."""
        (chosen,) = (one for one in PARTNER_LAWS if one.id == law)
        (judged,) = judge_all(self.entries, [chosen])
        return judged

    def status(self, law: str) -> Status:
        """One law's status."""
        return self.judged(law).status

    def violation(self, law: str) -> Violation:
        """The only violation of a law."""
        judged = self.judged(law)
        assert judged.status is Status.BROKEN, judged
        (violation,) = judged.judgement.violations
        assert (violation.law, violation.party) == (law, judged.law.party)
        assert violation.participant == NAMES[judged.law.party]
        return violation


ANSWER: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("turn", {"turnId": "turn", "ts": "2023-11-14T22:13:20.000Z"}),
    ("tool_call", {"name": "catalog_get", "toolCallId": "call_1"}),
    ("tool_result", {"name": "catalog_get", "ok": True}),
    ("text", {"text": digest("text", "an answer")}),
    ("done", {"stopReason": "completed"}),
    ("run_status", {"status": "completed", "reason": None, "toolErrors": [], "timings": TIMINGS, "usage": USAGE}),
)
"""The events of a turn that asks the store and answers."""


def ready(mcp: bool = True) -> PartnerTale:
    """An employee with a conversation that takes messages."""
    tale = PartnerTale()
    tale.wait(0.1).membership()
    tale.wait(0.1).create(mcp)
    if mcp:
        tale.wait(0.1).register()
        tale.wait(0.1).grant()
        tale.wait(0.1).bind()
    tale.wait(0.1)
    return tale


def running(mcp: bool = True) -> PartnerTale:
    """As `ready`, with a message that was accepted and a stream that is open."""
    tale = ready(mcp)
    tale.message()
    tale.turn("accepted", status="accepted")
    tale.wait(0.1).open()
    tale.turn("claimed", status="running")
    return tale


def answered() -> PartnerTale:
    """A whole turn: the store was asked, the run completed, polled, and stands in history."""
    tale = running()
    tale.wait(0.1).tell(ANSWER[:2])
    tale.turn("tool", status="running", call_id="call_1")
    tale.wait(0.1).tool()
    tale.turn("tool-ended", status="running", call_id="call_1")
    tale.wait(0.1).tell(ANSWER[2:5], 3)
    tale.turn("ended", status="completed")
    tale.tell(ANSWER[5:], 6)
    tale.close()
    tale.wait(0.1).poll(k=1)
    tale.text()
    tale.wait(0.1)
    tool_part = {"type": "tool_call", "toolCallId": "call_1", "name": "catalog_get", "status": "succeeded"}
    parts = [tool_part, {"type": "text", "text": digest("text", "an answer")}]
    tale.history(tale.item("assistant", "an answer", parts=parts), tale.item("user", "hello"))
    return tale
