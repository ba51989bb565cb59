"""Frames that hold under the newest contract: for each type a minimal one, a full one, and more where shapes differ.

Values are fixed. The sig of a signed type has the right form and signs nothing; its paramsRaw repeats the payload.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

Frame = dict[str, Any]

GONE = object()
"""The value that makes `altered` take a member out."""

TENANT = "tenant-1"
WORKSPACE = "ws-1"
AGENT = "0a0a0a0a-0000-4000-8000-00000000000a"
JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
SESSION = "0c0c0c0c-0000-4000-8000-00000000000c"
REQUEST = "0d0d0d0d-0000-4000-8000-00000000000d"
CONVERSATION = "0e0e0e0e-0000-4000-8000-00000000000e"
MESSAGE = "0f0f0f0f-0000-4000-8000-00000000000f"
TS = "2026-11-04T10:00:00.000Z"
DIGEST = "5e" * 32
CURSOR = "c" * 43
SECRET_NAME = "a-name-that-the-peer-chose"
MAX_INTEGER = 9007199254740991
FULL_CHUNK = base64.b64encode(bytes(32768)).decode()

SIG: Frame = {
    "alg": "Ed25519",
    "keyId": "key-1",
    "tenantId": TENANT,
    "workspaceId": WORKSPACE,
    "timestamp": 1793786400000,
    "nonce": "n" * 22,
    "signature": "s" * 85 + "A",
}
CAPABILITIES = ["job.assign", "job.options", "policy.check", "job.chat", "job.inline.16k"]
LIMITS = {"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30}
MORE_LIMITS = {"maxFrameBytes": 49152, "maxRetransmissions": 3}
COUNTS = {"debug": 0, "info": 4, "warn": 3, "error": 2, "fatal": 1}
TESTS = {"passed": 3, "failed": 0, "skipped": 1}
REGISTER = {
    "protocol": 2,
    "version": "1.4.0",
    "capabilities": CAPABILITIES,
    "signatureMode": "enforce",
    "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": DIGEST}],
}
CHUNK_OF_TEXT = {
    "status": "ok",
    "contentType": "application/json",
    "encoding": "base64",
    "data": "e30=",
    "byteLength": 2,
    "totalBytes": 2,
}

_PAYLOADS: dict[str, list[Frame]] = {
    "ack": [
        {"status": "accepted", "ackSeq": 1, "ackMsgId": MESSAGE},
        {"status": "rejected", "ackSeq": MAX_INTEGER, "ackMsgId": MESSAGE, "errorCode": "protocol_unsupported"},
        {"status": "duplicate", "ackSeq": 1, "ackMsgId": MESSAGE},
    ],
    "alert": [{"kind": "disk_low", "severity": "info"}, {"kind": "disk_low", "severity": "critical", "count": 3}],
    "approval.decision": [
        {"approvalId": "ap-1", "jobId": JOB, "decision": "approve", "token": "vhapr1.a.b"},
        {"approvalId": "ap-1", "jobId": JOB, "decision": "deny", "token": "vhapr1." + "a" * 2044 + "." + "b" * 2044},
    ],
    "audit.event": [
        {"code": "job_refused_busy", "at": TS},
        {
            "code": "chat_probe_negative",
            "at": TS,
            **dict.fromkeys(("jobId", "workspaceId", "approvalId", "incidentId"), "id-1"),
            **dict.fromkeys(("requestId", "runId", "ruleId", "alias"), "id-2"),
            **dict.fromkeys(("actionType", "decision", "mode", "errorCode", "phase"), "word"),
            "count": 2,
        },
    ],
    "config.update": [
        {"revision": 0, "values": {}},
        {"revision": 7, "values": {"level": "info", "ratio": 0.5, "verbose": True}},
    ],
    "content.request": [
        {"kind": "job.stream", "ref": JOB},
        {"kind": "file.list", "ref": CURSOR, "maxBytes": 2097152},
    ],
    "content.response": [
        CHUNK_OF_TEXT,
        {
            "status": "ok",
            "contentType": "application/octet-stream",
            "encoding": "base64",
            "data": FULL_CHUNK,
            "byteLength": 32768,
            "totalBytes": 65536,
            "sha256": DIGEST,
        },
        {"status": "not_found", "errorCode": "internal", "encoding": "base64", "data": "", "byteLength": 0},
    ],
    "error": [
        {"code": "internal", "retryable": True},
        {"code": "seq_gap", "retryable": False, "detail": "d" * 200, "refMsgId": MESSAGE, "refSeq": 9},
    ],
    "heartbeat": [{}, {"state": "busy", "jobsRunning": 1, "queueDepth": 16}],
    "hello": [
        {"signatureMode": "off"},
        {
            "signatureMode": "enforce",
            "capabilities": CAPABILITIES,
            "graphify": {"state": "ready"},
            "disk": {"freeBytes": MAX_INTEGER},
            "queue": {"depth": 0},
            "clock": {"utc": TS},
        },
    ],
    "incident.candidate": [
        {"fingerprint": DIGEST, "level": "error", "count": 1},
        {
            "fingerprint": DIGEST,
            "level": "fatal",
            "count": 12,
            "service": "checkout",
            "firstSeen": TS,
            "lastSeen": TS,
            "sizeBytes": 4096,
            "modelAlias": "default",
        },
    ],
    "job.assign": [
        {"jobId": JOB, "kind": "fix", "inputs": [], "llm": {"alias": "default"}},
        {
            "jobId": JOB,
            "kind": "chat",
            "incidentRef": {"id": "inc-1"},
            "workspaceId": WORKSPACE,
            "repoRef": {"repoId": "team/shop", "branch": "main"},
            "inputs": [
                {"inline": "a" * 16384, "transient": True},
                {"ref": CURSOR, "kind": "log.excerpt"},
                {"ref": JOB},
            ],
            "llm": {"alias": "default"},
            "options": {"conversationId": CONVERSATION, "dryRun": False, "budget": 1.5, "mode": "quick"},
        },
        {"jobId": JOB, "kind": "quality", "inputs": [{"ref": CURSOR}]},
    ],
    "job.cancel": [{"jobId": JOB}, {"jobId": JOB, "reason": "user"}],
    "job.event": [
        {"jobId": JOB, "state": "queued"},
        {
            "jobId": JOB,
            "state": "waiting_approval",
            "phase": "context",
            "iteration": 2,
            "filesChanged": 3,
            "costMicros": 4,
            "tokensIn": 5,
            "tokensOut": 6,
        },
    ],
    "job.result": [
        {"jobId": JOB, "outcome": "no_change"},
        {
            "jobId": JOB,
            "outcome": "pr_opened",
            "errorCode": "unknown",
            "prUrl": "https://example.test/pr/1",
            "branch": "fix/checkout",
            "commitSha": "ab" * 20,
            "filesChangedCount": 2,
            "diffSha256": DIGEST,
            "tests": TESTS,
        },
    ],
    "llm.key": [
        {"alias": "default", "provider": "acme", "key": "k", "expiresAt": TS},
        {"alias": "default", "provider": "acme", "key": "k" * 512, "expiresAt": TS},
    ],
    "log.stats": [{"windowSeconds": 60, "counts": {}}, {"windowSeconds": 60, "counts": COUNTS}],
    "policy.check": [
        {"jobId": JOB, "actionType": "run_command"},
        {
            "jobId": JOB,
            "actionType": "run_command",
            "paramsSha256": DIGEST,
            "targetSha256": DIGEST,
            "ruleId": "rule-1",
            "toolId": "tool-1",
        },
    ],
    "policy.decision": [
        {"decision": "allow"},
        {"decision": "approval", "approvalId": "ap-1", "reasonCode": "needs_review"},
        {"decision": "deny", "reasonCode": "outside_scope"},
    ],
    "ready": [
        {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "limits": LIMITS},
        {
            "sessionId": SESSION,
            "resumed": True,
            "peerLastSeq": 7,
            "limits": {**LIMITS, **MORE_LIMITS},
            "capabilities": CAPABILITIES,
        },
    ],
    "register": [
        {**REGISTER, "capabilities": []},
        {**REGISTER, "resume": {"sessionId": SESSION, "lastRecvSeq": 4}},
    ],
    "scan.upload": [
        {"scanId": "scan-1", "signedPutUrl": "https://store.test/a?sig=b"},
        {"scanId": "scan-1", "signedPutUrl": "https://" + "u" * 4088, "expiresAt": TS},
    ],
    "scan.uploaded": [
        {"scanId": "scan-1", "status": "uploaded", "sha256": DIGEST, "byteCount": 9},
        {"scanId": "scan-1", "status": "failed", "errorCode": "timeout", "sha256": DIGEST, "byteCount": 0},
        {"scanId": "scan-1", "status": "failed"},
    ],
    "webhook.forward": [
        {"bodyB64": "", "transient": True},
        {
            "source": "forge",
            "event": "push",
            "contentType": "application/json",
            "bodyB64": "A" * 16384,
            "transient": True,
        },
    ],
}

_CONTROL = frozenset({"ack", "error", "hello", "ready", "register"})
_SIGNED = frozenset(
    {
        "approval.decision",
        "config.update",
        "content.request",
        "job.assign",
        "job.cancel",
        "llm.key",
        "policy.decision",
        "ready",
        "scan.upload",
        "webhook.forward",
    }
)
_ASKS_OR_ANSWERS = frozenset({"content.request", "content.response", "policy.check", "policy.decision"})


def examples(type_name: str) -> list[Frame]:
    """Fresh valid frames of one type: the first is minimal, the second has every member the type may have."""
    return [_frame(type_name, position, payload) for position, payload in enumerate(_PAYLOADS[type_name])]


def example_types() -> list[str]:
    """The names of all types that have examples, sorted."""
    return sorted(_PAYLOADS)


def altered(frame: Frame, pointer: str, value: object) -> Frame:
    """A copy of `frame` with the member or item at the JSON pointer set to `value`, added, or taken out with GONE."""
    copied = copy.deepcopy(frame)
    *parents, last = pointer.removeprefix("/").split("/")
    target: Any = copied
    for parent in parents:
        target = target[int(parent) if isinstance(target, list) else parent]
    key = int(last) if isinstance(target, list) else last
    if value is GONE:
        del target[key]
    else:
        target[key] = value
    return copied


def _frame(type_name: str, position: int, payload: Frame) -> Frame:
    frame: Frame = {
        "schemaVersion": 2,
        "type": type_name,
        "msgId": MESSAGE,
        "seq": 0 if type_name in _CONTROL else 1,
        "tenantId": TENANT,
        "workspaceId": WORKSPACE,
        "ts": TS,
        "payload": copy.deepcopy(payload),
    }
    full = position == 1
    if full or type_name not in _SIGNED:
        frame["agentId"] = AGENT
    if full:
        frame["ack"] = 3
    if full or type_name in _ASKS_OR_ANSWERS:
        frame["requestId"] = REQUEST
    if type_name == "content.response" or (full and type_name == "webhook.forward"):
        frame["chunk"] = {"index": 0, "total": 2 if full else 1, "last": not full}
    if type_name in _SIGNED:
        frame["paramsRaw"] = json.dumps(payload, separators=(",", ":"))
        frame["sig"] = copy.deepcopy(SIG)
    return frame
