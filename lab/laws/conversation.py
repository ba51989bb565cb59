"""The laws of what was said: the prompt reaches agent2 whole, and the stored turns are what both sides said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.journal.events import BodyAnswered, Digest, JobAssigned
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, Exchange, Job
from lab.laws.view import JournalView

LONGEST_TURN = 65536
"""Characters of a turn; a longer one is cut (CHAT-053)."""

CHAT_PROMPT = 16384
"""Bytes of a chat's prompt (CHAT-012)."""

OTHER_PROMPT = 65536
"""Bytes of another job's text, which is cut there (LA-029, LA-030)."""

STORED_WITHIN = 1.0
"""Seconds from the job.result to the stored answer; the documents name no time."""


def told_by_driver(job: Job) -> JobAssigned | None:
    """What the driver assigned."""
    event = job.assigned[0].event if job.assigned else None
    return event if isinstance(event, JobAssigned) else None


def _same(seen: Mapping[str, Any], due: Digest) -> bool:
    return bool(seen.get("sha256") == due["sha256"])


# The prompt


def _prompt_whole(view: JournalView) -> Judgement:
    tally = Tally("prompt-whole", LOCAL_AGENT)
    for job in view.jobs.values():
        assigned = told_by_driver(job)
        if assigned is not None and job.assigns:
            _judge_prompt(tally, view, job, assigned)
    return tally.judgement()


def _judge_prompt(tally: Tally, view: JournalView, job: Job, assigned: JobAssigned) -> None:
    due = assigned.prompt
    who = view.agent_of_job(job)
    if due is not None and job.kind == "chat" and due["bytes"] > CHAT_PROMPT:
        _judge_too_long(tally, job, who, due)
        return
    if due is not None and job.kind == "chat" and due["bytes"] == 0 and job.posts:
        # CHAT-017: nothing is said in the user's name
        tally.broken(who, "a chat without a text posted to agent2", "no POST", (job.posts[0][0].n,))
        return
    accepted = next(((entry, state) for entry, state in job.states if state.prompt is not None), None)
    if accepted is None or accepted[1].prompt is None:
        return
    entry, seen = accepted[0], accepted[1].prompt
    # One input without blanks around it is its own prompt; what is not equal may have been trimmed.
    alone = assigned.inputs[0] if due is None and len(assigned.inputs) == 1 else None
    if due is None and (alone is None or not _same(alone, seen)):
        tally.unsure()
    elif due is not None and (due["bytes"] == 0 or due["bytes"] > OTHER_PROMPT):
        # LA-029: a sentence of its own, or a cut text
        tally.unsure()
    elif due is None or _same(seen, due):
        tally.held()
    else:
        # CHAT-012, CHAT-016, LA-029
        tally.broken(who, f"a prompt of {seen['bytes']} bytes", f"the {due['bytes']} bytes of the inputs", (entry.n,))


def _judge_too_long(tally: Tally, job: Job, who: str, due: Digest) -> None:
    """CHAT-012: never sent shortened, and failed with unknown."""
    if job.posts:
        seen = f"a prompt of {due['bytes']} bytes posted to agent2"
        tally.broken(who, seen, f"at most {CHAT_PROMPT} bytes, else no POST", (job.posts[0][0].n,))
        return
    for result in job.results[:1]:
        payload = result.frame.payload
        if payload.get("outcome") == "failed" and payload.get("errorCode") == "unknown":
            tally.held()
        elif payload.get("outcome") == "cancelled" and job.cancels:
            tally.unsure()
        else:
            seen = f"outcome {payload.get('outcome')} ({payload.get('errorCode')})"
            tally.broken(who, seen, "failed (unknown): the prompt is too large", (result.n,))


# The conversation


@dataclass(frozen=True)
class _Turn:
    """A turn that is due: its text where it can be told, and whether it may be missing as yet."""

    role: str
    text: Digest | None
    must: bool
    masked: Digest | None = None
    """What must not be stored as it is."""


def _conversation(view: JournalView) -> Judgement:
    tally = Tally("conversation", LOCAL_AGENT)
    by_conversation: dict[str, list[Job]] = {}
    for job in view.jobs.values():
        if job.kind == "chat" and job.assigns:
            by_conversation.setdefault(_conversation_of(job), []).append(job)
    for exchange in view.exchanges.values():
        if exchange.body is None or not exchange.asks:
            continue
        entry, body = exchange.body
        opened = view.jobs.get(body.job_id or "")
        if body.content == "chat.session" and body.status == "ok" and opened is not None and opened.assigns:
            _judge_turns(tally, view, by_conversation.get(_conversation_of(opened), []), exchange, entry, body)
    return tally.judgement()


def _conversation_of(job: Job) -> str:
    named = (job.assigns[0].frame.payload.get("options") or {}).get("conversationId")
    return named if isinstance(named, str) else job.job_id


