"""The laws of content requests: their time limits on both sides, and what one answer may hold."""

from __future__ import annotations

from lab.laws.codes import fatal_error, refused_frame
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, Exchange, FrameAt
from lab.laws.view import JournalView

FIRST_CHUNK = 10.0
"""Seconds from the request to its first chunk (WS-055)."""

WHOLE_ANSWER = 30.0
"""Seconds from the request to its last chunk (WS-055)."""

LATE = 1.0
"""Seconds by which a limit may seem late: what a machine needs to notice it."""

EARLY = 0.1
"""As LATE, for a limit that seems to end early."""

LARGEST_BODY = 2 * 1024 * 1024
"""Bytes of a whole answer (CH-038)."""

LARGEST_EVENT = 16384
"""Characters of an event (CHAT-033)."""

ROOM_FOR_A_PAGE = 128 * 1024
"""Bytes in which any one event fits: each of its characters takes six at most, as JSON in JSON."""

MOST_EVENTS = 512
"""Events of a page (CHAT-033)."""


def _content_in_time(view: JournalView) -> Judgement:
    tally = Tally("content-in-time", LOCAL_AGENT)
    for exchange in view.exchanges.values():
        if exchange.asks and exchange.asks[0].passed_on and exchange.asks[0].clean:
            _judge_in_time(tally, view, exchange)
    return tally.judgement()


def _judge_in_time(tally: Tally, view: JournalView, exchange: Exchange) -> None:
    asked = exchange.asks[0]
    connection = view.connections[asked.frame.conn]
    if _rejected(view, asked):
        # SQ-009, CH-035: a kind that nobody serves gets no answer
        tally.held()
        return
    chunks = [(seen.t, seen) for seen in exchange.answers]
    last = next((seen for _, seen in chunks if (seen.frame.chunk or {}).get("last")), None)
    first = chunks[0][1] if chunks else None
    limits = ((FIRST_CHUNK, first, "first chunk"), (WHOLE_ANSWER, last, "last chunk"))
    for limit, seen, name in limits:
        due = asked.t + limit
        due += view.slack(asked.t, due)
        if seen is not None and seen.t <= due:
            continue
        if not _undisturbed(view, connection, exchange, asked, due):
            tally.unsure()
        elif seen is not None:
            what = f"the {name} of {exchange.kind} after {seen.t - asked.t:.1f} s"
            tally.broken(view.agent_of(connection), what, f"within {limit:g} s", (asked.n, seen.n))
        elif view.horizon(connection, asked.t) >= due:
            what = f"no {name} of {exchange.kind} in {limit:g} s"
            tally.broken(view.agent_of(connection), what, f"the {name} within {limit:g} s", (asked.n,))
        return
    tally.held()


def _rejected(view: JournalView, asked: FrameAt) -> bool:
    acks = view.acks.get(asked.frame.msg_id or "", ())
    return any(ack.party == LOCAL_AGENT and ack.frame.payload.get("status") == "rejected" for ack in acks)


def _undisturbed(view: JournalView, connection: Connection, exchange: Exchange, asked: FrameAt, due: float) -> bool:
    """Whether nothing but the agent can have kept an answer back: no fault of a link or a frame, no end."""
    ended = fatal_error(connection)
    lost = any(seen.frame.fate != "passed" and seen.t <= due for seen in connection.after(asked.n))
    alone = len({seen.frame.conn for seen in (*exchange.asks, *exchange.answers)}) == 1
    return alone and not lost and view.quiet(asked.t, due) and not (ended is not None and ended.t <= due)


# The gateway's limits


def _gateway_content_limits(view: JournalView) -> Judgement:
    tally = Tally("gateway-content-limits", GATEWAY)
    for exchange in view.exchanges.values():
        if exchange.asks:
            _judge_limit(tally, view, exchange)
    return tally.judgement()


