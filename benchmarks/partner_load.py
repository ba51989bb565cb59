"""The client of the partner leg: `python -m benchmarks.partner_load`, a line of JSON in, a line out, until its end.

Requests are made before the clock starts, answers are looked at after it has stopped.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.raw_http import Answer, Connection, request_of
from lab.partner.model.mcp_wire import CLIENT_INFO, NEWEST, CallContext, Era, body, headers_of

Json = Mapping[str, Any]

TOOL, ARGUMENTS = "catalog_get", {"productId": 9001}
FIRST_ID = 100_000
"""Ids of the same length, so that all answers have the same."""


# The store


def exchanges(order: Json) -> Json:
    """All that one turn asks of a store: each request, and its answer."""
    era, session = Era(order["era"]), None
    told = []
    with closing(Connection(order["url"])) as connection:
        for method, number, params in _of_a_turn(era):
            named = TOOL if method == "tools/call" else None
            headers = _common(order) | headers_of(era, method, named, session, NEWEST[era] if session else None)
            if named:
                headers |= _context(order, 0).headers()
            verb, sent = ("POST", body(era, number, method, params)) if method else ("DELETE", b"")
            answer = connection.ask(request_of(verb, "/mcp", headers, sent))
            if answer.status not in (200, 202):
                raise RuntimeError(f"{method or verb}: {answer.status}")
            session = answer.header("Mcp-Session-Id") or session
            told.append({"method": verb, "headers": headers, "body": sent.decode(), "answer": _told(answer)})
    return {"exchanges": told}


def _of_a_turn(era: Era) -> list[tuple[str, int | None, Json]]:
    """Methods, ids and parameters; the empty method ends a session."""
    call = {"name": TOOL, "arguments": ARGUMENTS}
    if era is Era.STATELESS:
        return [("server/discover", 1, {}), ("tools/list", 2, {}), ("tools/call", 3, call)]
    begin = {"protocolVersion": NEWEST[era], "capabilities": {}, "clientInfo": CLIENT_INFO}
    return [
        ("initialize", 1, begin),
        ("notifications/initialized", None, {}),
        ("tools/list", 2, {}),
        ("tools/call", 3, call),
        ("", None, {}),
    ]


def _common(order: Json) -> dict[str, str]:
    return {"Authorization": f"Bearer {order['credential']}", "X-Agent-Turn-Id": "turn-1"}


def _context(order: Json, number: int) -> CallContext:
    return CallContext("turn-1", f"call-{order.get('mark', '')}-{number}", order["conversation"], order["grant"])


def _told(answer: Answer) -> Json:
    kept = {name: answer.header(name) for name in ("Content-Type", "Cache-Control", "Mcp-Session-Id")}
    headers = {name: value for name, value in kept.items() if value is not None}
    return {"status": answer.status, "headers": headers, "body": answer.content.decode()}


def calls(order: Json) -> Json:
    """`count` tools/calls over `at_once` connections; the seconds that they took, and the digest of all results.

    Each has a call id of its own, so that each runs the tool. `begin` opens a session first.
    """
    era = Era(order["era"])
    session, version = (_session(order), NEWEST[era]) if order["begin"] else (None, None)
    headers = _common(order) | headers_of(era, "tools/call", TOOL, session, version)
    params = {"name": TOOL, "arguments": ARGUMENTS}
    requests = [
        request_of(
            "POST",
            order["path"],
            headers | _context(order, number).headers(),
            body(era, FIRST_ID + number, "tools/call", params),
        )
        for number in range(order["count"])
    ]

    def some(place: int) -> list[Answer]:
        with closing(Connection(order["url"])) as connection:
            return [connection.ask(request) for request in islice(requests, place, None, order["at_once"])]

    seconds, answers = _side_by_side(order["at_once"], some)
    results = {_result(answer) for some_answers in answers for answer in some_answers}
    return {"seconds": seconds, "results": sorted(results)}


def _session(order: Json) -> str | None:
    asked = exchanges({**order, "mark": f"{order['mark']}-begin"})["exchanges"]
    begin, initialized = (request_of(one["method"], "/mcp", one["headers"], one["body"].encode()) for one in asked[:2])
    with closing(Connection(order["url"])) as connection:
        session = connection.ask(begin).header("Mcp-Session-Id")
        connection.ask(initialized)
    return session


def _result(answer: Answer) -> str:
    """The digest of an answer without its id."""
    message = json.loads(answer.content)
    if answer.status != 200 or message["result"]["isError"]:
        raise RuntimeError(f"{answer.status} where a tool's result was due")
    del message["id"]
    return hashlib.sha256(json.dumps(message).encode()).hexdigest()


# The partner API


def turns(order: Json) -> Json:
    """`count` turns in each of `conversations`, which go side by side: from a message to the end of its stream.

    The seconds that all took, the median seconds of one, and the sequences of events that came.
    """
    plans = [
        (one, [message_request(order, one) for _ in range(order["count"])], head_of(order))
        for one in order["conversations"]
    ]

    def talk(place: int) -> list[tuple[float, Answer, Answer]]:
        routes, messages, headers = plans[place]
        done = []
        with closing(Connection(order["url"])) as connection:
            for message in messages:
                began = time.perf_counter()
                accepted = connection.ask(message)
                events = connection.ask(events_request(routes, accepted, headers))
                done.append((time.perf_counter() - began, accepted, events))
        return done

    seconds, taken = _side_by_side(len(plans), talk)
    done = [one for some in taken for one in some]
    kinds = {_kinds(events.content) for _, _, events in done}
    each = sorted(one for one, _, _ in done)
    last = done[-1]
    return {
        "seconds": seconds,
        "median": each[len(each) // 2],
        "kinds": sorted(kinds),
        "accepted": last[1].content.decode(),
        "events": split_events(last[2].content.decode()),
    }


def follow(order: Json) -> Json:
    """One message and its stream: for each text event the seconds from its commit, of `stamps`, to its arrival here."""
    (routes,) = order["conversations"]
    parts: list[tuple[float, bytes]] = []
    with closing(Connection(order["url"])) as connection:
        accepted = connection.ask(message_request(order, routes))
        request = events_request(routes, accepted, head_of(order))
        answer = connection.ask(request, lambda part: parts.append((time.perf_counter(), part)))
    stamps = stamps_of(order)
    arrivals, seen, came = [], b"", 0
    for at, part in parts:
        seen += part
        now = seen.count(b"\n\n")
        arrivals += [at] * (now - came)
        came = now
    events = split_events(answer.content.decode())
    late = [
        arrivals[place] - stamps[place] for place, event in enumerate(events) if event.split("\n")[1] == "event: text"
    ]
    return {"late": late, "accepted": accepted.content.decode(), "events": events}


def stamps_of(order: Json) -> list[float]:
    """What the server left of the last run."""
    stamps: list[float] = json.loads(Path(order["stamps"]).read_text("utf-8"))
    return stamps


def message_request(order: Json, routes: Json) -> bytes:
    """A message, each with an Idempotency-Key of its own."""
    content = json.dumps({**order["actor"], "message": "What does product 9001 cost?"}).encode()
    headers = {**head_of(order), "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    return request_of("POST", routes["messages"], headers, content)


def head_of(order: Json) -> dict[str, str]:
    """The headers of every request."""
    return {"Authorization": f"Bearer {order['key']}"}


def events_request(routes: Json, accepted: Answer, headers: Mapping[str, str]) -> bytes:
    """The stream of the run that an answer tells of; any answer but 202 raises `RuntimeError`."""
    if accepted.status != 202:
        raise RuntimeError(f"{accepted.status} where 202 was due")
    run_id = json.loads(accepted.content)["data"]["runId"]
    return request_of("GET", routes["events"].replace("{runId}", run_id), headers)


def split_events(text: str) -> list[str]:
    """A stream's events, each with the empty line that ends it."""
    return [f"{event}\n\n" for event in text.split("\n\n") if event]


def _kinds(content: bytes) -> str:
    """The names of a stream's events; one whose turn did not succeed raises `RuntimeError`."""
    events = [event.split("\n") for event in split_events(content.decode())]
    end = json.loads(events[-1][2].removeprefix("data: "))
    if end.get("status") != "completed" or end["toolErrors"]:
        raise RuntimeError("a turn that did not succeed")
    return " ".join(event[1].removeprefix("event: ") for event in events)


def _side_by_side(count: int, work: Callable[[int], Any]) -> tuple[float, Sequence[Any]]:
    """`work` in a thread for each number; the seconds until all are done, and what each gave."""
    done: list[Any] = [None] * count
    failures: list[BaseException] = []

    def one(place: int) -> None:
        try:
            done[place] = work(place)
        except BaseException as failure:  # noqa: BLE001  of a thread: told to the one that waits for it
            failures.append(failure)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - began, done


KINDS: Mapping[str, Callable[[Json], Json]] = {
    "exchanges": exchanges,
    "calls": calls,
    "turns": turns,
    "follow": follow,
}

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(KINDS[asked["kind"]](asked)), flush=True)
