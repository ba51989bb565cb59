"""Small journals written by hand: a clock, an agent, a gateway and agent2, and what each witness saw."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Self

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    Event,
    Frame,
    JobAssigned,
    JobMoved,
    ParticipantDeclared,
    RunEnded,
    RunStarted,
    SocketClosed,
    SocketOpened,
    StreamOver,
    StreamPage,
    digest,
)
from lab.journal.writer import Entry
from lab.laws import CHAT_LAWS, Judged, Status, Violation, judge_all

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

ALL_CAPABILITIES = ("job.assign", "job.options", "job.chat", "job.inline.16k")

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
        self.mode = "enforce"
        self.capabilities: tuple[str, ...] = ALL_CAPABILITIES
        self.add(RunStarted(1, "s", "", 7, "real", 0, "0", "2.3"), "runner")
        self.add(ParticipantDeclared("gw", "gateway", "double", {"revision": "2.3"}), "runner")
        self.add(ParticipantDeclared("la", "local_agent", how, {"agentId": AGENT}), "runner")

    def add(self, event: Event, by: str = "gw") -> int:
        """Any event."""
        n = len(self.entries)
        self.entries.append(Entry(n, self.t, by, event))
        return n

    def wait(self, seconds: float) -> Self:
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
        self.add(SocketOpened(conn, "/ws", credential="ok"))
        self.register(resume)
        self.hello()
        return self.ready(session, resumed, peer_last, ack_ms, **(ready or {}))

    def register(self, resume: tuple[str, int] | None = None) -> int:
        """The first frame."""
        payload: dict[str, Any] = {"protocol": 2, "version": "1", "signatureMode": self.mode}
        payload["capabilities"] = list(self.capabilities)
        if resume is not None:
            payload["resume"] = {"sessionId": resume[0], "lastRecvSeq": resume[1]}
        return self.la("register", payload=payload, facts={"skewMs": 5})

    def hello(self, **payload: Any) -> int:
        """The second frame."""
        told = {"signatureMode": self.mode, "capabilities": list(self.capabilities), **payload}
        return self.la("hello", payload=told, facts={"skewMs": 5})

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

    def held(self, n: int) -> int:
        """A frame, by its entry, that a fault holds back from here on."""
        entry = self.entries[n]
        assert isinstance(entry.event, Frame)
        self.entries[n] = replace(entry, event=replace(entry.event, fate="delayed", fault="held"))
        return n

    def released(self, n: int) -> int:
        """A held frame, by its entry, is let go; gives the number of the entry that says so."""
        event = self.entries[n].event
        assert isinstance(event, Frame)
        return self.add(replace(event, fate="released"))

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

    # Content

    def ask(self, seq: int, name: str, ref: str, kind: str = "job.stream", **fields: Any) -> int:
        """A content.request; `name` stands for its requestId."""
        payload = {"kind": kind, "ref": {"kind": "ref", "bytes": len(ref), "sha256": sha(ref)}}
        return self.cp("content.request", seq, request_id=uuid(name), payload=payload, **fields)

    def answer(
        self,
        seq: int,
        name: str,
        index: int = 0,
        total: int = 1,
        size: int = 3,
        whole: int | None = None,
        **fields: Any,
    ) -> int:
        """One chunk of a content.response."""
        payload = {
            "status": "ok",
            "contentType": "application/json",
            "encoding": "base64",
            "byteLength": size,
            "totalBytes": size if whole is None else whole,
            **fields.pop("payload", {}),
        }
        payload = {name: value for name, value in payload.items() if value is not None}
        chunk = fields.pop("chunk", {"index": index, "total": total, "last": index == total - 1})
        facts = {"decoded": size, **fields.pop("facts", {})}
        return self.la(
            "content.response", seq, request_id=uuid(name), payload=payload, chunk=chunk, facts=facts, **fields
        )

    def body(self, name: str, content: str, ref: str, status: str = "ok", job: str | None = JOB, **facts: Any) -> int:
        """The body of an answer, as the witness put it together."""
        size = facts.pop("size", 10)
        return self.add(BodyAnswered(self.conn, uuid(name), content, sha(ref), job, status, size, sha("b"), facts))

    def turns(self, name: str, *turns: tuple[str, str], truncated: bool = False) -> int:
        """A chat.session body with these turns."""
        told = tuple({"role": role, "sha256": sha(text), "chars": len(text)} for role, text in turns)
        return self.body(name, "chat.session", JOB, schema="ok", turns=told, truncated=truncated)

    # agent2 and the job

    def health(self, status: int = 200, **facts: Any) -> int:
        """agent2 was asked for its health."""
        facts = {"authorization": False, "kinds": ["fix", "implement", "chat"], **facts}
        return self.add(Agent2Request("GET", "/local/v1/health", status, None, facts), "agent2")

    def assigned(self, *inputs: str, job: str = JOB, kind: str = "chat", **more: Any) -> int:
        """The driver assigned a job."""
        text = "\n\n".join(inputs)
        told = {"user_turn": digest("user-turn", text), "prompt": digest("prompt", text.strip()), **more}
        return self.add(
            JobAssigned(job, "q1", kind, "la", tuple(digest("input", one) for one in inputs), **told), "driver"
        )

    def assign(self, seq: int = 1, kind: str = "chat", job: str = JOB, **fields: Any) -> int:
        """A job is assigned."""
        payload = {"jobId": job, "kind": kind, "inputs": [], **fields.pop("payload", {})}
        return self.cp("job.assign", seq, payload=payload, **fields)

    def post(self, status: int = 202, job: str = JOB) -> int:
        """agent2 answered POST /jobs."""
        return self.add(Agent2Request("POST", "/local/v1/jobs", status, job, {"kind": "chat"}), "agent2")

    def accepted(self, prompt: str, job: str = JOB) -> int:
        """agent2 took a job with this prompt."""
        return self.add(Agent2Job(job, "accepted", "chat", digest("prompt", prompt)), "agent2")

    def line(self, i: int, text: str | None = None, text_digest: str | None = None, **more: Any) -> int:
        """agent2 wrote a line; `text_digest` is the answer that stands in it."""
        text = f"line {i}" if text is None else text
        if text_digest is not None:
            more["text"] = digest("answer", text_digest)
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

    def ended(self, state: str = "done", job: str = JOB, **result: Any) -> int:
        """agent2 ended the job."""
        return self.add(Agent2Job(job, state, "chat", None, result or None), "agent2")

    def page(
        self,
        ref: str,
        events: list[tuple[Any, str]],
        next_ref: str,
        done: bool = False,
        name: str | None = None,
        **facts: Any,
    ) -> int:
        """A page of job.stream was answered; `name` stands for the requestId."""
        listed = tuple({"i": i, "sha256": sha(text), "chars": len(text)} for i, text in events)
        body = {"schema": "ok", "events": listed, "done": done, "next": sha(next_ref), **facts}
        return self.add(
            BodyAnswered(self.conn, uuid(name or ref), "job.stream", sha(ref), JOB, "ok", 10, sha("b"), body)
        )

    # What the gateway's caller gets

    def moved(self, state: str, events: int | None = None, results: int | None = 0) -> int:
        """The gateway told its caller of a job: so many reports and results by now."""
        return self.add(JobMoved(JOB, state, events, results))

    def taken(self, page: int, fresh: int, total: int, done: bool = False) -> int:
        """The caller took a page."""
        return self.add(StreamPage(JOB, page, fresh, total, done), "driver")

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


QUESTION = "Where is it?"
ANSWER = "There."


def chat_with_resume() -> Tale:
    """A whole chat in which the socket is lost in mid-stream; every law holds in it."""
    tale = Tale()
    tale.health()
    tale.connect()
    tale.assigned(QUESTION)
    assign = tale.wait(0.1).assign(payload={"inputs": [{"inline": digest("inline", QUESTION)}]})
    tale.ack_by_la(assign, ack=1)
    tale.health()
    tale.post()
    tale.accepted(QUESTION)
    beat = tale.wait(0.1).la("heartbeat", 1, ack=1)
    tale.ack_by_cp(beat, ack=1)
    own = tale.la("job.event", 2, ack=1, payload={"jobId": JOB, "state": "running", "phase": "context"})
    tale.ack_by_cp(own, ack=2)
    tale.stream("opened")
    tale.stream("opened", stream="events")
    tale.told(1, "job.event", state="running", phase="plan", iteration=1, filesChanged=0)
    event = tale.la("job.event", 3, ack=1, payload={"jobId": JOB, "state": "running", "phase": "plan", "iteration": 1})
    tale.ack_by_cp(event, ack=3)
    tale.moved("running", 2)
    tale.lines(3)
    request = tale.ask(2, "r1", JOB, ack=3)
    tale.ack_by_la(request, ack=2)
    answer = tale.answer(4, "r1", ack=2)
    tale.page(JOB, numbered_lines(0, 2), "x1", name="r1")
    tale.ack_by_cp(answer, ack=4)
    tale.taken(1, 2, 2)
    request = tale.wait(0.1).ask(3, "r2", "x1")
    tale.close()
    tale.wait(3).connect("c2", resume=(SESSION, 2), resumed=True, peer_last=4)
    request = tale.ask(3, "r2", "x1")
    tale.ack_by_la(request, ack=3)
    tale.line(3, role="assistant", text_digest=ANSWER)
    tale.stream("ended", 4)
    tale.told(2, "job.result", outcome="no_change")
    tale.ended("done", outcome="no_change", filesChangedCount=0)
    tale.stream("ended", 2, stream="events")
    answer = tale.answer(5, "r2", ack=3)
    tale.page("x1", numbered_lines(2, 2), "x2", name="r2")
    tale.ack_by_cp(answer, ack=5)
    tale.taken(2, 2, 4)
    request = tale.ask(4, "r3", "x2", ack=5)
    tale.ack_by_la(request, ack=4)
    result = tale.wait(0.1).la("job.result", 6, payload={"jobId": JOB, "outcome": "no_change", "filesChangedCount": 0})
    tale.ack_by_cp(result, ack=6)
    tale.moved("ended", 2, 1)
    answer = tale.answer(7, "r3", ack=4)
    tale.page("x2", [], "x2", done=True, name="r3")
    tale.ack_by_cp(answer, ack=7)
    tale.taken(3, 0, 4, done=True)
    tale.add(StreamOver(JOB), "driver")
    request = tale.ask(5, "r4", JOB, "chat.session")
    tale.ack_by_la(request, ack=5)
    answer = tale.answer(8, "r4", ack=5)
    turns = (
        {"role": "user", "sha256": sha(QUESTION), "chars": 12},
        {"role": "assistant", "sha256": sha(ANSWER), "chars": 6},
    )
    tale.body("r4", "chat.session", JOB, schema="ok", turns=turns, truncated=False)
    tale.ack_by_cp(answer, ack=8)
    tale.wait(0.5).close("remote", 1000)
    tale.end()
    return tale


ALL_IDS = [law.id for law in CHAT_LAWS]
