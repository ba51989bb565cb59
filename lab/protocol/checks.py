"""The checks of a frame that arrived: each gives the wire code due, or None, and each side names its order (WS-029)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.protocol import handshake
from lab.protocol.chunks import decode_base64
from lab.protocol.contract import Contract, Direction
from lab.protocol.frames import Chunk
from lab.protocol.handshake import State
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Verdict
from lab.protocol.session import Session

Check = Callable[[Mapping[str, Any], float], str | None]


class FrameChecks:
    """What a connection asks of every frame, beside size and parsing. A check may rely on those before it."""

    receives: Direction
    """The direction of the frames that this side receives."""
    checks: tuple[str, ...]
    """The order of checks after size and parsing (WS-029, WS-030, WS-031)."""

    def __init__(self, contract: Contract, tenant_id: str, agent_id: str, outbox: Outbox) -> None:
        self.contract = contract
        self.tenant_id = tenant_id
        self.agent_id = agent_id
        self.outbox = outbox
        self.state = State.AWAIT_REGISTER
        self._data: bytes | None = None
        """The content of the chunk that was checked last."""
        self._order: tuple[Check, ...] = tuple(getattr(self, f"_check_{name}") for name in self.checks)

    @property
    def session(self) -> Session:
        """The session that this connection serves."""
        return self.outbox.session

    def _refusal(self, members: Mapping[str, Any], now: float) -> str | None:
        return next(filter(None, (check(members, now) for check in self._order)), None)

    def _check_allowlist(self, members: Mapping[str, Any], _now: float) -> str | None:
        # WS-037, decision 27: a missing or non-string type is unknown too.
        type_name = members.get("type")
        return None if isinstance(type_name, str) and type_name in self.contract.types else "unknown_type"

    def _check_schema(self, members: Mapping[str, Any], _now: float) -> str | None:
        return None if self.contract.check_frame(members["type"], members) is None else "schema_violation"

    def _check_tenant(self, members: Mapping[str, Any], _now: float) -> str | None:
        # WS-008
        return None if members["tenantId"] == self.tenant_id else "tenant_mismatch"

    def _check_agent(self, members: Mapping[str, Any], _now: float) -> str | None:
        raise NotImplementedError

    def _check_direction(self, members: Mapping[str, Any], _now: float) -> str | None:
        # WS-038
        direction = self.contract.types[members["type"]].direction
        return None if direction in (self.receives, Direction.BOTH) else "wrong_direction"

    def _check_state(self, members: Mapping[str, Any], _now: float) -> str | None:
        return handshake.refusal(self.state, handshake.step_of(members["type"]))

    def _check_seq(self, members: Mapping[str, Any], _now: float) -> str | None:
        if self.contract.types[members["type"]].control:
            return None
        match self.session.inbound.judge(int(members["seq"]), members["msgId"]):
            case Verdict.GAP:
                return "seq_gap"
            case Verdict.REPLAYED:
                return "seq_replayed"
            case _:
                return None

    def _check_chunks(self, members: Mapping[str, Any], _now: float) -> str | None:
        self._data = None
        if members["type"] != "content.response" or self._is_copy(members):
            return None
        payload, chunk = members["payload"], members["chunk"]
        data = decode_base64(payload["data"])
        place = Chunk(int(chunk["index"]), int(chunk["total"]), chunk["last"])
        code = self.session.chunks.refusal(
            members["requestId"], place, None if data is None else len(data), int(payload["byteLength"])
        )
        if code is None:
            self._data = data
        return code

    def _is_copy(self, members: Mapping[str, Any]) -> bool:
        return self.session.inbound.judge(int(members["seq"]), members["msgId"]) is Verdict.DUPLICATE
