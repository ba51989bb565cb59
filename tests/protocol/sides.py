"""Both sides of the protocol with fixed keys, ids and times, and frames written by hand to feed them with."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from nacl.signing import SigningKey

from lab.protocol.agent_side import AgentConnection, Registration
from lab.protocol.connection import Connection
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.events import Close, Event, Received, Transmit
from lab.protocol.frames import Draft, FrameBuilder
from lab.protocol.gateway_side import GatewayConnection, GatewayPolicy, SessionStore
from lab.protocol.outbox import Outbox
from lab.protocol.session import AGENT_SENDER, GATEWAY_SENDER, SenderLimits, Session
from lab.protocol.signing import SignatureMode, Signer, Verifier

CONTRACT = Contract.load(default_contract_folder())
EPOCH_MS = 1793786400000
TS = "2026-11-04T10:00:00.000Z"
TENANT, WORKSPACE = "tenant-1", "ws-1"
AGENT = "0a0a0a0a-0000-4000-8000-00000000000a"
JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
SESSION = "0c0c0c0c-0000-4000-8000-00000000000c"
KEY = SigningKey(bytes(range(32)))
DIGEST = "5e" * 32
CAPABILITIES = ("job.assign", "job.options", "job.chat")
LIMITS = {"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30}
Members = dict[str, Any]


def numbered(prefix: str) -> Callable[[], str]:
    """Fresh UUIDs that tell who made them and when."""
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"{prefix * 8}-0000-4000-8000-{count:012x}"

    return fresh


def nonces() -> Callable[[], str]:
    count = 0

    def fresh() -> str:
        nonlocal count
        count += 1
        return f"nonce-{count:016d}"

    return fresh


def uuid(number: int) -> str:
    return f"deadbeef-0000-4000-8000-{number:012x}"


def signer(nonce: Callable[[], str] | None = None) -> Signer:
    return Signer("key-1", KEY, nonce or nonces())


def verifier(skew_seconds: float = 60) -> Verifier:
    return Verifier({"key-1": bytes(KEY.verify_key)}, skew_seconds)


def agent_outbox(sender: SenderLimits = AGENT_SENDER, contract: Contract = CONTRACT) -> Outbox:
    builder = FrameBuilder(contract, TENANT, AGENT, EPOCH_MS)
    return Outbox(Session(contract.limits, sender), contract, builder, numbered("a"), signs_anew=False)


def gateway_outbox(
    contract: Contract = CONTRACT,
    dedupe: int | None = None,
    ids: Callable[[], str] | None = None,
    by: Signer | None = None,
) -> Outbox:
    builder = FrameBuilder(contract, TENANT, AGENT, EPOCH_MS, by or signer())
    session = Session(contract.limits, GATEWAY_SENDER, dedupe)
    return Outbox(session, contract, builder, ids or numbered("c"), signs_anew=True)


def new_agent(
    outbox: Outbox | None = None,
    mode: SignatureMode = SignatureMode.ENFORCE,
    handshake_seconds: float = 10,
    trust: Verifier | None = None,
    capabilities: tuple[str, ...] = CAPABILITIES,
    contract: Contract = CONTRACT,
) -> AgentConnection:
    registration = Registration("1.4.0", capabilities, mode, ((WORKSPACE, DIGEST),), 4711, "/home/dev/shop")
    return AgentConnection(
        contract,
        TENANT,
        AGENT,
        outbox or agent_outbox(contract=contract),
        EPOCH_MS,
        registration,
        trust or verifier(),
        handshake_seconds,
    )


def new_gateway(
    policy: GatewayPolicy | None = None,
    store: SessionStore | None = None,
    now: float = 0,
    fresh: Callable[[], Outbox] | None = None,
    contract: Contract = CONTRACT,
    tenant: str = TENANT,
    agent: str = AGENT,
) -> GatewayConnection:
    return GatewayConnection(
        contract,
        tenant,
        agent,
        EPOCH_MS,
        policy or GatewayPolicy(),
        store if store is not None else SessionStore(90),
        fresh or (lambda: gateway_outbox(contract)),
        now,
    )


# Frames by hand


def members(type_name: str, payload: Mapping[str, Any], seq: int, number: int = 1, **more: Any) -> Members:
    """An unsigned frame; `more` adds members, and takes those out whose value is None."""
    frame: Members = {
        "schemaVersion": 2,
        "type": type_name,
        "msgId": uuid(number),
        "seq": seq,
        "tenantId": TENANT,
        "agentId": AGENT,
        "workspaceId": WORKSPACE,
        "ts": TS,
        "payload": dict(payload),
        **more,
    }
    return {name: value for name, value in frame.items() if value is not None}


def sign(frame: Members, nonce: str, timestamp: int | str = EPOCH_MS, key: SigningKey = KEY, **sig: Any) -> Members:
    """The frame with paramsRaw and sig, made from the ledger's words alone (SG-003, SG-004)."""
    raw = frame.get("paramsRaw", json.dumps(frame["payload"], separators=(",", ":"), ensure_ascii=False))
    bound = {"tenantId": frame["tenantId"], "workspaceId": frame["workspaceId"], **sig}
    body = hashlib.sha256(raw.encode()).hexdigest()
    lines = ["VH-AGENT-SIG-V1", "WS", frame["type"], bound["tenantId"], bound["workspaceId"]]
    text = "\n".join([*lines, str(timestamp), nonce, body]).encode()
    signature = base64.urlsafe_b64encode(key.sign(text).signature).decode().rstrip("=")
    whole = {"alg": "Ed25519", "keyId": "key-1", "timestamp": timestamp, "nonce": nonce, "signature": signature}
    return {**frame, "paramsRaw": raw, "sig": {**whole, **bound}}


