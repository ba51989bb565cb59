"""The witness of frames: from raw bytes to a journal event with every fact that needs the bytes.

Nothing of lab.protocol stands behind it, so that a defect of that core cannot agree with itself here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.journal.events import Frame
from lab.journal.redaction import hide, redact_payload
from lab.tap.approvals import TokenTap
from lab.tap.canaries import ENCODED_MEMBERS, CanarySearch, decoded_base64
from lab.tap.revisions import revisions_of
from lab.tap.schemas import Schemas, schemas_of
from lab.tap.signatures import SignatureTap
from lab.tap.text import LARGEST_TEXT, NoJson, strict_json

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LARGEST = 2**53 - 1
_LIVENESS = ({"type": "ping"}, {"type": "pong"})


class FrameTap:
    """Judges each message of a gateway's sockets. Pure: the same message and time give the same event."""

    def __init__(
        self,
        contract_folder: Path,
        revision: str,
        tenant_id: str,
        agent_ids: Collection[str],
        public_keys: Mapping[str, bytes],
        canaries: Mapping[str, str],
        epoch_ms: int,
    ) -> None:
        """Read the contract once; a folder that cannot be used raises `ContractError`."""
        self._schemas = schemas_of(contract_folder, revision)
        self._revisions = revisions_of(contract_folder)
        self._tenant_id = tenant_id
        self._agent_ids = frozenset(agent_ids)
        self._signatures = SignatureTap(public_keys)
        self._tokens = TokenTap(public_keys, tenant_id)
        self._canaries = CanarySearch(canaries)
        self._epoch_ms = epoch_ms

    def canaries_in(self, text: str) -> tuple[str, ...]:
        """The ids of the canaries that stand in a text beside the frames, such as a request's target."""
        return tuple(self._canaries.ids(text))

    @property
    def canaries(self) -> CanarySearch:
        """What it looks for in frames."""
        return self._canaries

    def judge(self, conn: str, direction: str, raw: str | bytes, now: float) -> Frame:
        """The event for `raw` at lab time `now` in seconds; never raises, whatever the bytes are.

        A binary message is no frame (WS-036); its bytes are searched for canaries all the same.
        """
        content = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
        text = raw if isinstance(raw, str) else raw[:LARGEST_TEXT].decode("utf-8", "replace")
        sha256 = hashlib.sha256(content).hexdigest()
        try:
            if isinstance(raw, bytes):
                raise NoJson("binary message")
            frame = strict_json(text)
            if not isinstance(frame, dict):
                raise NoJson("not an object")
        except NoJson as reason:
            facts: dict[str, Any] = {"parse": str(reason)}
            if found := self._canaries.in_text(text):
                facts["canaries"] = found
            return Frame(conn, direction, len(content), sha256, facts=facts)
        if frame in _LIVENESS:
            # WS-052: the JSON forms of ping and pong are no frames either
            return Frame(conn, direction, len(content), sha256, facts={"parse": "ok", "ping": frame["type"]})
        return self._frame(conn, direction, len(content), sha256, text, frame, now)

    def _frame(
        self, conn: str, direction: str, size: int, sha256: str, text: str, frame: dict[str, Any], now: float
    ) -> Frame:
        type_name = _type(frame.get("type"), self._schemas)
        canaries = self._canaries.in_frame(text, frame)
        payload = redact_payload(type_name, frame.get("payload"))
        return Frame(
            conn,
            direction,
            size,
            sha256,
            version=_count(frame.get("schemaVersion")),
            type=type_name,
            msg_id=_form(_UUID, frame.get("msgId")),
            seq=_count(frame.get("seq")),
            ack=_count(frame.get("ack")),
            request_id=_form(_UUID, frame.get("requestId")),
            tenant_id=self._id(frame.get("tenantId"), canaries),
            agent_id=_form(_UUID, frame.get("agentId")),
            workspace_id=self._id(frame.get("workspaceId"), canaries),
            chunk=_chunk(frame.get("chunk")),
            payload=hide(payload, self._canaries.hit) if canaries else payload,
            facts=self._facts(direction, size, type_name, frame, canaries, now),
        )

    def _id(self, value: object, canaries: tuple[dict[str, str], ...]) -> str | None:
        text = _form(_ID, value)
        return None if text is None or (canaries and self._canaries.hit(text)) else text

    def _facts(
        self,
        direction: str,
        size: int,
        type_name: str | None,
        frame: dict[str, Any],
        canaries: tuple[dict[str, str], ...],
        now: float,
    ) -> dict[str, Any]:
        rule = self._schemas.types.get(type_name) if type_name else None
        facts: dict[str, Any] = {
            "parse": "ok",
            # WS-019, WS-020: the bytes of the message as sent
            "size": "ok" if size <= self._schemas.max_frame_bytes else "frame_too_large",
            "type": "ok" if rule else "unknown_type",
            "schema": self._schemas.judge(type_name or "envelope", frame),
            "direction": None if rule is None else rule.direction in ("both", direction),
            # WS-008: the tenant of the authenticated connection
            "tenant": "ok" if frame.get("tenantId") == self._tenant_id else "tenant_mismatch",
            "agent": self._agent(frame, direction, type_name),
            "control": None if rule is None else rule.control,
            "signature": None,
        }
        # CP-018: whether the other side's revision takes it
        facts |= self._revisions.facts(frame)
        if "schemaVersion" not in frame:
            # V1-002
            facts["v1"] = True
        if rule is not None and rule.signed:
            facts["signature"] = self._signatures.judge(frame, self._epoch_ms + int(now * 1000))
        if canaries:
            facts["canaries"] = canaries
        decoded = _decoded(type_name, frame.get("payload"))
        if decoded is not None:
            facts["decoded"] = decoded
        if type_name in ("register", "hello"):
            skew = _skew(frame, self._epoch_ms + int(now * 1000))
            if skew is not None:
                facts["skewMs"] = skew
        elif type_name == "job.assign":
            facts["inlineChars"] = _longest_inline(frame.get("payload"))
        elif type_name == "approval.decision":
            facts["token"] = self._tokens.judge(frame.get("payload"), self._epoch_ms + int(now * 1000))
        return facts

    def _agent(self, frame: Mapping[str, Any], direction: str, type_name: str | None) -> str:
        # WS-009, WS-010: due on all from the agent, and on ack and error of both sides
        due = direction == "la-to-cp" or type_name in ("ack", "error")
        named = frame.get("agentId")
        if named is None:
            return "agent_mismatch" if due else "ok"
        return "ok" if isinstance(named, str) and named in self._agent_ids else "agent_mismatch"


