"""A Local Agent's frames, written by hand: plain dicts and JSON, nothing of the protocol core."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nacl.signing import VerifyKey

Members = dict[str, Any]
WORKSPACE = "ws-main"
CAPABILITIES = ("job.assign", "job.options", "job.chat", "job.inline.16k")


class HandAgent:
    """Makes frames and counts their numbers; `wall_ms` is its clock."""

    def __init__(self, tenant: str, agent: str, wall_ms: int, tag: str = "a") -> None:
        self.tenant, self.agent, self.wall_ms = tenant, agent, wall_ms
        self.tag = tag
        self.seq = 0
        self.made = 0

    def frame(self, type_name: str, payload: Mapping[str, Any], seq: int = 0, **more: Any) -> Members:
        self.made += 1
        moment = datetime.fromtimestamp(self.wall_ms / 1000, UTC)
        return {
            "schemaVersion": 2,
            "type": type_name,
            "msgId": f"{self.tag * 8}-0000-4000-8000-{self.made:012x}",
            "seq": seq,
            "tenantId": self.tenant,
            "agentId": self.agent,
            "workspaceId": WORKSPACE,
            "ts": moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.wall_ms % 1000:03d}Z",
            "payload": dict(payload),
            **more,
        }

    def register(
        self, capabilities: tuple[str, ...] = CAPABILITIES, resume: tuple[str, int] | None = None, **more: Any
    ) -> Members:
        payload: Members = {
            "protocol": 2,
            "version": "9.9.9",
            "capabilities": list(capabilities),
            "signatureMode": "enforce",
            "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": "5e" * 32}],
        }
        if resume is not None:
            payload["resume"] = {"sessionId": resume[0], "lastRecvSeq": resume[1]}
        return self.frame("register", {**payload, **more})

    def hello(self, capabilities: tuple[str, ...] = CAPABILITIES, mode: str = "enforce") -> Members:
        return self.frame("hello", {"signatureMode": mode, "capabilities": list(capabilities)})

    def data(self, type_name: str, payload: Mapping[str, Any], **more: Any) -> Members:
        self.seq += 1
        return self.frame(type_name, payload, self.seq, **more)

    def ack(self, of: Members, code: str | None = None) -> Members:
        payload = {"status": "accepted", "ackSeq": of["seq"], "ackMsgId": of["msgId"]}
        if code is not None:
            payload = {**payload, "status": "rejected", "errorCode": code}
        return self.frame("ack", payload)

    def heartbeat(self) -> Members:
        return self.data("heartbeat", {})

    def chunk(self, request_id: str, data: bytes, index: int = 0, total: int = 1, **payload: Any) -> Members:
        body = {
            "status": "ok",
            "contentType": "application/json",
            "encoding": "base64",
            "data": base64.b64encode(data).decode(),
            "byteLength": len(data),
            "totalBytes": total * len(data),
            **payload,
        }
        place = {"index": index, "total": total, "last": index == total - 1}
        return self.data("content.response", body, requestId=request_id, chunk=place)

    def failure(self, request_id: str, status: str, code: str = "internal") -> Members:
        body = {"status": status, "errorCode": code, "encoding": "base64", "data": "", "byteLength": 0}
        place = {"index": 0, "total": 1, "last": True}
        return self.data("content.response", body, requestId=request_id, chunk=place)


def text(frame: Mapping[str, Any]) -> str:
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False)


def holds(frame: Members, key: VerifyKey) -> bool:
    """Whether a frame's signature holds over the canonical text that SG-003 spells out; raises when it does not."""
    sig = frame["sig"]
    digest = hashlib.sha256(frame["paramsRaw"].encode()).hexdigest()
    lines = ["VH-AGENT-SIG-V1", "WS", frame["type"], frame["tenantId"], frame["workspaceId"]]
    canonical = "\n".join([*lines, str(sig["timestamp"]), sig["nonce"], digest])
    signature = base64.urlsafe_b64decode(sig["signature"] + "=" * (-len(sig["signature"]) % 4))
    key.verify(canonical.encode(), signature)
    bound = (sig["tenantId"], sig["workspaceId"]) == (frame["tenantId"], frame["workspaceId"])
    return bound and json.loads(frame["paramsRaw"]) == frame["payload"]