def _judge_turns(
    tally: Tally, view: JournalView, jobs: list[Job], exchange: Exchange, entry: Entry, body: BodyAnswered
) -> None:
    turns = list(body.facts.get("turns", ()))
    asked = exchange.asks[0]
    who = view.agent_of(view.connections[asked.frame.conn])
    due = [turn for job in jobs for turn in _turns_due(view, job, exchange, entry)]
    if body.facts.get("truncated") is True:
        _judge_cut(tally, who, turns, due, (asked.n, entry.n))
        return
    place = 0
    for turn in turns:
        while place < len(due) and due[place].role != turn.get("role") and not due[place].must:
            place += 1
        if place >= len(due) or due[place].role != turn.get("role"):
            expected = due[place].role if place < len(due) else "no further turn"
            tally.broken(who, f"turn {turns.index(turn)} of {turn.get('role')}", expected, (asked.n, entry.n))
            return
        odd = _odd_text(turn, due[place])
        if odd is not None:
            tally.broken(who, f"the turn of {due[place].role} with {odd[0]}", odd[1], (asked.n, entry.n))
            return
        place += 1
    missing = next((one for one in due[place:] if one.must), None)
    if missing is not None:
        # CHAT-018, CHAT-056
        tally.broken(who, f"no turn of {missing.role}", "each question and its answer", (asked.n, entry.n))
    else:
        tally.held()


def _judge_cut(
    tally: Tally, who: str, turns: list[Mapping[str, Any]], due: list[_Turn], entries: tuple[int, int]
) -> None:
    """CHAT-052, CHAT-053: the oldest turns were cut, so what is left is the end of what was said."""
    if not turns:
        # Not even the newest may have had room.
        tally.unsure()
        return
    place = len(due) - 1
    for turn in reversed(turns):
        while place >= 0 and not due[place].must and not _fits(turn, due[place]):
            place -= 1
        if place < 0 or not _fits(turn, due[place]):
            seen = f"other turns than the newest {len(turns)}, and truncated"
            tally.broken(who, seen, "the oldest cut, the newest kept", entries)
            return
        place -= 1
    tally.held()


def _fits(turn: Mapping[str, Any], due: _Turn) -> bool:
    return turn.get("role") == due.role and _odd_text(turn, due) is None


def _odd_text(turn: Mapping[str, Any], due: _Turn) -> tuple[str, str] | None:
    if due.masked is not None and _same(turn, due.masked):
        # CHAT-060
        return "a secret in it", "the secret masked"
    if due.text is None or due.text["bytes"] > LONGEST_TURN or _same(turn, due.text):
        return None
    return f"another text of {turn.get('chars')} characters", f"what was said, {due.text['bytes']} bytes"


def _turns_due(view: JournalView, job: Job, exchange: Exchange, entry: Entry) -> list[_Turn]:
    """CHAT-018, CHAT-056: the question once the job began, the answer once it ended."""
    asked = exchange.asks[0]
    assigned = told_by_driver(job)
    question = assigned.user_turn if assigned is not None else None
    begun = any(200 <= request.status < 300 and post.n < asked.n for post, request in job.posts)
    answers = [line for at, line in job.lines if line.role == "assistant" and line.text is not None and at.n < entry.n]
    secret = bool(answers) and answers[-1].secret
    text = answers[-1].text if answers else None
    return [
        _Turn("user", question, begun),
        _Turn(
            "assistant",
            None if secret else text,
            bool(answers) and _is_over(view, job, asked.n, asked.t),
            text if secret else None,
        ),
    ]


def _is_over(view: JournalView, job: Job, n: int, t: float) -> bool:
    """Whether the record of a good chat was surely closed before entry `n`."""
    done = any(body.facts.get("done") is True and entry.n < n for entry, body in job.bodies)
    result = next((one for one in job.results if one.n < n), None)
    if result is not None and result.frame.payload.get("outcome") == "failed":
        return False
    if result is not None and result.frame.payload.get("outcome") == "cancelled":
        return False
    began = job.assigns[0].t
    closed = done or (result is not None and result.t + STORED_WITHIN + view.slack(result.t, t) < t)
    return closed and view.quiet(began, t) and not view.agent_process_changed(view.agent_of_job(job), began, t)


LAWS = (
    Law(
        "prompt-whole",
        "The inputs reach agent2 whole and trimmed, and a chat's prompt that is too large or empty never does",
        LOCAL_AGENT,
        ("CHAT-012", "CHAT-013", "CHAT-014", "CHAT-016", "CHAT-017", "LA-029"),
        _prompt_whole,
    ),
    Law(
        "conversation",
        "The stored turns are what the user and agent2 said, in order",
        LOCAL_AGENT,
        ("CHAT-018", "CHAT-051", "CHAT-052", "CHAT-053", "CHAT-055", "CHAT-056", "CHAT-060"),
        _conversation,
    ),
)
