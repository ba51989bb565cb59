"""Bodies of a content.response with a known verdict: one valid example each, and one change in each row."""

from __future__ import annotations

from typing import Any

import pytest

from lab.protocol.contract import SchemaBreak
from tests.protocol.frame_examples import CURSOR, GONE, MAX_INTEGER, TS

STREAM: dict[str, Any] = {"events": [{"i": 0, "e": "{}"}], "nextRef": CURSOR, "done": False}
CHAT: dict[str, Any] = {"turns": [{"role": "user", "ts": TS, "text": ""}], "truncated": False}
FILES: dict[str, Any] = {"entries": [{"name": "a.py", "kind": "file", "size": 1, "ref": CURSOR}], "truncated": False}
BODY: dict[str, dict[str, Any]] = {"job.stream": STREAM, "chat.session": CHAT, "file.list": FILES}


def body_case(reqs: str, body: str, pointer: str, value: object, keyword: str | None, path: str = "") -> Any:
    due = SchemaBreak(keyword, path) if keyword else None
    return pytest.param(
        body,
        pointer,
        value,
        due,
        id=f"{body}:{pointer}:{keyword}:{str(value)[:12]}",
        marks=pytest.mark.req(*reqs.split()),
    )


EVENT = "/events/0"
TURN = "/turns/0"
ENTRY = "/entries/0"
BODY_CASES = [
    *(body_case("CHAT-032", "job.stream", f"/{name}", GONE, "required") for name in STREAM),
    body_case("CHAT-032", "job.stream", "/more", 1, "additionalProperties"),
    body_case("CHAT-032", "job.stream", f"{EVENT}/t", 1, "additionalProperties", EVENT),
    body_case("CHAT-032", "job.stream", f"{EVENT}/i", GONE, "required", EVENT),
    body_case("CHAT-032", "job.stream", f"{EVENT}/e", GONE, "required", EVENT),
    body_case("CHAT-033", "job.stream", "/events", [{"i": n, "e": "x"} for n in range(512)], None),
    body_case("CHAT-033", "job.stream", "/events", [{"i": n, "e": "x"} for n in range(513)], "maxItems", "/events"),
    body_case("CHAT-033", "job.stream", f"{EVENT}/i", MAX_INTEGER, None),
    body_case("CHAT-033", "job.stream", f"{EVENT}/i", MAX_INTEGER + 1, "maximum", f"{EVENT}/i"),
    body_case("CHAT-033", "job.stream", f"{EVENT}/i", -1, "minimum", f"{EVENT}/i"),
    body_case("CHAT-033", "job.stream", f"{EVENT}/e", "", "minLength", f"{EVENT}/e"),
    body_case("CHAT-033", "job.stream", f"{EVENT}/e", "😀" * 16384, None),
    body_case("CHAT-033", "job.stream", f"{EVENT}/e", "x" * 16385, "maxLength", f"{EVENT}/e"),
    body_case("CHAT-034", "job.stream", "/nextRef", "c" * 42, "pattern", "/nextRef"),
    body_case("CHAT-034", "job.stream", "/nextRef", "c" * 44, "pattern", "/nextRef"),
    body_case("CHAT-034", "job.stream", "/nextRef", "c" * 42 + "=", "pattern", "/nextRef"),
    body_case("CHAT-034", "job.stream", "/nextRef", None, "type", "/nextRef"),
    *(body_case("CHAT-051", "chat.session", f"/{name}", GONE, "required") for name in CHAT),
    *(
        body_case("CHAT-051", "chat.session", f"{TURN}/{name}", GONE, "required", TURN)
        for name in ("role", "ts", "text")
    ),
    body_case("CHAT-051", "chat.session", "/more", 1, "additionalProperties"),
    body_case("CHAT-051", "chat.session", f"{TURN}/id", 1, "additionalProperties", TURN),
    body_case("CHAT-051", "chat.session", f"{TURN}/role", "system", "enum", f"{TURN}/role"),
    body_case("CHAT-051", "chat.session", f"{TURN}/text", "x" * 65536, None),
    body_case("CHAT-051", "chat.session", f"{TURN}/text", "x" * 65537, "maxLength", f"{TURN}/text"),
    body_case("CHAT-051", "chat.session", f"{TURN}/ts", "2026-11-04T10:00:00+01:00", "pattern", f"{TURN}/ts"),
    body_case("CHAT-051", "chat.session", "/turns", CHAT["turns"] * 1000, None),
    body_case("CHAT-051", "chat.session", "/turns", CHAT["turns"] * 1001, "maxItems", "/turns"),
    *(body_case("CH-034", "file.list", f"/{name}", GONE, "required") for name in FILES),
    body_case("CH-034", "file.list", f"{ENTRY}/path", "/a", "additionalProperties", ENTRY),
    body_case("CH-034", "file.list", f"{ENTRY}/kind", "link", "enum", f"{ENTRY}/kind"),
    *(
        body_case("CH-034", "file.list", f"{ENTRY}/{name}", GONE, "required", ENTRY)
        for name in ("name", "kind", "size")
    ),
    body_case("CH-034", "file.list", "/more", 1, "additionalProperties"),
    body_case("CH-034", "file.list", "/entries", FILES["entries"] * 4096, None),
    body_case("CH-034", "file.list", "/entries", FILES["entries"] * 4097, "maxItems", "/entries"),
    body_case("CH-034", "file.list", f"{ENTRY}/name", "", "minLength", f"{ENTRY}/name"),
    body_case("CH-034", "file.list", f"{ENTRY}/name", "n", None),
    body_case("CH-034", "file.list", f"{ENTRY}/name", "n" * 255, None),
    body_case("CH-034", "file.list", f"{ENTRY}/name", "n" * 256, "maxLength", f"{ENTRY}/name"),
    body_case("CHAT-033", "job.stream", f"{EVENT}/e", "x", None),
]
