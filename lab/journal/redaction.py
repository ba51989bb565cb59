"""What of a frame's payload may stand in a journal: listed members of a known form; all else as digests.

The list is closed: a member is kept by name and by form, so that a new member, a text in the place of an
identifier, or content in the name of a member can never be written down (SEC-012).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from lab.journal.events import Digest, digest

UNKNOWN = "*"
"""The member under which the digest of all unlisted members stands; no member of the protocol has this name."""

LONGEST_LIST = 64
"""A longer list stands as one digest."""

Keep = Callable[[object], object]
"""Gives what stands in the journal for a value: itself, a part of it, or a digest."""

JsonValue = Any


def redact_payload(type_name: str | None, payload: JsonValue) -> Mapping[str, JsonValue]:
    """The part of a frame's payload that may be written down; content, secrets and unlisted members as digests.

    Never raises; a payload that is no object, and any payload of an unlisted type, becomes one digest.
    """
    members = _PAYLOADS.get(type_name or "")
    if members is None or not isinstance(payload, dict):
        return {} if payload is None or payload == {} else {UNKNOWN: digest_of("payload", payload)}
    kept = members(payload)
    return kept if isinstance(kept, dict) else {UNKNOWN: digest_of("payload", payload)}


def digest_of(kind: str, value: JsonValue) -> Digest:
    """The digest of a text, or of the canonical JSON text of any other value."""
    if isinstance(value, str):
        return digest(kind, value)
    return digest(kind, json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True))


def hide(value: JsonValue, found: Callable[[str], bool]) -> JsonValue:
    """`value` with a digest in place of each text that `found` says must not be written down."""
    if isinstance(value, str):
        return digest("hidden", value) if found(value) else value
    if isinstance(value, dict):
        return {name: hide(member, found) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return tuple(hide(item, found) for item in value)
    return value


def _form(kind: str, pattern: str) -> Keep:
    matches = re.compile(pattern).fullmatch

    def keep(value: object) -> object:
        return value if isinstance(value, str) and matches(value) else digest_of(kind, value)

    return keep


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return digest_of("number", value)
    return value if -_LARGEST <= value <= _LARGEST else digest_of("number", value)


def _flag(value: object) -> object:
    return value if isinstance(value, bool) else digest_of("flag", value)


def _hidden(kind: str) -> Keep:
    return lambda value: digest_of(kind, value)


def _listed(kind: str, item: Keep) -> Keep:
    def keep(value: object) -> object:
        if not isinstance(value, list) or len(value) > LONGEST_LIST:
            return digest_of(kind, value)
        return tuple(item(element) for element in value)

    return keep


def _members(kind: str, /, **members: Keep) -> Keep:
    def keep(value: object) -> object:
        if not isinstance(value, dict):
            return digest_of(kind, value)
        kept = {name: rule(value[name]) for name, rule in members.items() if name in value}
        other = {name: member for name, member in value.items() if name not in members}
        if other:
            kept[UNKNOWN] = digest_of("unlisted", other)
        return kept

    return keep


_LARGEST = 2**53

# Identifiers: no capitals and no blanks, so that neither prose nor a usual key or token has their form.
_uuid = _form("uuid", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_id = _form("id", r"[a-z0-9][a-z0-9._:-]{0,47}")
_token = _form("token", r"[a-z][a-z0-9_.-]{0,31}")
_hash = _form("hash", r"[0-9a-f]{40}|[0-9a-f]{64}")
_time = _form("time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_version = _form("version", r"\d{1,5}(\.\d{1,5}){0,3}([-+.][a-z0-9.]{1,16})?")
_capabilities = _listed("capabilities", _token)
_media_type = _form("media-type", r"application/octet-stream|application/json|text/plain")

_JOB_EVENT = _members(
    "payload",
    jobId=_uuid,
    state=_token,
    phase=_token,
    iteration=_number,
    filesChanged=_number,
    costMicros=_number,
    tokensIn=_number,
    tokensOut=_number,
    terminal=_flag,
)

_PAYLOADS: Mapping[str, Keep] = {
    "register": _members(
        "payload",
        protocol=_number,
        version=_version,
        capabilities=_capabilities,
        signatureMode=_token,
        workspaces=_listed("workspaces", _members("workspace", workspaceId=_id, pathSha256=_hash)),
        resume=_members("resume", sessionId=_uuid, lastRecvSeq=_number),
    ),
    "hello": _members(
        "payload",
        signatureMode=_token,
        capabilities=_capabilities,
        graphify=_members("graphify", state=_token),
        disk=_members("disk", freeBytes=_number),
        queue=_members("queue", depth=_number),
        clock=_members("clock", utc=_time),
    ),
    "ready": _members(
        "payload",
        sessionId=_uuid,
        resumed=_flag,
        peerLastSeq=_number,
        limits=_members(
            "limits",
            maxFrameBytes=_number,
            chunkRawBytes=_number,
            maxChunks=_number,
            ackTimeoutMs=_number,
            maxRetransmissions=_number,
            heartbeatSeconds=_number,
        ),
        capabilities=_capabilities,
    ),
    "ack": _members("payload", status=_token, ackSeq=_number, ackMsgId=_uuid, errorCode=_token),
    "error": _members(
        "payload", code=_token, retryable=_flag, detail=_hidden("detail"), refMsgId=_uuid, refSeq=_number
    ),
    "heartbeat": _members("payload", state=_token, jobsRunning=_number, queueDepth=_number),
    "job.assign": _members(
        "payload",
        jobId=_uuid,
        kind=_token,
        incidentRef=_members("incidentRef", id=_id),
        workspaceId=_id,
        repoRef=_members("repoRef", repoId=_id, branch=_hidden("branch")),
        inputs=_listed(
            "inputs", _members("input", inline=_hidden("inline"), transient=_flag, ref=_hidden("ref"), kind=_token)
        ),
        llm=_members("llm", alias=_id),
        options=_members("options", conversationId=_uuid),
    ),
    "job.cancel": _members("payload", jobId=_uuid, reason=_token),
    "job.event": _JOB_EVENT,
    "job.result": _members(
        "payload",
        jobId=_uuid,
        outcome=_token,
        errorCode=_token,
        prUrl=_hidden("prUrl"),
        branch=_hidden("branch"),
        commitSha=_hash,
        filesChangedCount=_number,
        diffSha256=_hash,
        tests=_members("tests", passed=_number, failed=_number, skipped=_number),
    ),
    "approval.decision": _members(
        "payload", approvalId=_id, jobId=_uuid, decision=_token, token=_hidden("vhapr1-token")
    ),
    "content.request": _members("payload", kind=_token, ref=_hidden("ref"), maxBytes=_number),
    "content.response": _members(
        "payload",
        status=_token,
        contentType=_media_type,
        encoding=_token,
        data=_hidden("data"),
        byteLength=_number,
        totalBytes=_number,
        errorCode=_token,
        sha256=_hash,
    ),
    "webhook.forward": _members(
        "payload", source=_token, event=_id, contentType=_media_type, bodyB64=_hidden("bodyB64"), transient=_flag
    ),
    "incident.candidate": _members(
        "payload",
        fingerprint=_hash,
        level=_token,
        count=_number,
        service=_id,
        firstSeen=_time,
        lastSeen=_time,
        sizeBytes=_number,
        modelAlias=_id,
    ),
    "audit.event": _members(
        "payload",
        code=_token,
        at=_time,
        jobId=_id,
        workspaceId=_id,
        approvalId=_id,
        incidentId=_id,
        requestId=_id,
        runId=_id,
        ruleId=_id,
        alias=_id,
        actionType=_token,
        decision=_token,
        mode=_token,
        errorCode=_token,
        phase=_token,
        count=_number,
    ),
    "alert": _members("payload", kind=_token, severity=_token, count=_number),
    "llm.key": _members("payload", alias=_id, provider=_token, key=_hidden("llm-key"), expiresAt=_time),
    "scan.upload": _members("payload", scanId=_id, signedPutUrl=_hidden("signedPutUrl"), expiresAt=_time),
    "scan.uploaded": _members("payload", scanId=_id, status=_token, sha256=_hash, byteCount=_number, errorCode=_token),
    "log.stats": _members(
        "payload",
        windowSeconds=_number,
        counts=_members("counts", debug=_number, info=_number, warn=_number, error=_number, fatal=_number),
    ),
    "config.update": _members("payload", revision=_number, values=_hidden("values")),
    "policy.check": _members(
        "payload",
        jobId=_uuid,
        actionType=_token,
        paramsSha256=_hash,
        targetSha256=_hash,
        ruleId=_id,
        toolId=_id,
    ),
    "policy.decision": _members("payload", decision=_token, approvalId=_id, reasonCode=_token),
}