def nonce_of(number: int) -> str:
    return f"by-hand-{number:016d}"


def text(frame: Members) -> str:
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False)


def register(number: int = 900, ts: str = TS, payload: Mapping[str, Any] | None = None, **more: Any) -> str:
    body = {
        "protocol": 2,
        "version": "1.4.0",
        "capabilities": list(CAPABILITIES),
        "signatureMode": "enforce",
        "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": DIGEST}],
        **(payload or {}),
    }
    return text(members("register", body, 0, number, ts=ts, **more))


def hello(number: int = 901, ts: str = TS, payload: Mapping[str, Any] | None = None, **more: Any) -> str:
    return text(members("hello", {"signatureMode": "enforce", **(payload or {})}, 0, number, ts=ts, **more))


def ready(number: int = 902, timestamp: int = EPOCH_MS, **payload: Any) -> str:
    body = {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "limits": LIMITS, **payload}
    return text(sign(members("ready", body, 0, number), nonce_of(5_000_000 + number), timestamp))


def ack(seq: int, msg_id: str, status: str = "accepted", code: str | None = None, **more: Any) -> str:
    payload = {"status": status, "ackSeq": seq, "ackMsgId": msg_id, **({"errorCode": code} if code else {})}
    return text(members("ack", payload, 0, 903, **more))


def error(code: str, **more: Any) -> str:
    return text(members("error", {"code": code, "retryable": False}, 0, 904, **more))


def heartbeat(seq: int, number: int | None = None, **more: Any) -> str:
    return text(members("heartbeat", {}, seq, seq if number is None else number, **more))


def cancel(seq: int, number: int | None = None, **more: Any) -> Members:
    """A job.cancel, not signed yet."""
    return members("job.cancel", {"jobId": JOB}, seq, seq if number is None else number, **more)


def signed_cancel(
    seq: int, number: int | None = None, nonce: int | None = None, timestamp: int = EPOCH_MS, **more: Any
) -> str:
    return text(sign(cancel(seq, number, **more), nonce_of(seq if nonce is None else nonce), timestamp))


