"""The v2 envelope: reading one that passed its schema, and building one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.clock import timestamp, wall_ms
from lab.errors import MisuseError
from lab.protocol.contract import Contract
from lab.protocol.signing import Signer
from lab.protocol.wire import byte_length, encode

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """Place of a frame in a series (WS-016)."""

    index: int
    total: int
    last: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that passed its schema."""

    type: str
    msg_id: str
    seq: int
    tenant_id: str
    workspace_id: str
    ts: str
    payload: Mapping[str, Any]
    ack: int | None
    request_id: str | None
    agent_id: str | None
    chunk: Chunk | None


def read_frame(members: Mapping[str, Any]) -> Frame:
    """A `Frame` from an object that passed its schema."""
    chunk = members.get("chunk")
    return Frame(
        type=members["type"],
        msg_id=members["msgId"],
        # A schema takes 1.0 for an integer, and so must a reader.
        seq=int(members["seq"]),
        tenant_id=members["tenantId"],
        workspace_id=members["workspaceId"],
        ts=members["ts"],
        payload=members["payload"],
        ack=int(members["ack"]) if "ack" in members else None,
        request_id=members.get("requestId"),
        agent_id=members.get("agentId"),
        chunk=Chunk(int(chunk["index"]), int(chunk["total"]), chunk["last"]) if chunk else None,
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """What an application wants to say, before it has a seq. `tag` is the application's own mark."""

    type: str
    payload: Mapping[str, Any]
    workspace_id: str
    request_id: str | None = None
    chunk: Chunk | None = None
    tag: object = None


class RefusedDraft(Exception):
    """A draft that must not reach the wire; `code` is the wire code its caller gets (CP-008, CP-009, LA-007)."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class FrameBuilder:
    """Builds this side's frames. The gateway has a signer and signs what its contract flags; the agent has none."""

    def __init__(
        self, contract: Contract, tenant_id: str, agent_id: str, epoch_ms: int, signer: Signer | None = None
    ) -> None:
        self._contract = contract
        self._tenant_id = tenant_id
        self._agent_id = agent_id
        self._epoch_ms = epoch_ms
        self._signer = signer

    def build(self, draft: Draft, msg_id: str, seq: int, ack: int | None, now: float) -> str:
        """The frame's text. Raises `RefusedDraft` when it breaks its schema or is too large as a whole (WS-057)."""
        members: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "type": draft.type,
            "msgId": msg_id,
            "seq": seq,
        }
        if ack is not None:
            members["ack"] = ack
        if draft.request_id is not None:
            members["requestId"] = draft.request_id
        members["tenantId"] = self._tenant_id
        members["agentId"] = self._agent_id
        members["workspaceId"] = draft.workspace_id
        members["ts"] = timestamp(wall_ms(self._epoch_ms, now))
        if draft.chunk is not None:
            members["chunk"] = {"index": draft.chunk.index, "total": draft.chunk.total, "last": draft.chunk.last}
        try:
            self._sign(members, draft, now)
            members["payload"] = draft.payload
            return self._checked(draft.type, members)
        except ValueError:
            # NaN and infinities are numbers to a schema, but no JSON.
            raise RefusedDraft("schema_violation", f"{draft.type} holds a number that JSON cannot say") from None

    def _sign(self, members: dict[str, Any], draft: Draft, now: float) -> None:
        # SG-016: ready and the gateway's data types are signed; ack and error are not.
        if self._signer is None or not self._contract.types[draft.type].signed:
            return
        params_raw = encode(draft.payload)
        members["paramsRaw"] = params_raw
        members["sig"] = self._signer.sign(
            draft.type, self._tenant_id, draft.workspace_id, params_raw, wall_ms(self._epoch_ms, now)
        )

    def _checked(self, type_name: str, members: Mapping[str, Any]) -> str:
        broken = self._contract.check_frame(type_name, members)
        if broken is not None:
            raise RefusedDraft("schema_violation", f"{type_name} breaks {broken.keyword} at {broken.path}")
        text = encode(members)
        size = byte_length(text)
        # WS-057, WS-058: decided on the finished frame's bytes, never on a count of characters.
        if size > self._contract.limits.max_frame_bytes:
            raise RefusedDraft(
                "frame_too_large", f"{type_name} has {size} bytes, at most {self._contract.limits.max_frame_bytes}"
            )
        return text


IdSource = Callable[[], str]
"""Gives a fresh lower-case UUID at each call."""


def require_known(contract: Contract, type_name: str) -> None:
    """Raises `MisuseError` for a type that the contract does not have."""
    if type_name not in contract.types:
        raise MisuseError(f"{type_name} is no frame type of revision {contract.revision}")
