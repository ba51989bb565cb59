"""Events in words."""

from __future__ import annotations

import pytest

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    CallFailed,
    Event,
    FaultFired,
    JobAssigned,
    JobMoved,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    StepEnded,
    StepStarted,
    SutChanged,
    SutOutput,
    TextMessage,
    Undelivered,
    digest,
)
from lab.report.event_words import Words, words_of
from tests.run.made import frame

MESSAGE = "a1b2c3d4-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("event", "text", "note"),
    [
        (
            frame(type="job.event", seq=3, ack=2, msg_id=MESSAGE),
            "→ job.event",
            "seq 3 · ack 2 · msg a1b2c3d4 · 10 bytes",
        ),
        (frame(type="ready", direction="cp-to-la", seq=0), "← ready", "10 bytes"),
        (frame(), "→ (no frame)", "10 bytes"),
        (frame(type="x", chunk={"index": 0, "total": 2}), "→ x", "chunk 1/2 · 10 bytes"),
        (frame(type="x", fate="dropped", fault="drop-1"), "→ x", "dropped by drop-1 · 10 bytes"),
        (frame(type="x", fault="tamper-1"), "→ x", "by tamper-1 · 10 bytes"),
        (
            frame(type="ack", payload={"status": "duplicate", "ackSeq": 4}),
            "→ ack",
            "status duplicate · ackSeq 4 · 10 bytes",
        ),
        (frame(type="x", payload={"state": digest("token", "the prompt")}), "→ x", "10 bytes"),
        (frame(facts={"parse": "not JSON"}), "→ (no frame)", "no JSON object · 10 bytes"),
        (
            frame(type="x", facts={"schema": {"path": "payload", "keyword": "required"}, "direction": False}),
            "→ x",
            "not for this side to send · schema_violation at payload (required) · 10 bytes",
        ),
        (
            frame(type="x", facts={"tenant": "tenant_mismatch", "schema": "ok"}),
            "→ x",
            "tenant_mismatch · 10 bytes",
        ),
        (
            frame(type="x", facts={"signature": {"present": True, "verified": False}}),
            "→ x",
            "bad signature · 10 bytes",
        ),
        (
            frame(type="x", facts={"signature": {"present": True, "verified": True, "bound": False, "equal": False}}),
            "→ x",
            "signature bound to something else · paramsRaw differs from the payload · 10 bytes",
        ),
        (frame(type="x", facts={"signature": {"present": True, "verified": True}}), "→ x", "10 bytes"),
        (
            BodyAnswered("c", "r", "job.stream", "", "j", "ok", 5, "", {"events": ({},)}),
            "job.stream body",
            "ok · 5 bytes · 1 event",
        ),
        (
            BodyAnswered("c", "r", "chat.session", "", "j", "ok", 5, "", {"turns": ({}, {})}),
            "chat.session body",
            "ok · 5 bytes · 2 turns",
        ),
        (SessionChanged("c", "ready", "a", None, {"revision": "2.3"}), "session ready", "revision=2.3"),
        (SocketOpened("c1", "/agent", "a"), "socket c1 opened", "a"),
        (SocketClosed("c1", 4420, "remote"), "socket c1 closed", "code 4420 by remote"),
        (SocketClosed("c1", None, "none"), "socket c1 closed", "without a close frame"),
        (SocketRefused(401, "x"), "socket refused", "HTTP 401"),
        (TextMessage("c1", "la-to-cp", "ping", 4), "→ text ping", "4 bytes"),
        (LinkChanged("gateway", "cut"), "link gateway cut", ""),
        (FaultFired("f", "cut", "link gateway"), "⚡ cut link gateway", ""),
        (
            frame(type="register", version=None, facts={"agent": "agent_mismatch", "schema": {"keyword": "required"}}),
            "→ register",
            "without a version · 10 bytes",
        ),
        (Undelivered("c1", 3, "job.assign", "timeout"), "job.assign not delivered", "timeout"),
        (Agent2Request("POST", "/local/v1/jobs", 202), "POST /local/v1/jobs", "HTTP 202"),
        (Agent2Stream("j", "events", "ended", 1, 4), "agent2's events ended", "reader 1 · 4 sent"),
        (Agent2Job("j", "done", "fix"), "job done at agent2", "fix"),
        (Agent2Line("j", 4, "", 12, "a.yaml:7"), "agent2's line 4", "12 characters"),
        (Agent2Frame("j", 2, "job.event", {"state": "running"}), "agent2's job.event", "seq 2 · state running"),
        (StepStarted(0, "wait", "ready", 3), "ready", ""),
        (StepEnded(0, "failed"), "step failed", ""),
        (JobAssigned("j", "q1", "chat", "a"), "job q1 assigned", "chat"),
        (CallFailed("assign", "AGENT_OFFLINE"), "call assign failed", "AGENT_OFFLINE"),
        (SutChanged("a", "killed", {"signal": "SIGKILL"}), "program killed", "signal=SIGKILL"),
        (SutOutput("a", "out", digest("line", "the prompt"), ("key",)), "a line on its out", "canary key"),
        (JobMoved("j", "ended"), "job.moved", ""),
    ],
)
def test_an_event_in_words(event: Event, text: str, note: str) -> None:
    """What it was and its details, never content; an event without words has its kind."""
    assert words_of(event) == Words(text, note)


def test_a_frame_that_came_before_names_the_first() -> None:
    """By its entry in the journal."""
    assert words_of(frame(type="x"), 42).note == "again, first at 42 · 10 bytes"
