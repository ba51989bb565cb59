"""One broken rule each: an example frame, the change that breaks it, and the keyword and place that are due."""

from __future__ import annotations

from typing import Any

import pytest

from lab.protocol.contract import SchemaBreak
from tests.protocol.frame_examples import CAPABILITIES, CURSOR, DIGEST, GONE, JOB, MAX_INTEGER, SECRET_NAME, SIG

UPPER_UUID = JOB.upper()


def case(reqs: str, type_name: str, pointer: str, value: object, keyword: str, path: str, example: int = 1) -> Any:
    label = f"{type_name}:{pointer}:{keyword}:{str(value)[:20]}"
    marks = [pytest.mark.req(*reqs.split())] if reqs else []
    return pytest.param(type_name, example, pointer, value, SchemaBreak(keyword, path), id=label, marks=marks)


WORKSPACE_RECORD = {"workspaceId": "ws-1", "pathSha256": DIGEST}
P = "/payload"
INPUT = "/payload/inputs/0"
BROKEN = [
    *(case("WS-002", "heartbeat", "/schemaVersion", value, "const", "/schemaVersion") for value in (1, 3, "2")),
    case("WS-003", "heartbeat", "/msgId", "message-1", "pattern", "/msgId"),
    case("WS-003", "heartbeat", "/msgId", 7, "type", "/msgId"),
    case("WS-004", "heartbeat", "/msgId", UPPER_UUID, "pattern", "/msgId"),
    case("WS-004", "heartbeat", "/msgId", JOB + "\n", "pattern", "/msgId"),
    case("WS-007", "heartbeat", "/requestId", UPPER_UUID, "pattern", "/requestId"),
    case("", "heartbeat", "/seq", MAX_INTEGER + 1, "maximum", "/seq"),
    case("", "heartbeat", "/seq", True, "type", "/seq"),
    case("", "heartbeat", "/ack", -1, "minimum", "/ack"),
    case("", "heartbeat", "/payload", [], "type", "/payload"),
    case("", "heartbeat", "/tenantId", "", "pattern", "/tenantId"),
    case("WS-013", "heartbeat", "/workspaceId", "a" * 129, "pattern", "/workspaceId"),
    case("WS-013", "heartbeat", "/workspaceId", "/home/me", "pattern", "/workspaceId"),
    case("WS-014 WS-015", "heartbeat", "/ts", "2026-11-04T10:00:00.000+01:00", "pattern", "/ts"),
    case("WS-015", "heartbeat", "/ts", "2026-11-04T10:00:00.0000000000Z", "pattern", "/ts"),
    case("WS-015", "heartbeat", "/ts", "2026-11-04T10:00:00.Z", "pattern", "/ts"),
    case("WS-015", "heartbeat", "/ts", "٢026-11-04T10:00:00Z", "pattern", "/ts"),
    case("WS-015", "heartbeat", "/ts", 1793786400000, "type", "/ts"),
    case("WS-016", "content.response", "/chunk/total", GONE, "required", "/chunk"),
    case("WS-016", "content.response", "/chunk/last", GONE, "required", "/chunk"),
    case("WS-016", "content.response", "/chunk/chunkNo", 0, "additionalProperties", "/chunk"),
    case("WS-016", "content.response", "/chunkNo", 0, "additionalProperties", ""),
    case("WS-016", "content.response", "/chunk/index", -1, "minimum", "/chunk/index"),
    case("", "content.response", "/chunk/total", 0, "minimum", "/chunk/total"),
    case("TY-022", "content.response", "/chunk", GONE, "required", ""),
    case("WS-007", "content.response", "/requestId", GONE, "required", ""),
    case("TY-021", "content.request", "/requestId", GONE, "required", ""),
    case("WS-083", "job.cancel", "/paramsRaw", "{", "minLength", "/paramsRaw"),
    case("WS-083", "job.cancel", "/paramsRaw", "a" * 49153, "maxLength", "/paramsRaw"),
    *(case("SG-004", "job.cancel", f"/sig/{name}", GONE, "required", "/sig") for name in SIG),
    case("SG-004", "job.cancel", "/sig/alg", "none", "const", "/sig/alg"),
    case("SG-004", "job.cancel", "/sig/nonce", "n" * 21, "pattern", "/sig/nonce"),
    case("SG-004", "job.cancel", "/sig/signature", "s" * 85 + "B", "pattern", "/sig/signature"),
    case("SG-004", "job.cancel", "/sig/timestamp", "soon", "anyOf", "/sig/timestamp"),
    case("SG-004", "job.cancel", "/sig/extra", 1, "additionalProperties", "/sig"),
    case("TY-001", "register", f"{P}/protocol", 1, "const", f"{P}/protocol"),
    *(
        case("TY-001 HS-003 HS-043", "register", f"{P}/{name}", GONE, "required", P)
        for name in ("protocol", "version", "capabilities", "signatureMode", "workspaces")
    ),
    case("HS-004", "register", f"{P}/workspaces/0/path", "/home", "additionalProperties", f"{P}/workspaces/0"),
    case(
        "HS-004 HS-005",
        "register",
        f"{P}/workspaces/0/pathSha256",
        "5E" * 32,
        "pattern",
        f"{P}/workspaces/0/pathSha256",
    ),
    case("HS-004", "register", f"{P}/workspaces/0/pathSha256", GONE, "required", f"{P}/workspaces/0"),
    case("TY-001", "register", f"{P}/resume/lastRecvSeq", GONE, "required", f"{P}/resume"),
    case("TY-001", "register", f"{P}/resume/sessionId", GONE, "required", f"{P}/resume"),
    *(
        case("HS-036", name, f"{P}/capabilities", ["Job Chat"], "pattern", f"{P}/capabilities/0")
        for name in ("register", "hello", "ready")
    ),
    case("HS-036", "hello", f"{P}/capabilities", ["job.chat"] * 2, "uniqueItems", f"{P}/capabilities"),
    case("HS-036", "hello", f"{P}/capabilities", [f"c{n}" for n in range(65)], "maxItems", f"{P}/capabilities"),
    *(
        case("HS-042", name, f"{P}/signatureMode", "strict", "enum", f"{P}/signatureMode")
        for name in ("register", "hello")
    ),
    case("TY-002", "hello", f"{P}/signatureMode", GONE, "required", P),
    case("HS-008", "hello", f"{P}/graphify/state", "broken", "enum", f"{P}/graphify/state"),
    case("HS-008", "hello", f"{P}/clock/utc", "10:00", "pattern", f"{P}/clock/utc"),
    case("HS-008", "hello", f"{P}/disk/freeBytes", -1, "minimum", f"{P}/disk/freeBytes"),
    case("HS-008", "hello", f"{P}/queue/depth", "1", "type", f"{P}/queue/depth"),
    *(
        case("TY-003", "ready", f"{P}/{name}", GONE, "required", P)
        for name in ("sessionId", "resumed", "peerLastSeq", "limits")
    ),
    case("HS-039", "ready", f"{P}/sessionId", "session-1", "pattern", f"{P}/sessionId"),
    case("HS-028 HS-029", "ready", f"{P}/limits/window", 8, "additionalProperties", f"{P}/limits"),
    *(
        case("HS-028", "ready", f"{P}/limits/{name}", GONE, "required", f"{P}/limits")
        for name in ("chunkRawBytes", "maxChunks", "ackTimeoutMs", "heartbeatSeconds")
    ),
    case("HS-028", "ready", f"{P}/limits/heartbeatSeconds", 0.5, "type", f"{P}/limits/heartbeatSeconds"),
    case("SQ-011", "ack", f"{P}/ackSeq", GONE, "required", P),
    case("SQ-011", "ack", f"{P}/ackSeq", 0, "minimum", f"{P}/ackSeq"),
    case("SQ-011", "ack", f"{P}/ackMsgId", GONE, "required", P),
    case("TY-004", "ack", f"{P}/status", "refused", "enum", f"{P}/status", 0),
    case("TY-004", "ack", f"{P}/errorCode", GONE, "required", P),
    case("SQ-011", "ack", f"{P}/errorCode", "internal", "not", f"{P}/errorCode", 0),
    case("TY-005", "error", f"{P}/code", "teapot", "enum", f"{P}/code"),
    case("TY-005", "error", f"{P}/code", GONE, "required", P),
    case("WS-086 TY-005", "error", f"{P}/retryable", GONE, "required", P),
    case("", "error", f"{P}/retryable", "yes", "type", f"{P}/retryable"),
    case("WS-046 TY-005", "error", f"{P}/detail", "d" * 201, "maxLength", f"{P}/detail"),
    case("TY-043", "error", f"{P}/refMsgId", "x", "pattern", f"{P}/refMsgId"),
    case("TY-007", "heartbeat", f"{P}/state", "asleep", "enum", f"{P}/state"),
    case("TY-007", "heartbeat", f"{P}/jobsRunning", 1.5, "type", f"{P}/jobsRunning"),
    *(case("TY-009", "job.assign", f"{P}/{name}", GONE, "required", P) for name in ("jobId", "kind", "inputs", "llm")),
    case("CHAT-059 TY-008", "job.assign", f"{P}/kind", "ask", "enum", f"{P}/kind"),
    case("CHAT-058 SEC-010", "job.assign", f"{P}/gitToken", "t", "additionalProperties", P),
    case("TY-010", "job.assign", f"{INPUT}/inline", "", "minLength", f"{INPUT}/inline"),
    case("TY-010 WS-056", "job.assign", f"{INPUT}/inline", "a" * 16385, "maxLength", f"{INPUT}/inline"),
    case("TY-011", "job.assign", f"{INPUT}/transient", False, "const", f"{INPUT}/transient"),
    case("TY-011", "job.assign", f"{INPUT}/transient", GONE, "dependentRequired", INPUT),
    case("TY-009", "job.assign", f"{INPUT}/inline", GONE, "dependentRequired", INPUT),
    case("TY-009", "job.assign", f"{INPUT}/ref", CURSOR, "not", f"{INPUT}/inline"),
    case("TY-009", "job.assign", f"{P}/inputs/1/ref", GONE, "dependentRequired", f"{P}/inputs/1"),
    case("TY-009", "job.assign", INPUT, {}, "minProperties", INPUT),
    case("TY-009", "job.assign", f"{INPUT}/{SECRET_NAME}", 1, "additionalProperties", INPUT),
    case("TY-009", "job.assign", f"{P}/inputs", [{"ref": CURSOR}] * 65, "maxItems", f"{P}/inputs"),
    case("", "job.assign", f"{P}/inputs", [], "minItems", f"{P}/inputs"),
    case("", "job.assign", f"{P}/inputs", [], "minItems", f"{P}/inputs", 2),
    case("TY-009", "job.assign", f"{P}/repoRef/repoId", "https://host/x", "pattern", f"{P}/repoRef/repoId"),
    case("TY-009", "job.assign", f"{P}/repoRef/url", "x", "additionalProperties", f"{P}/repoRef"),
    case("TY-009", "job.assign", f"{P}/incidentRef/id", GONE, "required", f"{P}/incidentRef"),
    case("TY-009", "job.assign", f"{P}/options/{SECRET_NAME}", 1, "propertyNames", f"{P}/options"),
    case("TY-009", "job.assign", f"{P}/options/secretName", "two words", "anyOf", f"{P}/options"),
    case("TY-009", "job.assign", f"{P}/options/secretName", {"a": 1}, "anyOf", f"{P}/options"),
    case("WS-045", "job.assign", f"{P}/options/pattern", "two words", "anyOf", f"{P}/options"),
    case("TY-009", "job.assign", f"{P}/options", {f"a{n}": n for n in range(33)}, "maxProperties", f"{P}/options"),
    case("", "job.assign", f"{P}/options/conversationId", "c1", "pattern", f"{P}/options/conversationId"),
    case("TY-013", "job.cancel", f"{P}/reason", "bored", "enum", f"{P}/reason"),
    case("TY-013", "job.cancel", f"{P}/jobId", GONE, "required", P),
    case("TY-015", "job.event", f"{P}/state", "thinking", "enum", f"{P}/state"),
    case("TY-015", "job.event", f"{P}/state", GONE, "required", P),
    case("TY-015", "job.event", f"{P}/phase", "two words", "pattern", f"{P}/phase"),
    case("TY-014 TY-015", "job.event", f"{P}/message", "text", "additionalProperties", P),
    case("TY-016", "job.result", f"{P}/outcome", "done", "enum", f"{P}/outcome"),
    case("TY-016", "job.result", f"{P}/outcome", GONE, "required", P),
    case("TY-017", "job.result", f"{P}/errorCode", "other", "enum", f"{P}/errorCode"),
    case("TY-018", "job.result", f"{P}/commitSha", "ab" * 19, "pattern", f"{P}/commitSha"),
    case("TY-018", "job.result", f"{P}/diffSha256", "ab" * 20, "pattern", f"{P}/diffSha256"),
    case("TY-018", "job.result", f"{P}/filesChangedCount", -1, "minimum", f"{P}/filesChangedCount"),
    case("TY-018", "job.result", f"{P}/prUrl", "http://x", "pattern", f"{P}/prUrl"),
    case("TY-018", "job.result", f"{P}/prUrl", "https://" + "x" * 505, "maxLength", f"{P}/prUrl"),
    case("TY-018", "job.result", f"{P}/branch", "b" * 256, "pattern", f"{P}/branch"),
    case("TY-018", "job.result", f"{P}/tests/failed", GONE, "required", f"{P}/tests"),
    *(
        case("TY-020", "approval.decision", f"{P}/{name}", GONE, "required", P)
        for name in ("approvalId", "jobId", "decision", "token")
    ),
    case("TY-020", "approval.decision", f"{P}/decision", "maybe", "enum", f"{P}/decision"),
    case("TY-020", "approval.decision", f"{P}/token", "vhapr2.a.b", "pattern", f"{P}/token"),
    case("TY-020", "approval.decision", f"{P}/token", "vhapr1.a." + "b" * 4088, "maxLength", f"{P}/token"),
    case("CH-031 CHAT-067 TY-021", "content.request", f"{P}/waitMs", 8000, "additionalProperties", P),
    case("CH-031", "content.request", f"{P}/ref", GONE, "required", P),
    case("CH-031", "content.request", f"{P}/maxBytes", 2097153, "maximum", f"{P}/maxBytes"),
    case("CH-032", "content.request", f"{P}/kind", "mcp", "enum", f"{P}/kind"),
    case("CH-033", "content.request", f"{P}/ref", "src/app.py", "pattern", f"{P}/ref"),
    case("CH-033", "content.request", f"{P}/ref", CURSOR + "c", "pattern", f"{P}/ref"),
    *(
        case("CH-007", "content.response", f"{P}/{name}", GONE, "required", P)
        for name in ("status", "contentType", "encoding", "data", "byteLength", "totalBytes")
    ),
    case("CH-007", "content.response", f"{P}/encoding", "hex", "const", f"{P}/encoding"),
    case("CH-009", "content.response", f"{P}/contentType", "text/html", "enum", f"{P}/contentType"),
    case("CH-010", "content.response", f"{P}/status", "gone", "enum", f"{P}/status", 2),
    case("CH-010", "content.response", f"{P}/errorCode", "internal", "not", f"{P}/errorCode"),
    case("CH-010", "content.response", f"{P}/errorCode", GONE, "required", P, 2),
    case("CH-012", "content.response", f"{P}/errorCode", "not_found", "enum", f"{P}/errorCode", 2),
    case("CH-010", "content.response", f"{P}/contentType", "text/plain", "not", f"{P}/contentType", 2),
    case("CH-010", "content.response", f"{P}/totalBytes", 0, "not", f"{P}/totalBytes", 2),
    case("CH-010", "content.response", f"{P}/data", "e30=", "const", f"{P}/data", 2),
    case("CH-010", "content.response", f"{P}/byteLength", 1, "const", f"{P}/byteLength", 2),
    case("CH-010", "content.response", "/chunk/index", 1, "const", "/chunk/index", 2),
    case("CH-010", "content.response", "/chunk/total", 2, "const", "/chunk/total", 2),
    case("CH-010", "content.response", "/chunk/last", False, "const", "/chunk/last", 2),
    case("CH-021", "content.response", f"{P}/data", "A" * 43696, "maxLength", f"{P}/data"),
    *(
        case("CH-021", "content.response", f"{P}/data", value, "pattern", f"{P}/data")
        for value in ("e30", "e3_-", "e3\n0", "e31=", "eB==", "e30=e30=", "=", "A" * 43690 + "_=")
    ),
    case("CH-020", "content.response", f"{P}/byteLength", 32770, "maximum", f"{P}/byteLength"),
    case("TY-023", "webhook.forward", f"{P}/transient", False, "const", f"{P}/transient"),
    case("TY-023", "webhook.forward", f"{P}/transient", GONE, "required", P),
    case("TY-023", "webhook.forward", f"{P}/bodyB64", GONE, "required", P),
    case("WS-082", "webhook.forward", f"{P}/bodyB64", "A" * 16388, "maxLength", f"{P}/bodyB64"),
    case("TY-024", "webhook.forward", "/requestId", GONE, "dependentRequired", ""),
    case("TY-026", "incident.candidate", f"{P}/title", "text", "additionalProperties", P),
    case("TY-026", "incident.candidate", f"{P}/fingerprint", "x", "pattern", f"{P}/fingerprint"),
    case("TY-026", "incident.candidate", f"{P}/level", "bad", "enum", f"{P}/level"),
    case("TY-027", "audit.event", f"{P}/summary", "text", "additionalProperties", P),
    case("TY-027", "audit.event", f"{P}/mode", "free text", "pattern", f"{P}/mode"),
    *(case("", "audit.event", f"{P}/{name}", GONE, "required", P) for name in ("code", "at")),
    *(case("TY-030", "alert", f"{P}/{name}", GONE, "required", P) for name in ("kind", "severity")),
    case("TY-030", "alert", f"{P}/severity", "loud", "enum", f"{P}/severity"),
    *(case("TY-032", "log.stats", f"{P}/{name}", GONE, "required", P) for name in ("windowSeconds", "counts")),
    case("TY-032", "log.stats", f"{P}/counts/notice", 1, "additionalProperties", f"{P}/counts"),
    *(case("TY-034", "config.update", f"{P}/{name}", GONE, "required", P) for name in ("revision", "values")),
    case("TY-034", "config.update", f"{P}/values/secretName", [1], "anyOf", f"{P}/values"),
    case("TY-034", "config.update", f"{P}/values/{SECRET_NAME}", 1, "propertyNames", f"{P}/values"),
    case("TY-034", "config.update", f"{P}/values", {f"a{n}": n for n in range(65)}, "maxProperties", f"{P}/values"),
    *(case("TY-036", "scan.upload", f"{P}/{name}", GONE, "required", P) for name in ("scanId", "signedPutUrl")),
    case("TY-036", "scan.upload", f"{P}/signedPutUrl", "file:///etc", "pattern", f"{P}/signedPutUrl"),
    case("TY-036", "scan.upload", f"{P}/signedPutUrl", "https://" + "u" * 4089, "maxLength", f"{P}/signedPutUrl"),
    case("TY-036", "scan.uploaded", f"{P}/sha256", GONE, "required", P, 0),
    case("TY-036", "scan.uploaded", f"{P}/byteCount", GONE, "required", P, 0),
    case("TY-036", "scan.uploaded", f"{P}/errorCode", "internal", "not", f"{P}/errorCode", 0),
    case("TY-036", "scan.uploaded", f"{P}/status", "half", "enum", f"{P}/status"),
    *(case("TY-038", name, "/requestId", GONE, "required", "", 0) for name in ("policy.check", "policy.decision")),
    *(case("TY-038", "policy.check", f"{P}/{name}", GONE, "required", P) for name in ("jobId", "actionType")),
    case("TY-038", "policy.check", f"{P}/command", "rm", "additionalProperties", P),
    case("TY-038", "policy.decision", f"{P}/decision", "perhaps", "enum", f"{P}/decision", 2),
    case("TY-038", "policy.decision", f"{P}/approvalId", GONE, "required", P),
    case("TY-038", "policy.decision", f"{P}/approvalId", "ap-1", "not", f"{P}/approvalId", 0),
    *(
        case("TY-039", "llm.key", f"{P}/{name}", GONE, "required", P)
        for name in ("alias", "provider", "key", "expiresAt")
    ),
    case("TY-039", "llm.key", f"{P}/key", "k" * 513, "pattern", f"{P}/key"),
    case("TY-004", "ack", f"{P}/status", GONE, "required", P),
    case("CH-031", "content.request", f"{P}/kind", GONE, "required", P),
    case("CH-031", "content.request", f"{P}/maxBytes", 0, "minimum", f"{P}/maxBytes"),
    case("WS-016", "content.response", "/chunk/index", GONE, "required", "/chunk"),
    case("HS-008", "hello", f"{P}/graphify", {}, "required", f"{P}/graphify"),
    case("HS-008", "hello", f"{P}/disk", {}, "required", f"{P}/disk"),
    case("HS-008", "hello", f"{P}/queue", {}, "required", f"{P}/queue"),
    case("HS-008", "hello", f"{P}/clock", {}, "required", f"{P}/clock"),
    *(
        case("TY-026", "incident.candidate", f"{P}/{name}", GONE, "required", P)
        for name in ("fingerprint", "level", "count")
    ),
    case("TY-009", "job.assign", f"{P}/repoRef/repoId", GONE, "required", f"{P}/repoRef"),
    case("TY-009", "job.assign", f"{P}/llm", {}, "required", f"{P}/llm"),
    case("TY-015", "job.event", f"{P}/jobId", GONE, "required", P),
    case("TY-016", "job.result", f"{P}/jobId", GONE, "required", P),
    case("TY-018", "job.result", f"{P}/tests/passed", GONE, "required", f"{P}/tests"),
    case("TY-018", "job.result", f"{P}/tests/skipped", GONE, "required", f"{P}/tests"),
    case("TY-038", "policy.decision", f"{P}/decision", GONE, "required", P),
    case("WS-013", "register", f"{P}/workspaces", [WORKSPACE_RECORD] * 65, "maxItems", f"{P}/workspaces"),
    case("HS-004", "register", f"{P}/workspaces/0/workspaceId", GONE, "required", f"{P}/workspaces/0"),
    *(case("TY-036", "scan.uploaded", f"{P}/{name}", GONE, "required", P, 0) for name in ("scanId", "status")),
]

