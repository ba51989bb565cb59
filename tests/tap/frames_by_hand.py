"""Golden frames, written by hand from the contract; the signing key stands for a fixed seed."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

import lab
from lab.tap.content import ContentTap
from lab.tap.frames import FrameTap

CONTRACT = Path(lab.__file__).parent.parent / "contract" / "la-protocol-v2"

KEY = SigningKey(bytes(range(32)))
KEY_ID = "cp-1"
TENANT = "b0000000-0000-4000-8000-000000000001"
AGENT = "a0000000-0000-4000-8000-000000000001"
JOB = "c0000000-0000-4000-8000-000000000001"
REQUEST = "e0000000-0000-4000-8000-000000000001"
MSG = "f0000000-0000-4000-8000-000000000001"
NONCE = "AAAAAAAAAAAAAAAAAAAAAA"
EPOCH_MS = 1_767_225_600_000
TS = "2026-01-01T00:00:00.000Z"

CANARIES = {"prompt": "CANARY-prompt-5f1d", "answer": 'CANARY "quoted" \u00e9'}


def tap(revision: str = "2.3") -> FrameTap:
    """A tap that trusts the key and looks for the canaries."""
    keys = {KEY_ID: bytes(KEY.verify_key)}
    return FrameTap(CONTRACT, revision, TENANT, [AGENT], keys, CANARIES, EPOCH_MS)


def content_tap() -> ContentTap:
    """A tap for content with the same canaries."""
    return ContentTap(CONTRACT, "2.3", CANARIES)


def from_agent(type_: str, seq: int, payload: Any, **more: Any) -> dict[str, Any]:
    """A frame of the agent."""
    return {
        "schemaVersion": 2,
        "type": type_,
        "msgId": MSG,
        "seq": seq,
        "tenantId": TENANT,
        "agentId": AGENT,
        "workspaceId": "ws-1",
        "ts": TS,
        "payload": payload,
        **more,
    }


def from_gateway(type_: str, seq: int, payload: Any, **more: Any) -> dict[str, Any]:
    """A signed frame of the gateway."""
    return signed({**from_agent(type_, seq, payload), **more})


def signed(frame: dict[str, Any], params: str | None = None, key: SigningKey = KEY, **sig: Any) -> dict[str, Any]:
    """`frame` with paramsRaw and sig; `sig` replaces members of the signature before it is made."""
    params = json.dumps(frame["payload"]) if params is None else params
    members: dict[str, Any] = {
        "alg": "Ed25519",
        "keyId": KEY_ID,
        "tenantId": TENANT,
        "workspaceId": "ws-1",
        "timestamp": EPOCH_MS,
        "nonce": NONCE,
        **sig,
    }
    text = (
        f"VH-AGENT-SIG-V1\nWS\n{frame['type']}\n{members['tenantId']}\n{members['workspaceId']}\n"
        f"{members['timestamp']}\n{members['nonce']}\n{hashlib.sha256(params.encode()).hexdigest()}"
    )
    signature = base64.urlsafe_b64encode(key.sign(text.encode()).signature).decode().rstrip("=")
    return {**frame, "paramsRaw": params, "sig": {**members, "signature": signature}}


def ready() -> dict[str, Any]:
    """ready of a new session."""
    limits = {"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30}
    return from_gateway("ready", 0, {"sessionId": MSG, "resumed": False, "peerLastSeq": 0, "limits": limits})


def assign(text: str = "why?") -> dict[str, Any]:
    """job.assign of a chat."""
    inputs = [{"inline": text, "transient": True}]
    return from_gateway("job.assign", 1, {"jobId": JOB, "kind": "chat", "inputs": inputs, "llm": {"alias": "m"}})


def ask(kind: str, ref: str, seq: int = 2, request_id: str = REQUEST) -> dict[str, Any]:
    """content.request."""
    return from_gateway("content.request", seq, {"kind": kind, "ref": ref}, requestId=request_id)


def chunks(body: bytes, size: int = 32768, request_id: str = REQUEST, seq: int = 1) -> list[dict[str, Any]]:
    """The content.response frames of a body."""
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    return [
        from_agent(
            "content.response",
            seq + index,
            {
                "status": "ok",
                "contentType": "application/json",
                "encoding": "base64",
                "data": base64.b64encode(part).decode(),
                "byteLength": len(part),
                "totalBytes": len(body),
            },
            requestId=request_id,
            chunk={"index": index, "total": len(parts), "last": index == len(parts) - 1},
        )
        for index, part in enumerate(parts)
    ]