def _judge_limit(tally: Tally, view: JournalView, exchange: Exchange) -> None:
    asked = exchange.asks[0]
    chunks = [seen for seen in exchange.answers if seen.passed_on]
    if any(seen.frame.fate == "delayed" for seen in chunks) or (chunks and not _taken(view, chunks[0])):
        # Which of the two limits holds is not known.
        tally.unsure()
        return
    # CH-037: both limits run from the write of the request
    limit = WHOLE_ANSWER if chunks and chunks[0].t - asked.t < FIRST_CHUNK else FIRST_CHUNK
    entry, failure = exchange.failed or (None, None)
    if entry is not None and entry.t < asked.t:
        # It was given to a connection that was gone, and written to the next one: nobody saw the first writing.
        tally.unsure()
        return
    if entry is not None and failure is not None and failure.code == "timeout":
        passed = entry.t - asked.t
        room = view.slack(asked.t, entry.t)
        if passed < limit - EARLY:
            tally.broken(asked.by, f"timeout after {passed:.1f} s", f"not before {limit:g} s", (asked.n, entry.n))
        elif passed > limit + LATE + room:
            tally.broken(asked.by, f"timeout after {passed:.1f} s", f"after {limit:g} s", (asked.n, entry.n))
        else:
            tally.held()
        return
    over = exchange.body[0].t if exchange.body is not None else entry.t if entry is not None else None
    due = asked.t + limit + LATE
    due += view.slack(asked.t, due)
    if over is not None and over <= due:
        tally.held()
    elif (view.steps_end if view.steps_end is not None else view.end) < due:
        return
    elif exchange.body is not None and entry is None:
        # CH-037: whoever waits was to be told before
        body = exchange.body[0]
        seen = f"an answer taken after {body.t - asked.t:.1f} s"
        tally.broken(asked.by, seen, f"timeout after {limit:g} s", (asked.n, body.n))
    elif over is None:
        tally.broken(asked.by, f"no timeout after {limit:g} s", "timeout to its caller", (asked.n,))


def _taken(view: JournalView, chunk: FrameAt) -> bool:
    """Whether the gateway took a chunk: what it refused with a fatal error, and what came behind that, is none."""
    refused = refused_frame(view.connections[chunk.frame.conn], GATEWAY)
    return refused is None or chunk.n < refused.n


# What an answer holds


def _answer_limits(view: JournalView) -> Judgement:
    tally = Tally("answer-limits", LOCAL_AGENT)
    for exchange in view.exchanges.values():
        if exchange.body is None:
            continue
        entry, body = exchange.body
        if body.status == "ok":
            odd = _odd_body(exchange)
        elif body.facts.get("errorCode") == "payload_too_large" and _asked_for_a_page(exchange):
            # CHAT-049: what does not fit comes with the next cursor
            odd = "a page that is payload_too_large", "as many events as fit, the rest with the next cursor"
        else:
            continue
        if odd is None:
            tally.held()
        else:
            connection = view.connections.get(body.conn)
            who = view.agent_of(connection) if connection is not None else view.participant(None)
            tally.broken(who, odd[0], odd[1], (*(one.n for one in exchange.asks[:1]), entry.n))
    return tally.judgement()


def _asked_for_a_page(exchange: Exchange) -> bool:
    """Whether a page was asked for with room for any event."""
    most = exchange.asks[0].frame.payload.get("maxBytes") if exchange.asks else 0
    return exchange.kind == "job.stream" and (most is None or most >= ROOM_FOR_A_PAGE)


def _odd_body(exchange: Exchange) -> tuple[str, str] | None:
    if exchange.body is None:
        return None
    body = exchange.body[1]
    asked = exchange.asks[0].frame.payload.get("maxBytes") if exchange.asks else None
    most = min(asked, LARGEST_BODY) if isinstance(asked, int) else LARGEST_BODY
    if body.bytes > most:
        # CH-038, CHAT-049
        return f"a body of {body.bytes} bytes", f"at most {most}"
    if body.facts.get("total", "ok") != "ok":
        # CH-007
        return f"totalBytes that is not the body's {body.bytes}", "the size of the whole body"
    schema = body.facts.get("schema", "ok")
    events = body.facts.get("events", ())
    if len(events) > MOST_EVENTS:
        return f"a page of {len(events)} events", f"at most {MOST_EVENTS}"
    long = next((event for event in events if not 1 <= event.get("chars", 1) <= LARGEST_EVENT), None)
    if long is not None:
        return f"event {long.get('i')} of {long.get('chars')} characters", f"1 to {LARGEST_EVENT} characters"
    if schema != "ok":
        # CHAT-032 to CHAT-034, CHAT-051
        place = schema.get("path") or "the body" if isinstance(schema, dict) else "?"
        return f"a body of {body.content} that breaks its schema at {place}", "the closed schema of its kind"
    return None


LAWS = (
    Law(
        "content-in-time",
        "An agent begins its answer to a content request within 10 s, and ends it within 30 s",
        LOCAL_AGENT,
        ("CHAT-037", "WS-055"),
        _content_in_time,
    ),
    Law(
        "gateway-content-limits",
        "A gateway gives a content request 10 s for its first chunk and 30 s in all, no less and no more",
        GATEWAY,
        ("CH-037", "CHAT-037", "WS-055"),
        _gateway_content_limits,
    ),
    Law(
        "answer-limits",
        "An answer keeps to its schema and its bounds: 2 MiB, what was asked at most, 512 events of 16384 characters",
        LOCAL_AGENT,
        ("CH-007", "CH-038", "CHAT-032", "CHAT-033", "CHAT-034", "CHAT-049", "CHAT-051"),
        _answer_limits,
    ),
)
