"""The laws of history: newest first, each item once, and the same words and tools that the stream told."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, EventAt, Run, key, part, sha_of
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API

DEFAULT_LIMIT = 50
"""Items of a page when no limit was asked for (HIS-002)."""

PART_STATUS = {True: "succeeded", False: "failed"}

Item = Mapping[str, Any]


def items_of(page: CallAt) -> list[Item]:
    """The items of a page of history."""
    items = page.answer.get("items")
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []


def walks(conversation: Conversation) -> Iterator[list[CallAt]]:
    """Pages that follow each other by their cursors, from one without a cursor on."""
    open_walks: dict[Hashable, list[CallAt]] = {}
    found: list[list[CallAt]] = []
    for page in conversation.of("history"):
        if not page.ok:
            continue
        cursor = key(page.sent.get("cursor"))
        walk = open_walks.pop(cursor, None) if cursor is not None else []
        if walk is None:
            continue
        if not walk:
            found.append(walk)
        walk.append(page)
        following = key(page.answer.get("nextCursor"))
        if following:
            open_walks[following] = walk
    return iter(found)


def _history_order(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        for walk in walks(conversation):
            _judge_walk(bench, walk)


def _judge_walk(bench: Bench, walk: list[CallAt]) -> None:
    seen: dict[Hashable, CallAt] = {}
    before: tuple[CallAt, Item] | None = None
    users: set[Hashable] = set()
    for page in walk:
        items = items_of(page)
        limit = page.sent.get("limit", DEFAULT_LIMIT)
        most = int(limit) if str(limit).isdecimal() else DEFAULT_LIMIT
        bench.case(len(items) <= most, f"a page of {len(items)} items", f"at most {most}", page.n)
        for item in items:
            known = seen.setdefault(key(item.get("id")), page)
            if known is not page or sum(one.get("id") == item.get("id") for one in items) > 1:
                bench.odd("an item twice in a walk", "each item once", known.n, page.n)
            if item.get("role") == "user":
                users.add(key(item.get("turnId")))
            elif key(item.get("turnId")) in users:
                # HIS-030
                bench.odd("an answer behind its question", "the answer before its question", page.n)
            if before is not None and _newer(item, before[1]):
                bench.odd("an older item before a newer one", "newest first", before[0].n, page.n)
            before = (page, item)
        if not items and page is not walk[0]:
            # HIS-026
            bench.odd("an empty page behind a nextCursor", "null on the last page", page.n)


def _newer(item: Item, before: Item) -> bool:
    here, there = instant(item.get("createdAt")), instant(before.get("createdAt"))
    return here is not None and there is not None and here > there


def _equals_stream(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        for run in conversation.runs:
            end = next(iter(run.ends()), None)
            if end is None or run.turn_id is None:
                continue
            for page in conversation.of("history"):
                if page.ok and page.after(end):
                    for item in items_of(page):
                        if item.get("turnId") == run.turn_id:
                            _judge_item(bench, run, page, item)
            _judge_missing(bench, conversation, run)


def _judge_missing(bench: Bench, conversation: Conversation, run: Run) -> None:
    """A whole walk behind the end of a turn with text tells its answer."""
    told = run.whole_text()
    if told is None or not told[1].text.get("bytes"):
        return
    for walk in walks(conversation):
        complete = not walk[-1].answer.get("nextCursor")
        if complete and walk[0].after(told[0]):
            items = [item for page in walk for item in items_of(page) if item.get("turnId") == run.turn_id]
            roles = {key(item.get("role")) for item in items}
            fine = {"user", "assistant"} <= roles
            bench.case(fine, "a turn that history does not tell", "its question and its answer", told[0].n, walk[-1].n)


def _judge_item(bench: Bench, run: Run, page: CallAt, item: Item) -> None:
    if item.get("role") == "user":
        _judge_question(bench, run, page, item)
        return
    if item.get("attachments"):
        # HIS-007
        bench.odd("an answer with attachments", "an empty list", page.n)
    told = run.whole_text()
    if told is not None:
        same = sha_of(item.get("text")) == sha_of(told[1].text)
        bench.case(same, "another text than the stream's", "the text of the stream", told[0].n, page.n)
    events = run.whole()
    parts = item.get("parts")
    if events is not None and isinstance(parts, list | tuple):
        _judge_parts(bench, run, page, [one for one in parts if isinstance(one, Mapping)], events)


def _judge_question(bench: Bench, run: Run, page: CallAt, item: Item) -> None:
    if "parts" in item:
        # HIS-023
        bench.odd("a question with parts", "no parts", page.n)
    if not run.accepted:
        return
    sent = run.accepted[0]
    message = sha_of(part(sent.sent, "message"))
    if message is not None:
        same = sha_of(item.get("text")) == message
        bench.case(same, "another question than was sent", "the message as sent", sent.n, page.n)
    named, told = sent.sent.get("attachmentIds"), item.get("attachments")
    if isinstance(named, list | tuple) and isinstance(told, list | tuple):
        # AT-046
        same = list(named) == list(told)
        bench.case(same, "other attachments than were sent", "those of attachmentIds in order", sent.n, page.n)


def _judge_parts(bench: Bench, run: Run, page: CallAt, parts: list[Item], events: list[EventAt]) -> None:
    tools = run.tool_calls(events)
    if any(tool.result is None for tool in tools):
        # HIS-033
        bench.odd("parts of a turn with an open tool call", "no parts", events[-1].n, page.n)
        return
    due = [("tool_call", tool.id, tool.name, PART_STATUS.get(tool.ok is True)) for tool in tools]
    told = [
        (one.get("type"), one.get("toolCallId"), one.get("name"), one.get("status"))
        for one in parts
        if one.get("type") == "tool_call"
    ]
    bench.case(told == due, f"{len(told)} tool parts", f"the {len(due)} tool calls of the stream", events[-1].n, page.n)
    texts = [one for one in parts if one.get("type") == "text"]
    text = run.whole_text()
    if text is not None and (text[1].segments or not text[1].text.get("bytes")):
        segments = [sha_of(one) for one in text[1].segments]
        found = [sha_of(one.get("text")) for one in texts]
        # HIS-011, HIS-012
        seen = f"{len(found)} text parts that are not the stream's"
        bench.case(found == segments, seen, f"{len(segments)} pieces of text between tool calls", page.n)


LAWS = (
    promise(
        "history-order",
        "History comes newest first, each item once in a walk, with pages no longer than was asked for",
        PARTNER_API,
        ("HIS-002", "HIS-004", "HIS-026", "HIS-029", "HIS-030"),
        _history_order,
    ),
    promise(
        "history-equals-stream",
        "History tells a turn's question as it was sent, and its answer, tools and their order as the stream did",
        PARTNER_API,
        (
            *("AT-046", "HIS-006", "HIS-007", "HIS-009", "HIS-011", "HIS-012", "HIS-018", "HIS-023", "HIS-029"),
            *("HIS-031", "HIS-033", "HIS-034", "MSG-039", "SSE-042"),
        ),
        _equals_stream,
    ),
)
