"""The laws of client content: it stays in its fields."""

from __future__ import annotations

from functools import partial

from lab.journal.events import Agent2Request, GatewayKept, GatewayLogged, SocketOpened, SutOutput
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, FrameAt
from lab.laws.view import JournalView

# WS-048, SEC-002: the three content fields, and the echo of two of them
PLACES = frozenset(
    {
        ("content.response", "payload.data"),
        ("job.assign", "payload.inputs[].inline"),
        ("job.assign", "paramsRaw"),
        ("webhook.forward", "payload.bodyB64"),
        ("webhook.forward", "paramsRaw"),
    }
)


def _content_stays(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for connection in view.connections.values():
        for seen in connection.made(party):
            who = view.name_of(party, connection)
            leaks = [found for found in seen.frame.facts.get("canaries") or () if not _allowed(seen, found["place"])]
            for found in leaks:
                tally.broken(
                    who,
                    f"canary {found['id']} in {seen.frame.type or 'a message'} at {found['place']}",
                    "content only in content.response.data, job.assign.inputs[].inline, webhook.forward.bodyB64",
                    (seen.n,),
                )
            if not leaks:
                tally.held()
    if party == GATEWAY:
        _judge_gateway(tally, view)
    if party == LOCAL_AGENT:
        _judge_output(tally, view)
        _judge_targets(tally, view)
    return tally.judgement()


def _allowed(seen: FrameAt, place: str) -> bool:
    if (seen.frame.type, place) in PLACES:
        return True
    # V1-001: register of v1 carries the path in clear
    return seen.frame.version is None and seen.frame.type == "register" and place.split(".")[-1] == "workspacePath"


def _judge_output(tally: Tally, view: JournalView) -> None:
    for entry in view.entries:
        if isinstance(entry.event, SutOutput):
            if entry.event.canaries:
                # SEC-002, SEC-005, SEC-015, SEC-019, A2-063: no content and no token in what a process prints
                tally.broken(
                    entry.event.name,
                    f"canary {', '.join(entry.event.canaries)} on {entry.event.stream}",
                    "no content in the output of the process",
                    (entry.n,),
                )
            else:
                tally.held()


def _judge_gateway(tally: Tally, view: JournalView) -> None:
    """SEC-001, SEC-004, CP-014: what passed through a gateway is neither logged nor kept."""
    for entry in view.entries:
        event = entry.event
        if isinstance(event, GatewayLogged):
            found, where = [*event.canaries], "its log"
        elif isinstance(event, GatewayKept) and event.canaries is not None:
            found = [f"{one['id']} at {one['place']}" for one in event.canaries]
            where = "what it keeps"
        else:
            continue
        if found:
            tally.broken(entry.by, f"canary {', '.join(found)} in {where}", "no content there", (entry.n,))
        else:
            tally.held()


def _judge_targets(tally: Tally, view: JournalView) -> None:
    """SEC-006, SEC-015: neither content nor a token stands in the path or the query of a request."""
    for entry in view.entries:
        event = entry.event
        if isinstance(event, SocketOpened):
            who, found, what = event.agent or view.participant(None), event.canaries, "the path of an upgrade"
        elif isinstance(event, Agent2Request):
            found = tuple(event.facts.get("canaries", ()))
            who, what = view.participant(None), f"the target of {event.method} {event.route}"
        else:
            continue
        if found:
            tally.broken(who, f"canary {', '.join(found)} in {what}", "no content and no token there", (entry.n,))


LAWS = (
    Law(
        "content-stays-in-its-fields",
        "An agent puts no client content outside the content fields, nor into its output",
        LOCAL_AGENT,
        (
            *("WS-048", "WS-045", "SEC-002", "SEC-003", "SEC-005", "SEC-006", "SEC-008", "SEC-009"),
            *("SEC-015", "SEC-019", "A2-063", "CHAT-028"),
        ),
        partial(_content_stays, "content-stays-in-its-fields", LOCAL_AGENT),
    ),
    Law(
        "gateway-content-stays-in-its-fields",
        "A gateway puts no client content outside the content fields, logs none and keeps none",
        GATEWAY,
        ("WS-048", "WS-045", "SEC-001", "SEC-002", "SEC-004", "SEC-009", "SEC-012", "CP-014"),
        partial(_content_stays, "gateway-content-stays-in-its-fields", GATEWAY),
    ),
)
