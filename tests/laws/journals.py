"""Small journals written by hand: a clock, an agent, a gateway and agent2, and what each witness saw."""

from __future__ import annotations

import hashlib
from typing import Any

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    Event,
    Frame,
    ParticipantDeclared,
    RunEnded,
    RunStarted,
    SocketClosed,
    SocketOpened,
)
from lab.journal.writer import Entry
from lab.laws import ALL_LAWS, Judged, Status, Violation, judge_all

AGENT = "a0000000-0000-4000-8000-000000000001"
TENANT = "b0000000-0000-4000-8000-000000000001"
JOB = "c0000000-0000-4000-8000-000000000001"
SESSION = "d0000000-0000-4000-8000-000000000001"
SESSION_2 = "d0000000-0000-4000-8000-000000000002"

GOOD = {
    "parse": "ok",
    "size": "ok",
    "type": "ok",
    "schema": "ok",
    "direction": True,
    "tenant": "ok",
    "agent": "ok",
    "signature": None,
}

SIGNED = frozenset({"ready", "job.assign", "job.cancel", "content.request"})


def sha(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def uuid(text: str) -> str:
    """A UUID-like id for a name."""
    h = sha(text)
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"


class Tale:
    """Writes a journal entry by entry; each method gives the number of the entry it wrote."""

    def __init__(self, how: str = "reference") -> None:
        self.t = 0.0
        self.entries: list[Entry] = []
        self.conn = "c1"
        self.session = SESSION
        self.add(RunStarted(1, "s", "", 7, "real", 0, "0", "2.3"), "runner")
        self.add(ParticipantDeclared("gw", "gateway", "double"), "runner")
        self.add(ParticipantDeclared("la", "local_agent", how, {"agentId": AGENT}), "runner")

    def add(self, event: Event, by: str = "gw") -> int:
        """Any event."""
        n = len(self.entries)
        self.entries.append(Entry(n, self.t, by, event))
        return n

    def wait(self, seconds: float) -> Tale:
        """Time goes on."""
        self.t += seconds
        return self

    def end(self, end: str = "completed") -> int:
        """The last entry."""
        return self.add(RunEnded(end), "runner")

    # The socket

    def connect(
        self,
        conn: str = "c1",
        session: str = SESSION,
        resume: tuple[str, int] | None = None,
        resumed: bool = False,
        peer_last: int = 0,
        ack_ms: int = 5000,
        ready: dict[str, Any] | None = None,
    ) -> int:
        """Open a socket and do the handshake; gives the number of ready's entry."""
        self.conn, self.session = conn, session
        self.add(SocketOpened(conn, "/ws"))
        self.register(resume)
        self.la("hello", payload={"signatureMode": "enforce"})
        return self.ready(session, resumed, peer_last, ack_ms, **(ready or {}))

    def register(self, resume: tuple[str, int] | None = None) -> int:
        """The first frame."""
        payload: dict[str, Any] = {"protocol": 2, "version": "1"}
        if resume is not None:
            payload["resume"] = {"sessionId": resume[0], "lastRecvSeq": resume[1]}
        return self.la("register", payload=payload)

    def ready(
        self, session: str = SESSION, resumed: bool = False, peer_last: int = 0, ack_ms: int = 5000, **more: Any
    ) -> int:
        """The gateway's answer to the handshake."""
        limits = {"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": ack_ms, "heartbeatSeconds": 30}
        payload = {"sessionId": session, "resumed": resumed, "peerLastSeq": peer_last, "limits": limits}
        return self.cp("ready", payload=payload, **more)

    def close(self, by: str = "none", code: int | None = None) -> int:
        """The socket is gone."""
        return self.add(SocketClosed(self.conn, code, by))

    def _frame(self, direction: str, type_: str | None, seq: int | None, fields: dict[str, Any]) -> int:
        facts = {**GOOD, **fields.pop("facts", {})}
        if type_ in SIGNED and facts["signature"] is None:
            signature = {"present": True, "verified": True, "bound": True, "equal": True, "skewMs": 3}
            facts["signature"] = signature | {"nonce": sha(f"nonce {len(self.entries)}")}
        if isinstance(facts["signature"], dict):
            facts["signature"] = {"nonce": sha(f"nonce {len(self.entries)}"), "skewMs": 3, **facts["signature"]}
        name = f"{direction} {self.session} {seq}" if seq else f"{direction} {len(self.entries)}"
        fields.setdefault("msg_id", uuid(name))
        fields.setdefault("sha256", sha(f"bytes of {name}"))
        fields.setdefault("version", 2)
        fields.setdefault("agent_id", AGENT)
        conn = fields.pop("conn", self.conn)
        return self.add(Frame(conn, direction, 400, type=type_, seq=seq, tenant_id=TENANT, facts=facts, **fields))

    def la(self, type_: str | None, seq: int | None = 0, **fields: Any) -> int:
        """A frame of the agent; one with a seq has the msgId and the bytes of that seq in its session."""
        return self._frame("la-to-cp", type_, seq, fields)

    def cp(self, type_: str | None, seq: int | None = 0, **fields: Any) -> int:
        """A frame of the gateway."""
        return self._frame("cp-to-la", type_, seq, fields)

    def msg(self, n: int) -> str:
        """The msgId of a frame by its entry."""
        event = self.entries[n].event
        assert isinstance(event, Frame)
        assert event.msg_id is not None
        return event.msg_id

    def ack_by_la(self, of: int, status: str = "accepted", **fields: Any) -> int:
        """The agent's ack frame for a frame by its entry."""
        return self.la("ack", payload=self._ack(of, status), **fields)

    def ack_by_cp(self, of: int, status: str = "accepted", **fields: Any) -> int:
        """The gateway's ack frame for a frame by its entry."""
        return self.cp("ack", payload=self._ack(of, status), **fields)

    def _ack(self, of: int, status: str) -> dict[str, Any]:
        event = self.entries[of].event
        assert isinstance(event, Frame)
        return {"status": status, "ackSeq": event.seq, "ackMsgId": event.msg_id}

    # agent2 and the job

    def assign(self, seq: int = 1, kind: str = "chat", **fields: Any) -> int:
        """A job is assigned."""
        return self.cp("job.assign", seq, payload={"jobId": JOB, "kind": kind, "inputs": []}, **fields)

    def post(self, status: int = 202) -> int:
        """agent2 answered POST /jobs."""
        return self.add(Agent2Request("POST", "/local/v1/jobs", status, JOB), "agent2")

    def line(self, i: int, text: str | None = None, **more: Any) -> int:
        """agent2 wrote a line."""
        text = f"line {i}" if text is None else text
        return self.add(Agent2Line(JOB, i, sha(text), len(text), f"fixtures/a.yaml:{i + 1}", **more), "agent2")

    def lines(self, count: int) -> None:
        """agent2 wrote its first lines."""
        for i in range(count):
            self.line(i)

    def stream(self, change: str, sent: int = 0, stream: str = "stream", reader: int = 1) -> int:
        """A reader's connection to agent2."""
        return self.add(Agent2Stream(JOB, stream, change, reader, sent), "agent2")

    def told(self, seq: int, type_: str, **payload: Any) -> int:
        """agent2 wrote a metadata frame."""
        return self.add(Agent2Frame(JOB, seq, type_, {"jobId": JOB, **payload}), "agent2")

    def ended(self, state: str = "done", **result: Any) -> int:
        """agent2 ended the job."""
        return self.add(Agent2Job(JOB, state, "chat", None, result or None), "agent2")

    def page(
        self,
        ref: str,
        events: list[tuple[Any, str]],
        next_ref: str,
        done: bool = False,
        **facts: Any,
    ) -> int:
        """A page of job.stream was answered."""
        listed = tuple({"i": i, "sha256": sha(text), "chars": len(text)} for i, text in events)
        body = {"schema": "ok", "events": listed, "done": done, "next": sha(next_ref), **facts}
        return self.add(BodyAnswered(self.conn, uuid(ref), "job.stream", sha(ref), JOB, "ok", 10, sha("b"), body))

    # Judging

    def judged(self, law: str) -> Judged:
        """One law's word on this journal."""
        return next(one for one in judge_all(self.entries) if one.law.id == law)

    def status(self, law: str) -> Status:
        """One law's status."""
        return self.judged(law).status

    def violation(self, law: str) -> Violation:
        """The only violation of a law."""
        judged = self.judged(law)
        assert judged.status is Status.BROKEN, judged
        (violation,) = judged.judgement.violations
        assert violation.law == law
        assert violation.party == judged.law.party
        assert violation.participant == ("gw" if judged.law.party == "gateway" else "la")
        return violation


def numbered_lines(first: int, count: int) -> list[tuple[Any, str]]:
    """Events of a page as agent2 wrote them."""
    return [(i, f"line {i}") for i in range(first, first + count)]


def chat_with_resume() -> Tale:
    """A whole chat in which the socket is lost in mid-stream; every law holds in it."""
    tale = Tale()
    tale.connect()
    assign = tale.wait(0.1).assign()
    tale.ack_by_la(assign, ack=1)
    tale.post()
    beat = tale.wait(0.1).la("heartbeat", 1, ack=1)
    tale.ack_by_cp(beat, ack=1)
    tale.stream("opened")
    tale.stream("opened", stream="events")
    tale.lines(3)
    request = tale.cp("content.request", 2, ack=1, request_id=uuid("r1"), payload={"kind": "job.stream"})
    tale.ack_by_la(request, ack=2)
    answer = tale.la("content.response", 2, ack=2, request_id=uuid("r1"), facts={"decoded": 3})
    tale.page(JOB, numbered_lines(0, 2), "x1")
    tale.ack_by_cp(answer, ack=2)
    request = tale.wait(0.1).cp("content.request", 3, request_id=uuid("r2"), payload={"kind": "job.stream"})
    tale.close()
    tale.wait(3).connect("c2", resume=(SESSION, 2), resumed=True, peer_last=2)
    request = tale.cp("content.request", 3, request_id=uuid("r2"), payload={"kind": "job.stream"})
    tale.ack_by_la(request, ack=3)
    tale.line(3)
    tale.stream("ended", 4)
    tale.told(1, "job.event", state="running", filesChanged=0)
    tale.told(2, "job.result", outcome="no_change")
    tale.ended("done", outcome="no_change", filesChangedCount=0)
    tale.stream("ended", 2, stream="events")
    answer = tale.la("content.response", 3, ack=3, request_id=uuid("r2"))
    tale.page("x1", numbered_lines(2, 2), "x2", done=True)
    tale.ack_by_cp(answer, ack=3)
    result = tale.wait(0.1).la("job.result", 4, payload={"jobId": JOB, "outcome": "no_change", "filesChangedCount": 0})
    tale.ack_by_cp(result, ack=4)
    tale.wait(0.5).close("remote", 1000)
    tale.end()
    return tale


ALL_IDS = [law.id for law in ALL_LAWS]
