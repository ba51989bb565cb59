"""The store's own certificate, made anew at each start: its own authority, for this machine's names alone (MCP-007).

X.509 version 3 with an Ed25519 key, written as DER by hand: the lab needs no library for one form of certificate.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from nacl.signing import SigningKey

from lab.private_files import write_private

DAYS: Final = 2
NAME: Final = "lab store double"
KEY_BYTES: Final = 32
SERIAL_BYTES: Final = 16

_SEQUENCE, _SET, _INTEGER, _BITS, _OCTETS, _UTF8, _TIME, _TRUE = (
    0x30,
    0x31,
    0x02,
    0x03,
    0x04,
    0x0C,
    0x17,
    b"\x01\x01\xff",
)
_ED25519 = bytes.fromhex("06032b6570")
_COMMON_NAME = bytes.fromhex("0603550403")
_KEY_ID, _KEY_USAGE, _ALT_NAME, _CONSTRAINTS = (bytes.fromhex(f"0603551d{last:02x}") for last in (14, 15, 17, 19))
_SIGNS_BOTH = bytes.fromhex("03020284")
"""Key usage: digitalSignature for the handshake, keyCertSign for itself."""
_LOCAL_NAMES = (
    bytes((0x82, 9)) + b"localhost"
    + bytes((0x87, 4, 127, 0, 0, 1))
    + bytes((0x87, 16)) + bytes(15) + b"\x01"
)  # fmt: skip
_KEY_HEAD = bytes.fromhex("302e020100300506032b657004220420")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, both in PEM. Who trusts `pem` trusts this store and nothing else."""

    pem: str
    key_pem: str = field(repr=False)

    def server_context(self) -> ssl.SSLContext:
        """What a server shows it with. Raises `EnvironmentFault` when no temporary file can be written."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The module takes files alone; these are gone before anybody is answered.
        with tempfile.TemporaryDirectory(prefix="lab-") as folder:
            both = Path(folder) / "store.pem"
            write_private(both, self.key_pem + self.pem)
            context.load_cert_chain(both)
        return context


def make_certificate(seed: bytes, serial: bytes, now_ms: int) -> Certificate:
    """The certificate of the key that `seed` (32 bytes) is, valid from an hour ago for two days.

    `serial` are 16 bytes; `now_ms` is in epoch milliseconds.
    """
    key = SigningKey(seed)
    public = bytes(key.verify_key)
    algorithm, name = _der(_SEQUENCE, _ED25519), _name()
    start = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(hours=1)
    body = _der(
        _SEQUENCE,
        _der(0xA0, _der(_INTEGER, b"\x02")),
        # A leading zero keeps it positive, a one behind it keeps it short.
        _der(_INTEGER, b"\x00\x81" + serial[1:]),
        algorithm,
        name,
        _der(_SEQUENCE, _time(start), _time(start + timedelta(days=DAYS))),
        name,
        _der(_SEQUENCE, algorithm, _der(_BITS, b"\x00", public)),
        _der(0xA3, _der(_SEQUENCE, *_extensions(public))),
    )
    signed = _der(_SEQUENCE, body, algorithm, _der(_BITS, b"\x00", key.sign(body).signature))
    return Certificate(_pem("CERTIFICATE", signed), _pem("PRIVATE KEY", _KEY_HEAD + seed))


def _extensions(public: bytes) -> tuple[bytes, ...]:
    key_id = hashlib.sha256(public).digest()[:20]
    return (
        _der(_SEQUENCE, _CONSTRAINTS, _TRUE, _der(_OCTETS, _der(_SEQUENCE, _TRUE))),
        _der(_SEQUENCE, _KEY_USAGE, _TRUE, _der(_OCTETS, _SIGNS_BOTH)),
        _der(_SEQUENCE, _ALT_NAME, _der(_OCTETS, _der(_SEQUENCE, _LOCAL_NAMES))),
        _der(_SEQUENCE, _KEY_ID, _der(_OCTETS, _der(_OCTETS, key_id))),
    )


def _name() -> bytes:
    return _der(_SEQUENCE, _der(_SET, _der(_SEQUENCE, _COMMON_NAME, _der(_UTF8, NAME.encode()))))


def _time(moment: datetime) -> bytes:
    return _der(_TIME, moment.strftime("%y%m%d%H%M%SZ").encode())


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
