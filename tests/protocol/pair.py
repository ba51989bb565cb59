"""Two connections and a simulated link: latency, loss, duplication, delay and cuts of single messages, by plan.

Time is a number that jumps to whatever is due next; a bound on the steps ends a pair that never comes to rest.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lab.protocol.agent_side import AgentConnection, ContentSource
from lab.protocol.connection import Connection
from lab.protocol.events import BecameReady, Close, ContentFailed, Event, HeartbeatDue, Received, Settled, TurnedV1
from lab.protocol.frames import Draft, Frame
from lab.protocol.gateway_side import GatewayConnection, SessionStore
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Delivery
from tests.protocol.sides import (
    JOB,
    WORKSPACE,
    agent_outbox,
    gateway_outbox,
    new_agent,
    new_gateway,
    numbered,
    signer,
    verifier,
)

LATENCY = 0.01
DELAY = 0.3
RECONNECT = 0.5
V1_PAUSE = 600.0
STEPS = 1500
BODIES = {"job.stream": bytes(range(256)) * 280, "chat.session": b"[]"}
"""By kind of request: one of three chunks, one of a single chunk."""

Act = str
"""drop, duplicate, delay or cut."""

Plan = Mapping[tuple[str, int], Act]
"""What befalls the n-th message that `agent` or `gateway` writes, counted over all connections."""

Identity = tuple[str, str]


def identity(frame: Frame | Draft) -> Identity:
    """What makes a data frame of these applications one of its kind."""
    chunk = "" if frame.chunk is None else str(frame.chunk.index)
    return frame.type, f"{frame.request_id}{chunk}{json.dumps(dict(frame.payload), sort_keys=True)}"


@dataclass
class Side:
    """One application: what it was handed, and what it was told of what it sent."""

    name: str
    outbox: Outbox
    connection: Connection | None = None
    handed: Counter[Identity] = field(default_factory=Counter)
    sent: list[Delivery] = field(default_factory=list)
    told: Counter[int] = field(default_factory=Counter)
    bodies_failed: list[str] = field(default_factory=list)
    ready: int = 0
    resumed: int = 0

    def send(self, draft: Draft, now: float) -> None:
        self.sent.append(self.outbox.enqueue(draft, now))
        if self.connection is not None:
            self.connection.flush(now)


class Pair:
    """A gateway and an agent that chat: a job, its events, two contents and a result."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 0.0
        self.written = {"agent": 0, "gateway": 0}
        self.trace: list[str] = []
        self.agent = Side("agent", agent_outbox())
        self._ids = numbered("c")
        self._signer = signer()
        self.gateway = Side("gateway", self._fresh_outbox())
        self.requested: list[str] = []
        self.answered: set[str] = set()
        self.chunks: dict[str, list[bytes]] = {}
        self._store = SessionStore(90)
        self._verifier = verifier()
        self._unfinished: tuple[ContentSource, ...] = ()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._generation = 0
        self._beats = 0
        self._assigned = False
        self._at(0, self._connect)

    # Time

    def _at(self, moment: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (moment, self._count, action))

    def run(self) -> None:
        """Until both sides are READY and at rest, and the plan is done."""
        for _ in range(STEPS):
            if self.at_rest:
                return
            self._step()
        raise AssertionError(f"not at rest after {STEPS} steps, at {self.now}: {self.trace[-12:]}")

    @property
    def at_rest(self) -> bool:
        sides = (self.agent, self.gateway)
        if self._queue or not all(side.connection is not None and side.ready for side in sides):
            return False
        outbounds = [side.outbox.session.outbound for side in sides]
        busy = any(outbound.unacked() or outbound.queued for outbound in outbounds)
        return not busy and all(side.outbox.session.owner is side.connection for side in sides)

    def _step(self) -> None:
        due = self._queue[0][0] if self._queue else float("inf")
        for side in (self.agent, self.gateway):
            timeout = side.connection.next_timeout() if side.connection is not None else None
            if timeout is not None and timeout < due:
                self.now = max(self.now, timeout)
                assert side.connection is not None
                self._handle(side, side.connection.handle_timeout(self.now))
                return
        assert self._queue, f"nothing is due at {self.now}: {self.trace[-12:]}"
        moment, _, action = heapq.heappop(self._queue)
        self.now = max(self.now, moment)
        action()

    # The link

    def _fresh_outbox(self) -> Outbox:
        return gateway_outbox(ids=self._ids, by=self._signer)

    def _connect(self) -> None:
        self._generation += 1
        gateway = new_gateway(store=self._store, now=self.now, fresh=self._fresh_outbox)
        agent = new_agent(self.agent.outbox, trust=self._verifier)
        agent.go_on_with(self._unfinished)
        self._unfinished = ()
        self.agent.connection, self.gateway.connection = agent, gateway
        self._handle(self.agent, agent.start(self.now, {}))

    def _pump(self, side: Side) -> None:
        if side.connection is None:
            return
        for output in side.connection.take_output():
            if isinstance(output, Close):
                self.trace.append(f"{self.now:.2f} {side.name} closes {output.code}")
                self._arrive_later(side.name, None, LATENCY)
                self._closed(side)
                return
            self._write(side.name, output.text)

    def _write(self, name: str, text: str) -> None:
        self.written[name] += 1
        number = self.written[name]
        act = self.plan.get((name, number))
        self.trace.append(f"{self.now:.2f} {name} {number} {act or ''} {text[:60]}")
        if act == "drop":
            return
        if act == "cut":
            self._cut_later(self.now)
            return
        self._arrive_later(name, text, LATENCY + (DELAY if act == "delay" else 0))
        if act == "duplicate":
            self._arrive_later(name, text, LATENCY)

    def _arrive_later(self, sender: str, text: str | None, after: float) -> None:
        generation = self._generation
        side = self.gateway if sender == "agent" else self.agent
        self._at(self.now + after, lambda: self._arrive(side, generation, text))

    def _arrive(self, side: Side, generation: int, text: str | None) -> None:
        if generation != self._generation or side.connection is None:
            return
        if text is None:
            self._closed(side)
        else:
            self._handle(side, side.connection.receive_untrusted(text, self.now))

    def _cut_later(self, moment: float) -> None:
        generation = self._generation
        self._at(moment, lambda: self._cut(generation))

    def _cut(self, generation: int) -> None:
        if generation == self._generation:
            for side in (self.agent, self.gateway):
                self._closed(side)

    def _closed(self, side: Side) -> None:
        connection = side.connection
        if connection is None:
            return
        side.connection = None
        self._handle(side, connection.closed(self.now))
        if isinstance(connection, AgentConnection):
            self._unfinished = (*connection.unfinished_content(), *self._unfinished)
            generation = self._generation
            self._at(self.now + RECONNECT, lambda: self._reconnect(generation))

    def _reconnect(self, generation: int) -> None:
        if generation == self._generation:
            self._closed(self.gateway)
            self._connect()

    # The applications

    def _handle(self, side: Side, events: list[Event]) -> None:
        for event in events:
            match event:
                case Received():
                    self._on_received(side, event)
                case Settled():
                    side.told[id(event.delivery)] += 1
                    if not any(known is event.delivery for known in side.sent):
                        side.sent.append(event.delivery)
                case ContentFailed():
                    side.bodies_failed.append(event.request_id)
                case BecameReady():
                    side.ready += 1
                    side.resumed += event.resumed
                    self._on_ready(side)
                case HeartbeatDue():
                    self._beats += 1
                    side.send(Draft("heartbeat", {"queueDepth": self._beats % 1000}, WORKSPACE), self.now)
                case TurnedV1() if side is self.agent:
                    # The link goes, and v2 is offered again after ten minutes.
                    self._cut_later(self.now + V1_PAUSE)
                case _:
                    pass
        self._pump(side)

    def _on_ready(self, side: Side) -> None:
        if side is self.agent:
            return
        assert isinstance(side.connection, GatewayConnection)
        older, side.outbox = side.outbox, side.connection.outbox
        if older is not side.outbox:
            for delivery in older.session.lost():
                side.told[id(delivery)] += 1
            for delivery in older.session.outbound.waiting():
                side.sent.remove(delivery)
                side.send(delivery.draft, self.now)
        if not self._assigned:
            self._assigned = True
            payload = {"jobId": JOB, "kind": "chat", "inputs": [{"inline": "why?", "transient": True}]}
            side.send(Draft("job.assign", {**payload, "llm": {"alias": "default"}}, WORKSPACE), self.now)

    def _on_received(self, side: Side, received: Received) -> None:
        connection, frame = side.connection, received.frame
        assert connection is not None
        side.handed[identity(frame)] += 1
        connection.accept(frame, self.now)
        if frame.type == "job.assign":
            for iteration in (1, 2, 3):
                self._say_event(iteration)
        elif frame.type == "job.event" and frame.payload["iteration"] == 3:
            for kind in BODIES:
                request_id = self._ids()
                self.requested.append(request_id)
                side.send(Draft("content.request", {"kind": kind, "ref": JOB}, WORKSPACE, request_id), self.now)
        elif frame.type == "content.request" and frame.request_id is not None:
            assert isinstance(connection, AgentConnection)
            self.answered.add(frame.request_id)
            body = BODIES[frame.payload["kind"]]
            connection.send_content(frame.request_id, WORKSPACE, "application/json", body, self.now)
            if frame.payload["kind"] == "chat.session":
                side.send(Draft("job.result", {"jobId": JOB, "outcome": "no_change"}, WORKSPACE), self.now)
        elif frame.type == "content.response" and received.data is not None:
            self.chunks.setdefault(str(frame.request_id), []).append(received.data)

    def _say_event(self, iteration: int) -> None:
        payload = {"jobId": JOB, "state": "running", "iteration": iteration}
        self.agent.send(Draft("job.event", payload, WORKSPACE), self.now)

    # The promises

    def judge(self) -> None:
        """Every data frame was handed over exactly once, or its sender was told that it failed; nothing is unacked."""
        for side, peer in ((self.agent, self.gateway), (self.gateway, self.agent)):
            for delivery in side.sent:
                assert delivery.over, (side.name, delivery.state, delivery.draft.type)
                handed = peer.handed[identity(delivery.draft)]
                assert handed == 1 if delivery.state == "delivered" else handed <= 1, (delivery, handed)
                assert side.told[id(delivery)] == 1, (side.name, delivery.draft.type, delivery.state)
            assert max(peer.handed.values(), default=0) <= 1
            assert not side.outbox.session.outbound.unacked()
            assert not side.outbox.session.outbound.queued
        failed = {delivery.draft.request_id for delivery in self.agent.sent if delivery.state == "failed"}
        for request_id, body in zip(self.requested, BODIES.values(), strict=False):
            got = b"".join(self.chunks.get(request_id, []))
            if request_id in self.answered and request_id not in failed | set(self.agent.bodies_failed):
                assert got == body, (request_id, len(got))


def played(plan: Plan) -> Pair:
    """A pair that was run under a plan and has come to rest, judged; a failure names the plan."""
    pair = Pair(plan)
    try:
        pair.run()
        pair.judge()
    except AssertionError as failure:
        failure.add_note(f"plan {dict(plan)!r}")
        failure.add_note("\n".join(pair.trace[-40:]))
        raise
    return pair