BOUNDS = [
    pytest.param(
        "content.response", f"{P}/data", "A" * 43692, id="data-decodes-to-32769", marks=pytest.mark.req("CH-020")
    ),
    pytest.param("content.response", f"{P}/byteLength", 32769, id="byte-length-over", marks=pytest.mark.req("CH-020")),
    pytest.param("content.response", "/chunk/total", 65, id="total-over"),
    pytest.param(
        "job.assign", f"{P}/inputs/0/inline", "😀" * 16384, id="inline-emoji", marks=pytest.mark.req("CT-064")
    ),
    pytest.param(
        "job.assign", f"{P}/incidentRef", {"id": "i"}, id="chat-with-incident", marks=pytest.mark.req("CP-017")
    ),
    pytest.param("heartbeat", "/ts", "2026-11-04T10:00:00Z", id="ts-whole-second", marks=pytest.mark.req("WS-015")),
    pytest.param("heartbeat", "/ts", "2026-11-04T10:00:00.123456789Z", id="ts-nanos", marks=pytest.mark.req("WS-015")),
    pytest.param("job.cancel", "/sig/timestamp", "1793786400000", id="sig-time-text", marks=pytest.mark.req("SG-004")),
    pytest.param("job.result", f"{P}/commitSha", "ab" * 32, id="long-commit", marks=pytest.mark.req("TY-018")),
    pytest.param("ready", f"{P}/capabilities", GONE, id="ready-without-capabilities", marks=pytest.mark.req("HS-030")),
    pytest.param("ready", f"{P}/limits/ackTimeoutMs", 0, id="limits-are-clamped-not-refused"),
    pytest.param("register", f"{P}/resume", GONE, id="first-register", marks=pytest.mark.req("HS-003")),
    pytest.param("config.update", f"{P}/values", {f"a{n}": n for n in range(64)}, id="values-64"),
    pytest.param("content.request", f"{P}/maxBytes", 1, id="max-bytes-1"),
    pytest.param("hello", f"{P}/capabilities", [f"c{n}" for n in range(64)], id="capabilities-64"),
    pytest.param("job.cancel", "/sig/timestamp", 0, id="sig-time-0"),
    pytest.param("job.cancel", "/sig/timestamp", MAX_INTEGER, id="sig-time-max"),
    pytest.param("heartbeat", f"{P}/jobsRunning", 0, id="count-0"),
    pytest.param("job.cancel", "/paramsRaw", "{}", id="params-2", marks=pytest.mark.req("WS-083")),
    pytest.param("job.cancel", "/paramsRaw", "a" * 49152, id="params-49152", marks=pytest.mark.req("WS-083")),
    pytest.param("job.assign", f"{P}/inputs", [{"ref": CURSOR}] * 64, id="inputs-64"),
    pytest.param("job.assign", f"{P}/inputs/0/inline", "a", id="inline-1", marks=pytest.mark.req("TY-010")),
    pytest.param("job.assign", f"{P}/options", {f"a{n}": n for n in range(32)}, id="options-32"),
    pytest.param("job.result", f"{P}/prUrl", "https://" + "x" * 504, id="url-512", marks=pytest.mark.req("TY-018")),
    pytest.param("register", f"{P}/workspaces", [WORKSPACE_RECORD] * 64, id="workspaces-64"),
    pytest.param("register", f"{P}/workspaces", [], id="no-workspace", marks=pytest.mark.req("WS-013")),
    pytest.param("hello", f"{P}/capabilities", CAPABILITIES, id="known-capabilities", marks=pytest.mark.req("HS-035")),
]
