"""A Local Agent's frames, made by hand, so that a client spends nothing on a protocol core."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

WORKSPACE = "ws-main"
CAPABILITIES = ["job.assign", "job.options", "job.chat", "job.inline.16k"]
PAGE = json.dumps(
    {
        "events": [{"i": i, "e": '{"type":"text","text":"a price rule that the catalogue lacks"}'} for i in range(5)],
        "nextRef": "cursor-of-forty-three-characters-as-they-are",
        "done": False,
    },
    separators=(",", ":"),
).encode()
"""A page of a job's stream, of the size that makes a frame of about 1 KB."""


class HandMade:
    """Frames of one agent as text, with their numbers counted."""

    def __init__(self, tenant: str, agent: str) -> None:
        self._tenant, self._agent = tenant, agent
        self._made = self._seq = 0
        # Only register and hello are held against the gateway's clock.
        self._ts = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _frame(self, type_name: str, payload: dict[str, Any], seq: int, more: dict[str, Any]) -> str:
        self._made += 1
        members = {
            "schemaVersion": 2,
            "type": type_name,
            "msgId": f"aaaaaaaa-0000-4000-8000-{self._made:012x}",
            "seq": seq,
            "tenantId": self._tenant,
            "agentId": self._agent,
            "workspaceId": WORKSPACE,
            "ts": self._ts,
            **more,
            "payload": payload,
        }
        return json.dumps(members, separators=(",", ":"))

    def register(self) -> str:
        """The first handshake frame."""
        payload = {
            "protocol": 2,
            "version": "1.0.0",
            "capabilities": CAPABILITIES,
            "signatureMode": "enforce",
            "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": "5e" * 32}],
        }
        return self._frame("register", payload, 0, {})

    def hello(self) -> str:
        """The second handshake frame."""
        return self._frame("hello", {"signatureMode": "enforce", "capabilities": CAPABILITIES}, 0, {})

    def content(self) -> str:
        """A data frame of about 1 KB: the only chunk of a content.response."""
        self._seq += 1
        payload = {
            "status": "ok",
            "contentType": "application/json",
            "encoding": "base64",
            "data": base64.b64encode(PAGE).decode(),
            "byteLength": len(PAGE),
            "totalBytes": len(PAGE),
        }
        more = {
            "requestId": f"bbbbbbbb-0000-4000-8000-{self._seq:012x}",
            "chunk": {"index": 0, "total": 1, "last": True},
        }
        return self._frame("content.response", payload, self._seq, more)

    def heartbeat(self) -> str:
        """A sign of life."""
        self._seq += 1
        return self._frame("heartbeat", {"state": "idle"}, self._seq, {})
