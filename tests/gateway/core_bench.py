"""A gateway core with its agents at the ends of lines that a test holds, and literal time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from nacl.signing import SigningKey

from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Order
from lab.gateway.news import ContentNews, News, SessionNews, UndeliveredNews
from lab.gateway.relay import Answer
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.events import Close
from lab.protocol.gateway_side import GatewayPolicy
from lab.protocol.signing import Signer
from tests.gateway.by_hand import CAPABILITIES, HandAgent, Members, text

CONTRACT = Contract.load(default_contract_folder())
TENANT = "tenant-7"
AGENT = "0a0a0a0a-0000-4000-8000-00000000000a"
OTHER = "0e0e0e0e-0000-4000-8000-00000000000e"
EPOCH_MS = 1_793_786_400_000
KEY = SigningKey(b"k" * 32)
JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
REF = "r" * 43

OneNews = TypeVar("OneNews", bound=News)


def job_id(number: int) -> str:
    return f"0b0b0b0b-0000-4000-8000-{number:012x}"


def chat(inline: str = "why?", job: str = JOB, **more: Any) -> Order:
    return Order(job, "chat", (inline,), **{"llm": "default", **more})


def fix(job: str = JOB, **more: Any) -> Order:
    return Order(job, "fix", **{"llm": "default", **more})


class _Numbers:
    def __init__(self, form: str) -> None:
        self._form = form
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return self._form % self._count


class CoreBench:
    """The core, one hand-written agent for each id, and what was written on each connection."""

    def __init__(self, policy: GatewayPolicy | None = None, revision: str | None = None) -> None:
        contract = CONTRACT if revision is None else Contract.load(default_contract_folder(), revision)
        policy = policy or GatewayPolicy()
        signer = Signer("key-1", KEY, _Numbers("nonce-%016d")) if policy.signs else None
        ids = _Numbers("cccccccc-0000-4000-8000-%012x")
        self.core = GatewayCore(contract, TENANT, (AGENT, OTHER), EPOCH_MS, policy, signer, ids)
        self.agents = {AGENT: HandAgent(TENANT, AGENT, EPOCH_MS), OTHER: HandAgent(TENANT, OTHER, EPOCH_MS, "b")}
        self.written: dict[str, list[Members]] = {}
        self.closes: dict[str, int] = {}
        self._owner: dict[str, str] = {}
        self._news: list[News] = []

    @property
    def agent(self) -> HandAgent:
        return self.agents[AGENT]

    def pump(self) -> None:
        for conn, output in self.core.take_output():
            if isinstance(output, Close):
                self.closes[conn] = output.code
            else:
                message = output.text
                self.written.setdefault(conn, []).append(
                    json.loads(message) if message[0] == "{" else {"type": message}
                )
        self._news += self.core.take_news()

    def open(self, now: float = 0, agent: str = AGENT) -> str:
        conn = self.core.connect(agent, now)
        self._owner[conn] = agent
        return conn

    def tell(self, conn: str, *frames: Mapping[str, Any], now: float = 0) -> None:
        for frame in frames:
            self.core.receive_untrusted(conn, text(frame), now)
            self.pump()

    def ready(
        self,
        now: float = 0,
        agent: str = AGENT,
        capabilities: tuple[str, ...] = CAPABILITIES,
        resume: tuple[str, int] | None = None,
    ) -> str:
        """A connection after the handshake; a fresh session starts the agent's numbers at 1."""
        hand = self.agents[agent]
        hand.wall_ms = EPOCH_MS + int(now * 1000)
        conn = self.open(now, agent)
        self.tell(conn, hand.register(capabilities, resume), hand.hello(capabilities), now=now)
        if not self.ready_payload(conn)["resumed"]:
            hand.seq = 0
        return conn

    def ready_payload(self, conn: str) -> Members:
        payload: Members = self.of(conn, "ready")[0]["payload"]
        return payload

    def drop(self, conn: str, now: float) -> None:
        self.core.closed(conn, now)
        self.pump()

    def at(self, now: float) -> None:
        self.core.handle_timeout(now)
        self.pump()

    def assign(self, order: Order | None = None, now: float = 0, agent: str = AGENT) -> None:
        self.core.assign(agent, order or chat(), now)
        self.pump()

    def ask(self, now: float = 0, agent: str = AGENT, kind: str = "job.stream", ref: str = REF) -> str:
        request_id = self.core.request_content(agent, kind, ref, now)
        self.pump()
        return request_id

    def of(self, conn: str, type_name: str) -> list[Members]:
        """Frames of a type that were written on a connection."""
        return [frame for frame in self.written.get(conn, []) if frame["type"] == type_name]

    def answers(self) -> list[Answer]:
        return [news.answer for news in self._news if isinstance(news, ContentNews)]

    def states(self) -> list[tuple[str, str]]:
        return [(news.conn, news.state) for news in self._news if isinstance(news, SessionNews)]

    def undelivered(self) -> list[tuple[str, int | None, str]]:
        return [(news.type, news.seq, news.code) for news in self._news if isinstance(news, UndeliveredNews)]

    def news(self, kind: type[OneNews]) -> list[OneNews]:
        return [news for news in self._news if isinstance(news, kind)]