def chunk_frame(
    seq: int, request: int, index: int, total: int, raw: bytes = b"x", last: bool | None = None, **payload: Any
) -> str:
    body = {
        "status": "ok",
        "contentType": "application/json",
        "encoding": "base64",
        "data": base64.b64encode(raw).decode(),
        "byteLength": len(raw),
        "totalBytes": total * len(raw),
        **payload,
    }
    place = {"index": index, "total": total, "last": index == total - 1 if last is None else last}
    return text(members("content.response", body, seq, seq, requestId=uuid(request), chunk=place))


# What a side says


def written(connection: Connection) -> list[Members]:
    """Frames that wait to be written, taken; text pings and pongs and closes are left out."""
    frames, _ = outputs(connection)
    return frames


def outputs(connection: Connection) -> tuple[list[Members], int | None]:
    """Frames and close code that wait to be written, taken."""
    frames, code = [], None
    for output in connection.take_output():
        if isinstance(output, Close):
            code = output.code
        elif output.text not in ("ping", "pong"):
            frames.append(json.loads(output.text))
    return frames, code


def texts(connection: Connection) -> list[str]:
    return [output.text for output in connection.take_output() if isinstance(output, Transmit)]


def take(connection: Connection, message: str | bytes, now: float = 0, answer: str | None = "accepted") -> list[Event]:
    """Feed a message and answer what it brings at once: accepted, a wire code to reject with, or None for neither."""
    events = connection.receive_untrusted(message, now)
    for event in events:
        if isinstance(event, Received) and answer == "accepted":
            connection.accept(event.frame, now)
        elif isinstance(event, Received) and answer is not None:
            connection.reject(event.frame, answer, now)
    return events


def refusal(connection: Connection, message: str | bytes, now: float = 0) -> tuple[str, int] | None:
    """The wire code and close code that a message brings, None when it brings no error frame."""
    written(connection)
    take(connection, message, now)
    frames, close = outputs(connection)
    errors = [frame["payload"]["code"] for frame in frames if frame["type"] == "error"]
    return (errors[0], close or 0) if errors else None


def ready_gateway(
    policy: GatewayPolicy | None = None, store: SessionStore | None = None, dedupe: int | None = None, now: float = 0
) -> GatewayConnection:
    """A gateway's connection after the handshake, its output taken."""
    gateway = new_gateway(policy, store, now, lambda: gateway_outbox(dedupe=dedupe))
    gateway.receive_untrusted(register(), now)
    gateway.receive_untrusted(hello(), now)
    assert [frame["type"] for frame in written(gateway)] == ["ready"]
    return gateway


def ready_agent(
    outbox: Outbox | None = None, mode: SignatureMode = SignatureMode.ENFORCE, **payload: Any
) -> AgentConnection:
    """An agent's connection after the handshake at lab time 0, its output taken."""
    agent = new_agent(outbox, mode)
    agent.start(0, {})
    agent.receive_untrusted(ready(**payload), 0)
    assert [frame["type"] for frame in written(agent)][:2] == ["register", "hello"]
    return agent


def resumed_agent(outbox: Outbox, now: float, peer_last_seq: int, session_id: str = SESSION) -> AgentConnection:
    """A further connection of an agent, resumed; what it wrote after the handshake is not taken yet."""
    agent = new_agent(outbox)
    agent.start(now, {})
    written(agent)
    moment = EPOCH_MS + int(now * 1000)
    number = 10_000 + int(now * 1000)
    body = {"sessionId": session_id, "resumed": True, "peerLastSeq": peer_last_seq}
    agent.receive_untrusted(ready(number, moment, **body), now)
    return agent


def event_draft(iteration: int) -> Draft:
    return Draft("job.event", {"jobId": JOB, "state": "running", "iteration": iteration}, WORKSPACE)


def cancel_draft() -> Draft:
    return Draft("job.cancel", {"jobId": JOB}, WORKSPACE)
