"""The laws of refs: what an agent must find, what it must not, and that a cursor tells nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from lab.journal.events import BodyAnswered
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, Exchange, Job
from lab.laws.view import JournalView

LAW = "refs"

CURSOR_CHARACTERS = 43
"""Of a cursor (CHAT-035)."""

LEAST_FRESH = 11
"""Characters in which two cursors of a stream differ at least: 64 bits that nobody can guess, behind any prefix."""

AT_ONCE = 1.0
"""Seconds in which an unknown job is not_found (CHAT-045): it is not waited for."""

UUID_BYTES = 36


@dataclass
class _Known:
    """Refs by their hash: jobs, conversations, and cursors with when they were handed out."""

    jobs: dict[str, Job] = field(default_factory=dict)
    conversations: dict[str, Job] = field(default_factory=dict)
    cursors: dict[str, float] = field(default_factory=dict)


def _refs(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    known = _Known()
    for job in view.jobs.values():
        known.jobs[_sha256(job.job_id)] = job
        for assign in job.assigns:
            conversation = (assign.frame.payload.get("options") or {}).get("conversationId")
            known.conversations[_sha256(conversation if isinstance(conversation, str) else job.job_id)] = job
    bodies = [exchange.body for exchange in view.exchanges.values() if exchange.body is not None]
    for entry, body in sorted(bodies, key=lambda one: one[0].n):
        exchange = view.exchanges[body.request_id]
        if exchange.asks and body.content == "job.stream":
            _judge_stream(tally, view, known, exchange, entry, body)
        elif exchange.asks and body.content == "chat.session":
            _judge_session(tally, view, known, exchange, entry, body)
        cursor = body.facts.get("next")
        if isinstance(cursor, str):
            known.cursors.setdefault(cursor, entry.t)
    return tally.judgement()


def _judge_stream(
    tally: Tally, view: JournalView, known: _Known, exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    job = known.jobs.get(body.ref)
    owner = job or (view.jobs.get(body.job_id or "") if body.ref in known.cursors else None)
    if owner is not None and _is_foreign(owner, exchange):
        _judge_foreign(tally, view, exchange, entry, body)
    elif job is not None and job.assigns:
        if job.kind == "chat":
            _judge_chat(tally, view, job, exchange, entry, body)
        elif body.status == "ok":
            # CHAT-045: only a chat has a stream to give
            _broken(tally, view, exchange, entry, f"a page for a job of kind {job.kind}", "not_found")
        else:
            _judge_at_once(tally, view, exchange, entry, f"a job of kind {job.kind}")
    elif body.ref in known.cursors:
        _judge_cursor(tally, view, known.cursors[body.ref], exchange, entry, body)
    else:
        _judge_unknown(tally, view, exchange, entry, body)


def _is_foreign(job: Job, exchange: Exchange) -> bool:
    """Whether a request names another workspace than the one that its job was assigned to."""
    owners = {assign.frame.workspace_id for assign in job.assigns if assign.passed_on}
    asked = exchange.asks[0].frame.workspace_id
    return bool(owners) and asked is not None and asked not in owners


def _judge_foreign(tally: Tally, view: JournalView, exchange: Exchange, entry: Entry, body: BodyAnswered) -> None:
    """CH-036: content stays within its workspace."""
    if body.status == "forbidden":
        tally.held()
    elif body.status == "error":
        tally.unsure()
    else:
        what = "its content" if body.status == "ok" else body.status
        _broken(tally, view, exchange, entry, f"{what} for a request of another workspace", "forbidden")


def _judge_chat(
    tally: Tally, view: JournalView, job: Job, exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    """CHAT-044, CHAT-019: a chat that was accepted is found, however early the question comes."""
    if body.status != "not_found":
        tally.held()
        return
    asked = exchange.asks[0]
    who = view.agent_of_job(job)
    assign = next((one for one in job.assigns if one.passed_on and one.n < asked.n), None)
    taken = assign is not None and any(
        ack.frame.payload.get("status") == "accepted" and ack.n < entry.n
        for ack in view.acks.get(assign.frame.msg_id or "", ())
    )
    failed = any(result.frame.payload.get("outcome") == "failed" and result.n < entry.n for result in job.results)
    opened = not failed or (assign is not None and _was_opened(view, job, assign.n))
    if assign is None or not taken or not opened or view.agent_process_changed(who, assign.t, entry.t):
        # CHAT-020, CHAT-021: a chat that could not be opened has no record; cursors die with the process.
        tally.unsure()
    else:
        _broken(tally, view, exchange, entry, "not_found for a chat that was accepted", "its stream")


def _was_opened(view: JournalView, job: Job, since: int) -> bool:
    """CHAT-019: a failed chat was opened if its failure lies behind that: agent2 had it, or did not list chat."""
    until = job.results[0].n
    refused = any(
        since < entry.n < until and "chat" not in request.facts.get("kinds", ("chat",))
        for entry, request in view.agent2_requests
        if request.route.endswith("/health") and request.status == 200
    )
    return refused or any(entry.n < until for entry, _ in job.posts)


def _judge_cursor(
    tally: Tally, view: JournalView, handed_out: float, exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    """CHAT-046: a cursor lives as long as its record, for as many requests as come."""
    connection = view.connections[exchange.asks[0].frame.conn]
    if body.status != "not_found":
        tally.held()
    elif view.agent_process_changed(view.agent_of(connection), handed_out, entry.t):
        tally.unsure()
    else:
        _broken(tally, view, exchange, entry, "not_found for a cursor that was handed out", "a page from there on")


def _judge_unknown(tally: Tally, view: JournalView, exchange: Exchange, entry: Entry, body: BodyAnswered) -> None:
    connection = view.connections[exchange.asks[0].frame.conn]
    if body.status == "ok" and (_knows_more(view, view.agent_of(connection)) or _unread(view, exchange)):
        tally.unsure()
    elif body.status == "ok":
        # CHAT-043, CHAT-045
        _broken(tally, view, exchange, entry, "a page for a ref that nobody handed out", "not_found")
    else:
        _judge_at_once(tally, view, exchange, entry, "an unknown ref")


def _unread(view: JournalView, asking: Exchange) -> bool:
    """Whether an earlier page came in pieces that its witness could not put together: it handed out a cursor too."""
    before = asking.asks[0].n
    return any(
        exchange.body is None and exchange.kind == "job.stream" and exchange.answers and exchange.answers[0].n < before
        for exchange in view.exchanges.values()
    )


def _judge_at_once(tally: Tally, view: JournalView, exchange: Exchange, entry: Entry, what: str) -> None:
    asked, answered = exchange.asks[0], exchange.answers[0] if exchange.answers else None
    due = asked.t + AT_ONCE + view.slack(asked.t, entry.t)
    if not exchange.on_one_connection or answered is None or not view.quiet(asked.t, entry.t):
        tally.unsure()
    elif answered.t > due and _ref_bytes(exchange) == UUID_BYTES:
        seen = f"an answer for {what} after {answered.t - asked.t:.1f} s"
        _broken(tally, view, exchange, entry, seen, "not_found at once")
    else:
        tally.held()


def _ref_bytes(exchange: Exchange) -> object:
    ref = exchange.asks[0].frame.payload.get("ref")
    return ref.get("bytes") if isinstance(ref, dict) else None


def _judge_session(
    tally: Tally, view: JournalView, known: _Known, exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    connection = view.connections[exchange.asks[0].frame.conn]
    if body.ref in known.conversations and _is_foreign(known.conversations[body.ref], exchange):
        _judge_foreign(tally, view, exchange, entry, body)
    elif body.ref in known.conversations:
        _judge_conversation(tally, view, known.conversations[body.ref], exchange, entry, body)
    elif body.status == "ok" and _knows_more(view, view.agent_of(connection)):
        tally.unsure()
    elif body.status == "ok":
        # CHAT-057
        _broken(tally, view, exchange, entry, "a conversation that nobody had", "not_found")
    else:
        tally.held()


def _judge_conversation(
    tally: Tally, view: JournalView, job: Job, exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    """CHAT-054, CHAT-055: the store on disk has the conversation of a chat that agent2 took."""
    asked = exchange.asks[0]
    taken = any(200 <= request.status < 300 and post.n < asked.n for post, request in job.posts)
    if body.status != "not_found" or job.kind != "chat":
        tally.held()
    elif taken:
        _broken(tally, view, exchange, entry, "not_found for the conversation of a chat", "its turns")
    else:
        tally.unsure()


def _knows_more(view: JournalView, agent: str) -> bool:
    """Whether an agent may have records from before the run."""
    declared = view.participants.get(agent)
    return declared is None or declared.how == "attach"


def _broken(tally: Tally, view: JournalView, exchange: Exchange, entry: Entry, seen: str, due: str) -> None:
    asked = exchange.asks[0]
    tally.broken(view.agent_of(view.connections[asked.frame.conn]), seen, due, (asked.n, entry.n))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# What a cursor tells


def _cursors_tell_nothing(view: JournalView) -> Judgement:
    tally = Tally("cursors-tell-nothing", LOCAL_AGENT)
    for entry in view.entries:
        body = entry.event
        alike = body.facts.get("nextAlike") if isinstance(body, BodyAnswered) else None
        if not isinstance(body, BodyAnswered) or not isinstance(alike, int):
            continue
        differ = CURSOR_CHARACTERS - alike
        if differ >= LEAST_FRESH:
            tally.held()
        else:
            # CHAT-046, SEC-018: random or keyed, so that no position can be read from it
            connection = view.connections.get(body.conn)
            who = view.participant(None) if connection is None else view.agent_of(connection)
            seen = f"a cursor that differs from an earlier one of its stream in {differ} characters"
            tally.broken(who, seen, f"at least {LEAST_FRESH}: random or keyed", (entry.n,))
    return tally.judgement()


LAWS = (
    Law(
        "cursors-tell-nothing",
        "A cursor shows no position: two of one stream have nothing in common but what chance and a prefix give",
        LOCAL_AGENT,
        ("CHAT-046", "SEC-018"),
        _cursors_tell_nothing,
    ),
    Law(
        LAW,
        "A chat, its conversation and every cursor handed out are found, and nothing else is",
        LOCAL_AGENT,
        (
            *("CH-036", "CHAT-019", "CHAT-035", "CHAT-043", "CHAT-044"),
            *("CHAT-045", "CHAT-046", "CHAT-054", "CHAT-055", "CHAT-057"),
        ),
        _refs,
    ),
)
