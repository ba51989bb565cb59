"""Signatures of gateway frames: Ed25519 over the VH-AGENT-SIG-V1 canonical text (SG-001)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from lab.errors import WireError
from lab.protocol.wire import parse_json_untrusted

ALGORITHM = "Ed25519"

NONCE_MEMORY = 4096
"""Nonces an agent remembers; more than can arrive while a timestamp is accepted (SG-015)."""


class SignatureMode(StrEnum):
    """How an agent treats signatures (SG-010)."""

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


def canonical_text(
    type_name: str, tenant_id: str, workspace_id: str, timestamp_ms: int | str, nonce: str, params_raw: str
) -> bytes:
    """The bytes that are signed (SG-002, SG-003): the one place that knows their form."""
    body = hashlib.sha256(params_raw.encode("utf-8", "surrogatepass")).hexdigest()
    return "\n".join(
        ("VH-AGENT-SIG-V1", "WS", type_name, tenant_id, workspace_id, str(timestamp_ms), nonce, body)
    ).encode()


class Signer:
    """Signs with one key. `nonce` gives at least 16 random bytes as base64url text at each call."""

    def __init__(self, key_id: str, key: SigningKey, nonce: Callable[[], str]) -> None:
        self.key_id = key_id
        self._key = key
        self._nonce = nonce

    @property
    def public_key(self) -> bytes:
        """The raw 32-byte public key."""
        return bytes(self._key.verify_key)

    def sign(
        self, type_name: str, tenant_id: str, workspace_id: str, params_raw: str, timestamp_ms: int
    ) -> dict[str, Any]:
        """The `sig` member of a frame (SG-004)."""
        nonce = self._nonce()
        text = canonical_text(type_name, tenant_id, workspace_id, timestamp_ms, nonce, params_raw)
        signature = base64.urlsafe_b64encode(self._key.sign(text).signature).rstrip(b"=").decode()
        return {
            "alg": ALGORITHM,
            "keyId": self.key_id,
            "tenantId": tenant_id,
            "workspaceId": workspace_id,
            "timestamp": timestamp_ms,
            "nonce": nonce,
            "signature": signature,
        }


class Verifier:
    """Judges signed frames with an agent's trusted keys, by key id to raw 32-byte public key (SG-009)."""

    def __init__(self, trusted: Mapping[str, bytes], skew_seconds: float) -> None:
        self._trusted = {key_id: VerifyKey(raw) for key_id, raw in trusted.items()}
        self._skew_ms = skew_seconds * 1000
        self._nonces: OrderedDict[str, None] = OrderedDict()

    def refusal(self, members: Mapping[str, Any], wall_now_ms: int, nonce_once: bool = True) -> str | None:
        """The wire code due for a signed frame that does not hold (SG-008), None when it does; that uses up its nonce.

        The frame passed its schema, so `sig` and `paramsRaw` are of their form. `nonce_once` is False for a copy of
        a frame that was received already (decision 21).
        """
        sig = members["sig"]
        if not params_equal(members["paramsRaw"], members["payload"]):
            return "params_mismatch"
        # SG-007: bound to the frame's own tenant and workspace.
        if sig["tenantId"] != members["tenantId"]:
            return "tenant_mismatch"
        if sig["workspaceId"] != members["workspaceId"] or not self._verifies(members, sig):
            return "unauthorized"
        # SG-014: a timestamp within 60 s, and each nonce once.
        if abs(int(sig["timestamp"]) - wall_now_ms) > self._skew_ms or (nonce_once and sig["nonce"] in self._nonces):
            return "unauthorized"
        self._nonces[sig["nonce"]] = None
        if len(self._nonces) > NONCE_MEMORY:
            self._nonces.popitem(last=False)
        return None

    def _verifies(self, members: Mapping[str, Any], sig: Mapping[str, Any]) -> bool:
        key = self._trusted.get(sig["keyId"])
        if key is None:
            return False
        text = canonical_text(
            members["type"],
            sig["tenantId"],
            sig["workspaceId"],
            sig["timestamp"] if isinstance(sig["timestamp"], str) else int(sig["timestamp"]),
            sig["nonce"],
            members["paramsRaw"],
        )
        try:
            key.verify(text, base64.urlsafe_b64decode(sig["signature"] + "=="))
        except (BadSignatureError, ValueError, binascii.Error):
            return False
        return True


def params_equal(params_raw: str, payload: Mapping[str, Any]) -> bool:
    """Whether paramsRaw is the payload by value, without duplicate keys (SG-005, SG-006)."""
    try:
        return _same(parse_json_untrusted(params_raw), payload)
    except WireError:
        return False


def _same(left: Any, right: Any) -> bool:
    """Deep equality of JSON values, in which true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right if isinstance(left, str) else bool(left == right)
