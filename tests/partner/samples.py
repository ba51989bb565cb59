"""Answers of the partner API that keep its contract."""

from __future__ import annotations

from typing import Any

NOW = "2026-01-01T00:00:00.000Z"
COST = "0.033510000000"

TIMINGS: dict[str, Any] = {
    "complete": True,
    **dict.fromkeys(
        (
            *("queuedMs", "admissionMs", "lockMs", "agentMs", "promptMs", "toolSetupMs", "workerMs"),
            *("classificationMs", "setupMs", "modelMs", "toolMs", "historyMs", "otherMs", "totalMs"),
        ),
        0.5,
    ),
    "setupMs": 3,
    "totalMs": 6,
    "iterations": [{"wallMs": 1, "modelMs": 1, "firstTokenMs": None, "toolMs": 0, "tools": [{"durationMs": 1}]}],
}
USAGE: dict[str, Any] = {
    "model": "m",
    "inputTokens": 9120,
    "outputTokens": 410,
    "cacheReadTokens": 0,
    "cacheWriteTokens": 0,
    "costUsd": COST,
    "priceSide": "cost",
    "kinds": [{"kind": "llm_tokens", "costUsd": COST}],
}
RUN: dict[str, Any] = {
    "runId": "r",
    "conversationId": "c",
    "turnId": "t",
    "status": "completed",
    "reason": None,
    "createdAt": NOW,
    "toolErrors": [{"toolCallId": "call_1", "name": "catalog_get", "errorCode": "TOOL_FAILED"}],
    "timings": TIMINGS,
    "usage": USAGE,
}
FILE: dict[str, Any] = {
    "id": "f",
    "kind": "text",
    "mimeType": "text/plain",
    "name": "x.txt",
    "size": 3,
    "createdAt": NOW,
}
ACTOR = {"externalUserId": "u", "externalTeamId": "t"}
PUT: dict[str, Any] = {**ACTOR, "sourceRevision": 0, "role": "owner", "active": True, "validUntil": NOW}
ITEM: dict[str, Any] = {"id": "i", "turnId": "t", "text": "x", "createdAt": NOW, "attachments": []}

MEMBERSHIP: dict[str, Any] = {
    "actorId": "actor",
    "teamId": "team",
    "sourceRevision": 1,
    "role": "member",
    "subjectVersion": 1,
    "membershipVersion": 1,
    "active": True,
    "validUntil": "2026-01-01T00:04:00.000Z",
}
DESTINATION = "https://93.184.216.34/mcp"
CONVERSATION: dict[str, Any] = {
    "conversationId": "c",
    "actorId": "actor",
    "teamId": "team",
    "agentId": "agent",
    "mcp": {"serverId": "server", "destination": DESTINATION},
}


def wrapped(data: object) -> dict[str, Any]:
    """The data in the envelope of a success."""
    return {"success": True, "data": data}


def failure(code: str, **extra: object) -> dict[str, Any]:
    """The envelope of a failure."""
    return {"success": False, "error": {"code": code, "message": "m", **extra}}
