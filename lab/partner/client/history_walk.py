"""Items of a conversation, and walking through its pages until their end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.partner.client.members import BadShape, Moment, moment_untrusted
from lab.partner.client.shapes import Attachment, attachment_untrusted

MOST_PAGES = 100
"""A walk that was given no limit of its own ends here."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text between two tool calls."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolPart:
    """A tool call. `status` succeeded, failed or cancelled (HIS-018)."""

    tool_call_id: str
    name: str
    status: str


Part = TextPart | ToolPart


@dataclass(frozen=True, slots=True)
class Item:
    """A message or an answer. `parts` is None where the history has none (HIS-021, HIS-022)."""

    id: str
    turn_id: str
    role: str
    text: str = field(repr=False)
    created_at: Moment
    attachments: tuple[Attachment, ...]
    parts: tuple[Part, ...] | None

    def blocks(self) -> tuple[str, ...]:
        """The item's texts in order; without parts its text as it is, since nothing divides it (HIS-021)."""
        if self.parts is None:
            return (self.text,)
        return tuple(part.text for part in self.parts if isinstance(part, TextPart))

    def answer(self, status: str) -> str:
        """The turn's answer, given the status of its run: the last text of one that reached an answer, else nothing.

        HIS-014, HIS-016: interrupted and limited turns may hold progress alone.
        """
        blocks = self.blocks()
        return blocks[-1] if status == "completed" and blocks else ""

    def progress(self, status: str) -> tuple[str, ...]:
        """The texts that are notes on the way (HIS-015)."""
        blocks = self.blocks()
        return blocks[:-1] if status == "completed" else blocks


@dataclass(frozen=True, slots=True)
class Page:
    """Items, newest first, and the cursor of the next page; None after the last (HIS-026)."""

    items: tuple[Item, ...]
    next_cursor: str | None = field(repr=False)


def page_untrusted(data: Any) -> Page:
    """The data of GET …/messages. Raises `BadShape`."""
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        raise BadShape("items")
    cursor = data.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise BadShape("nextCursor")
    # HIS-026: an absent or empty cursor ends a walk too.
    return Page(tuple(_item(one) for one in data["items"]), cursor or None)


def _item(value: Any) -> Item:
    if not isinstance(value, dict):
        raise BadShape("items")
    attachments, parts = value.get("attachments"), value.get("parts")
    if not isinstance(attachments, list):
        raise BadShape("attachments")
    if parts is not None and not isinstance(parts, list):
        raise BadShape("parts")
    return Item(
        _text(value, "id"),
        _text(value, "turnId"),
        _text(value, "role"),
        _text(value, "text"),
        moment_untrusted(value.get("createdAt"), "createdAt"),
        tuple(attachment_untrusted(one) for one in attachments),
        None if parts is None else tuple(_part(one) for one in parts),
    )


def _part(value: Any) -> Part:
    if not isinstance(value, dict):
        raise BadShape("parts")
    match value.get("type"):
        case "text":
            return TextPart(_text(value, "text"))
        case "tool_call":
            return ToolPart(_text(value, "toolCallId"), _text(value, "name"), _text(value, "status"))
    raise BadShape("parts")


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise BadShape(name)
    return found


@dataclass(slots=True)
class HistoryWalk:
    """What a walk has seen. `end` is empty while it goes on; then end, repeated-cursor or page-limit (HIS-036)."""

    most_pages: int = MOST_PAGES
    items: list[Item] = field(default_factory=list)
    pages: int = 0
    end: str = ""
    duplicates: list[str] = field(default_factory=list)
    """Ids of items that came more than once."""
    _cursors: set[str] = field(default_factory=set, repr=False)
    _ids: set[str] = field(default_factory=set, repr=False)

    def take(self, page: Page) -> str | None:
        """Take a page in; the cursor to ask with next, None when the walk is over."""
        self.pages += 1
        for item in page.items:
            if item.id in self._ids:
                self.duplicates.append(item.id)
            self._ids.add(item.id)
            self.items.append(item)
        cursor = page.next_cursor
        if cursor is None:
            self.end = "end"
        elif cursor in self._cursors:
            self.end = "repeated-cursor"
        elif self.pages >= self.most_pages:
            self.end = "page-limit"
        else:
            self._cursors.add(cursor)
            return cursor
        return None
