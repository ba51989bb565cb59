"""Judging the signature of a frame from the control plane, with the tap's own canonical text."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from lab.tap.text import NoJson, equal_values, strict_json


class SignatureTap:
    """Judges with the trusted public keys (key id to the 32 raw bytes)."""

    def __init__(self, public_keys: Mapping[str, bytes]) -> None:
        self._keys = {name: VerifyKey(key) for name, key in public_keys.items()}

    def judge(self, frame: Mapping[str, Any], wall_ms: int) -> dict[str, Any]:
        """The facts of a signed type's signature at wall time `wall_ms`; never raises.

        `present` both members are there; `verified` a trusted key signed exactly this; `bound` to the frame's
        own tenant and workspace; `equal` paramsRaw is the payload by value; `nonce` its SHA-256; `skewMs` how
        far the wall clock is ahead of the signature.
        """
        sig, params = frame.get("sig"), frame.get("paramsRaw")
        if not isinstance(sig, dict) or not isinstance(params, str):
            return {"present": False}
        return {
            "present": True,
            "verified": self._verified(frame.get("type"), sig, params),
            # SG-007: bound to the frame's own tenant and workspace
            "bound": sig.get("tenantId") == frame.get("tenantId")
            and sig.get("workspaceId") == frame.get("workspaceId"),
            "equal": _equal(params, frame.get("payload")),
            "nonce": _hash(sig.get("nonce")),
            "skewMs": _skew(sig.get("timestamp"), wall_ms),
        }

    def _verified(self, type_name: object, sig: Mapping[str, Any], params: str) -> bool:
        # SG-009: only a trusted key counts
        key_id = sig.get("keyId")
        key = self._keys.get(key_id) if isinstance(key_id, str) else None
        signature = _base64url(sig.get("signature"))
        if key is None or signature is None or sig.get("alg") != "Ed25519":
            return False
        try:
            key.verify(canonical_text(type_name, sig, params), signature)
        except (BadSignatureError, ValueError, TypeError):
            return False
        return True


def canonical_text(type_name: object, sig: Mapping[str, Any], params: str) -> bytes:
    """What is signed: SG-003's lines, with the binding that the signature itself names (SG-004)."""
    lines = (
        "VH-AGENT-SIG-V1",
        "WS",
        type_name,
        sig.get("tenantId"),
        sig.get("workspaceId"),
        sig.get("timestamp"),
        sig.get("nonce"),
        hashlib.sha256(params.encode("utf-8", "surrogatepass")).hexdigest(),
    )
    return "\n".join(str(line) for line in lines).encode("utf-8", "surrogatepass")


def _equal(params: str, payload: object) -> bool:
    # SG-005: a repeated member in paramsRaw makes it unequal to anything
    try:
        return equal_values(strict_json(params), payload)
    except NoJson:
        return False


def _hash(value: object) -> str | None:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() if isinstance(value, str) else None


def _skew(timestamp: object, wall_ms: int) -> int | None:
    if isinstance(timestamp, str) and timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 16:
        return wall_ms - int(timestamp)
    if isinstance(timestamp, int) and not isinstance(timestamp, bool) and abs(timestamp) < 2**53:
        return wall_ms - timestamp
    return None


def _base64url(value: object) -> bytes | None:
    if not isinstance(value, str) or len(value) != 86:
        return None
    try:
        return base64.b64decode(value + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
