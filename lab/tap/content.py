"""The witness of content: puts the chunks of an answer together and writes down facts about its body."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import eq
from pathlib import Path
from typing import Any

from lab.journal.events import BodyAnswered, Frame
from lab.tap.canaries import CanarySearch, decoded_base64
from lab.tap.schemas import schemas_of
from lab.tap.text import NoJson, strict_json

MOST_REQUESTS = 256
MOST_CHUNKS = 64
MOST_BYTES = 2 * 1024 * 1024
MOST_CURSORS = 65536
LONGEST_CURSOR = 128
"""Characters of a cursor that are looked at; a longer one breaks its schema."""
MOST_COMPARED = 256
"""A cursor is compared with so many of its job, the latest."""
MOST_FACTS = 1024
"""Events or turns of one body that are written down; a schema break says that there are more."""


@dataclass
class _Asked:
    """A content.request and what has come for it so far."""

    content: str
    ref: str
    job_id: str | None
    chunks: list[bytes] = field(default_factory=list)
    total: int | None = None
    size: int = 0
    over: bool = False


class ContentTap:
    """One for all connections of a gateway: a request and its chunks may lie on different ones (RS-015)."""

    def __init__(self, contract_folder: Path, revision: str, canaries: Mapping[str, str]) -> None:
        """Read the contract once; a folder that cannot be used raises `ContractError`."""
        self._schemas = schemas_of(contract_folder, revision)
        self._canaries = CanarySearch(canaries)
        self._asked: OrderedDict[str, _Asked] = OrderedDict()
        self._jobs: OrderedDict[str, str] = OrderedDict()
        """Job by the SHA-256 of a ref: the job's UUID, its conversation's, and each cursor handed out."""
        self._cursors: OrderedDict[str, deque[str]] = OrderedDict()
        """The latest cursors of a job, in clear: they never leave here."""

    def see(self, frame: Frame, raw: str | bytes) -> BodyAnswered | None:
        """Take in a judged frame that was delivered; the event when it completes a body.

        Copies, chunks that do not fit, and chunks of a request that nobody made change nothing.
        """
        if frame.facts.get("parse") != "ok" or frame.fate == "dropped":
            return None
        if frame.type == "job.assign":
            self._note_job(frame)
        elif frame.type == "content.request":
            self._note_request(frame, _payload(raw))
        elif frame.type == "content.response":
            return self._note_chunk(frame, _payload(raw))
        return None

    def _note_job(self, frame: Frame) -> None:
        job_id = frame.payload.get("jobId")
        if isinstance(job_id, str):
            conversation = (frame.payload.get("options") or {}).get("conversationId")
            for ref in (job_id, conversation):
                if isinstance(ref, str):
                    self._remember(_sha256(ref), job_id)

    def _note_request(self, frame: Frame, payload: Mapping[str, Any]) -> None:
        ref, content = payload.get("ref"), frame.payload.get("kind")
        if not isinstance(ref, str) or not isinstance(content, str) or not frame.request_id:
            return
        if frame.request_id in self._asked:
            return
        job_id = self._jobs.get(_sha256(ref))
        if job_id is None and content == "job.stream" and len(ref) == 36:
            # CHAT-035: the first ref of a stream is the job's own id
            job_id = ref
        self._asked[frame.request_id] = _Asked(content, _sha256(ref), job_id)
        if len(self._asked) > MOST_REQUESTS:
            self._asked.popitem(last=False)

    def _note_chunk(self, frame: Frame, payload: Mapping[str, Any]) -> BodyAnswered | None:
        asked, chunk = self._asked.get(frame.request_id or ""), frame.chunk
        data = decoded_base64(payload.get("data"))
        if asked is None or chunk is None or data is None or asked.over:
            return None
        # SQ-002: a copy has the index of a chunk that came already
        if chunk["index"] != len(asked.chunks) or asked.total not in (None, chunk["total"]):
            return None
        asked.total = chunk["total"]
        asked.chunks.append(data)
        asked.size += len(data)
        if len(asked.chunks) > MOST_CHUNKS or asked.size > MOST_BYTES:
            asked.over = True
            asked.chunks.clear()
            return None
        if not chunk["last"]:
            return None
        asked.over = True
        body = b"".join(asked.chunks)
        asked.chunks.clear()
        return self._answered(frame, asked, payload, body)

    def _answered(self, frame: Frame, asked: _Asked, payload: Mapping[str, Any], body: bytes) -> BodyAnswered:
        status = frame.payload.get("status")
        facts: dict[str, Any] = {}
        if status == "ok":
            facts["total"] = "ok" if payload.get("totalBytes") == len(body) else "differs"
            facts |= self._body_facts(asked, body)
        elif isinstance(frame.payload.get("errorCode"), str):
            facts["errorCode"] = frame.payload["errorCode"]
        return BodyAnswered(
            frame.conn,
            frame.request_id or "",
            asked.content,
            asked.ref,
            asked.job_id,
            status if isinstance(status, str) else "",
            len(body),
            hashlib.sha256(body).hexdigest(),
            facts,
        )

    def _body_facts(self, asked: _Asked, body: bytes) -> dict[str, Any]:
        found = self._canaries.ids_in_body(body)
        facts: dict[str, Any] = {"canaries": found} if found else {}
        if f"{asked.content}.body" not in _BODIES:
            return facts
        try:
            value = strict_json_body(body)
        except NoJson as reason:
            return facts | {"schema": {"keyword": str(reason), "path": ""}}
        facts["schema"] = self._schemas.judge(f"{asked.content}.body", value)
        if asked.content == "job.stream":
            facts |= self._stream_facts(asked, value)
        elif asked.content == "chat.session":
            facts |= _session_facts(value)
        return facts

    def _stream_facts(self, asked: _Asked, value: Any) -> dict[str, Any]:
        members = value if isinstance(value, dict) else {}
        events = [event for event in _list(members.get("events")) if isinstance(event, dict)]
        facts: dict[str, Any] = {
            "events": tuple({"i": _integer(event.get("i")), **_text(event.get("e"))} for event in events[:MOST_FACTS]),
            "done": members.get("done") is True,
        }
        cursor = members.get("nextRef")
        if isinstance(cursor, str):
            facts["next"] = _sha256(cursor)
            if asked.job_id is not None:
                facts |= self._likeness(asked.job_id, cursor)
                self._remember(facts["next"], asked.job_id)
        return facts

    def _likeness(self, job_id: str, cursor: str) -> dict[str, int]:
        """How much a new cursor has in common with the nearest of its job's (CHAT-046, SEC-018)."""
        earlier = self._cursors.setdefault(job_id, deque(maxlen=MOST_COMPARED))
        if len(self._cursors) > MOST_REQUESTS:
            self._cursors.popitem(last=False)
        cursor = cursor[:LONGEST_CURSOR]
        if cursor in earlier:
            return {}
        alike = max((sum(map(eq, cursor, other)) for other in earlier), default=None)
        earlier.append(cursor)
        return {} if alike is None else {"nextAlike": alike}

    def _remember(self, ref: str, job_id: str) -> None:
        self._jobs.setdefault(ref, job_id)
        if len(self._jobs) > MOST_CURSORS:
            self._jobs.popitem(last=False)


_BODIES = ("job.stream.body", "chat.session.body", "file.list.body")


def strict_json_body(body: bytes) -> Any:
    """The JSON value of a whole body, which may be longer than a frame; else raises `NoJson`."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoJson("not UTF-8") from error
    return strict_json(text, longest=MOST_BYTES)


def _payload(raw: str | bytes) -> Mapping[str, Any]:
    try:
        frame = strict_json(raw if isinstance(raw, str) else raw.decode("utf-8", "replace"))
    except NoJson:
        return {}
    payload = frame.get("payload") if isinstance(frame, dict) else None
    return payload if isinstance(payload, dict) else {}


def _session_facts(value: Any) -> dict[str, Any]:
    members = value if isinstance(value, dict) else {}
    turns = [turn for turn in _list(members.get("turns")) if isinstance(turn, dict)]
    return {
        "turns": tuple(
            {"role": turn.get("role") if turn.get("role") in ("user", "assistant") else None, **_text(turn.get("text"))}
            for turn in turns[:MOST_FACTS]
        ),
        "truncated": members.get("truncated") is True,
    }


def _text(value: object) -> dict[str, Any]:
    text = value if isinstance(value, str) else ""
    return {"sha256": _sha256(text), "chars": len(text)}


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
