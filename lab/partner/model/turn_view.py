"""What history shows of a turn: its events as one text and as ordered parts (HIS-008…013)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lab.partner.model.runs import StoredEvent

SUCCEEDED, FAILED = "succeeded", "failed"


@dataclass(frozen=True, slots=True)
class TurnView:
    """An answer as history has it. `parts` is None where the key is to be left out (HIS-022, HIS-034)."""

    text: str
    parts: list[dict[str, str]] | None


def view_of(events: Iterable[StoredEvent]) -> TurnView:
    """The view of a turn's stored events.

    Deltas next to each other are one part, a tool ends it, and white space stays as it came. A result belongs to the
    oldest open call of its name (SSE-041): the model tells results in the order of the calls.
    """
    parts: list[dict[str, str]] = []
    deltas: list[list[str]] = []
    open_calls: list[dict[str, str]] = []
    for event in events:
        data = json.loads(event.data)
        if event.kind == "text":
            if not parts or parts[-1]["type"] != "text":
                parts.append({"type": "text", "text": ""})
                deltas.append([])
            deltas[-1].append(data["text"])
        elif event.kind == "tool_call":
            call = {"type": "tool_call", "toolCallId": data["id"], "name": data["name"], "status": ""}
            parts.append(call)
            open_calls.append(call)
        elif event.kind == "tool_result":
            call = next(call for call in open_calls if call["name"] == data["name"])
            open_calls.remove(call)
            call["status"] = SUCCEEDED if data["ok"] else FAILED
    texts = ["".join(pieces) for pieces in deltas]
    for part, text in zip([part for part in parts if part["type"] == "text"], texts, strict=True):
        part["text"] = text
    return TurnView("".join(texts), parts if parts and not open_calls else None)