def _type(value: object, schemas: Schemas) -> str | None:
    """The type by name if the contract has it: any other name may be content."""
    return value if isinstance(value, str) and value in schemas.types else None


def _form(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _count(value: object) -> int | None:
    """A count, written as an integer of any JSON form."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        return None
    return int(value) if value == int(value) else None


def _chunk(value: object) -> dict[str, int | bool] | None:
    if not isinstance(value, dict):
        return None
    index, total, last = _count(value.get("index")), _count(value.get("total")), value.get("last")
    if index is None or total is None or not isinstance(last, bool):
        return None
    return {"index": index, "total": total, "last": last}


def _decoded(type_name: str | None, payload: object) -> int | None:
    member = ENCODED_MEMBERS.get(type_name or "")
    if member is None or not isinstance(payload, dict):
        return None
    decoded = decoded_base64(payload.get(member))
    return None if decoded is None else len(decoded)


def _skew(frame: Mapping[str, Any], wall_ms: int) -> int | None:
    """How far the wall clock is ahead of a frame's own times, the farther of them (HS-012); None without any."""
    payload = frame.get("payload")
    clock = payload.get("clock") if isinstance(payload, dict) else None
    times = (frame.get("ts"), clock.get("utc") if isinstance(clock, dict) else None)
    skews = [wall_ms - told for told in map(_milliseconds, times) if told is not None]
    return max(skews, key=abs, default=None)


def _milliseconds(value: object) -> int | None:
    """Milliseconds since 1970 of a time in UTC; None for any other value."""
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return None
    whole, _, part = value.removesuffix("Z").partition(".")
    try:
        seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    except ValueError:
        return None
    return seconds * 1000 + int((part + "000")[:3])


def _longest_inline(payload: object) -> int:
    inputs = payload.get("inputs") if isinstance(payload, dict) else None
    texts = [item.get("inline") for item in inputs if isinstance(item, dict)] if isinstance(inputs, list) else []
    return max((len(text) for text in texts if isinstance(text, str)), default=0)
