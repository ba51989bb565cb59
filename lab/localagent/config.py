"""What the reference agent is told before it starts, and reading that from environment variables."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lab.errors import UsageError

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"", "false", "0", "no", "off"})
SIGNATURE_MODES = ("off", "warn", "enforce")
# LA-005, LA-006: defaults and limits of the two clamped settings.
MAX_IN_FLIGHT = (8, 1, 64)
HANDSHAKE_MS = (10_000, 1_000, 60_000)
MAX_WORKSPACES = 64
KEY_BYTES = 32


@dataclass(frozen=True)
class Workspace:
    """A folder that jobs may work in. The path stays on this machine (SEC-006)."""

    workspace_id: str
    path: str
    folder: str = ""
    """Where its files are, when they are not at `path`: what is announced need not depend on where a run lies."""

    @property
    def files(self) -> Path:
        """The folder that is listed."""
        return Path(self.folder or self.path)

    @property
    def path_digest(self) -> bytes:
        """SHA-256 of the path as configured, in UTF-8."""
        return hashlib.sha256(self.path.encode("utf-8", "surrogateescape")).digest()

    @property
    def path_sha256(self) -> str:
        """What `register` says of the path: 64 hex digits."""
        return self.path_digest.hex()

    @property
    def root_ref(self) -> str:
        """The same digest in the form of an opaque ref: the first ref of `file.list` (CH-033)."""
        return base64.urlsafe_b64encode(self.path_digest).rstrip(b"=").decode()


@dataclass(frozen=True)
class AgentConfig:
    """Settings of one reference agent. Times are seconds unless the name ends in `_ms`."""

    tenant_id: str
    agent_id: str
    gateway_ws_url: str
    gateway_token: str = field(repr=False)
    agent2_url: str
    agent2_token: str = field(repr=False)
    workspaces: tuple[Workspace, ...]
    trusted_keys: Mapping[str, bytes] = field(repr=False)
    state_dir: Path
    signature_mode: str = "enforce"
    chat: bool = False
    inline_16k: bool = True
    """Whether it announces that it takes inline inputs above 4096 characters (CHAT-004)."""
    clock_ahead: float = 0.0
    """How far its clock is ahead of the right time in all that it says to the gateway, in seconds."""
    max_in_flight: int = MAX_IN_FLIGHT[0]
    handshake_ms: int = HANDSHAKE_MS[0]
    stream_hold: float = 8.0
    """How long a job.stream request waits for something new (CHAT-036)."""
    stream_drain: float = 3.0
    """How long the streams may stay open after the job's result (CHAT-031)."""
    stream_reconnects: int = 5
    """Attempts in a row to open a broken stream again (A2-043)."""
    stream_retry: float = 0.25
    """Wait before attempt n is n times this (A2-042)."""
    stream_idle: float = 0.0
    """A stream silent for so long counts as broken; 0 switches the guard off (A2-032)."""
    cancel_wait: float = 10.0
    """How long agent2 has to end a cancelled job by itself (LA-021)."""
    request_timeout: float = 10.0
    job_timeout: float = 3600.0
    queue: int = 16
    """Jobs that may wait behind the running one."""
    polls: int = 16
    """job.stream requests that may wait at a time (CHAT-070)."""
    audit_notes: bool = True
    """Notes go out as audit.event frames too, not only to the local log."""

    def workspace(self, workspace_id: str) -> Workspace | None:
        """The workspace of that id, if this agent has it."""
        return next((item for item in self.workspaces if item.workspace_id == workspace_id), None)


def from_environment(environ: Mapping[str, str]) -> tuple[AgentConfig, list[str]]:
    """The settings of `lab serve local-agent` with the warnings they give.

    A variable that is missing or malformed raises `UsageError`; the message names it and its form, never its value.
    """
    warnings: list[str] = []
    config = AgentConfig(
        tenant_id=_uuid(environ, "LAB_TENANT_ID"),
        agent_id=_uuid(environ, "LAB_AGENT_ID"),
        gateway_ws_url=_url(environ, "LAB_GATEWAY_WS_URL", ("ws", "wss")),
        gateway_token=_required(environ, "LAB_GATEWAY_TOKEN", "the credential of the agent at the gateway"),
        agent2_url=_url(environ, "LAB_AGENT2_URL", ("http", "https")).rstrip("/"),
        agent2_token=_required(environ, "LAB_AGENT2_TOKEN", "the bearer token of the running agent2"),
        workspaces=_workspaces(environ),
        trusted_keys=_trusted_keys(environ),
        state_dir=Path(_required(environ, "LAB_STATE_DIR", "a folder that the agent may write to")),
        signature_mode=_signature_mode(environ),
        chat=truth(environ, "LOCAL_AGENT_CHAT", warnings),
        max_in_flight=_clamped(environ, "LOCAL_AGENT_V2_MAX_IN_FLIGHT", MAX_IN_FLIGHT, warnings),
        handshake_ms=_clamped(environ, "LOCAL_AGENT_V2_HANDSHAKE_MS", HANDSHAKE_MS, warnings),
    )
    return config, warnings


def truth(environ: Mapping[str, str], name: str, warnings: list[str]) -> bool:
    """A switch: true, 1, yes, on; or unset, empty, false, 0, no, off; anything else is off with a warning."""
    word = environ.get(name, "").strip().lower()
    # LA-001, CHAT-063: the same words for every switch.
    if word not in _TRUE and word not in _FALSE:
        warnings.append(f"{name} is none of true, 1, yes, on, false, 0, no, off: taken as off")
    return word in _TRUE


def _fault(name: str, form: str, missing: bool) -> UsageError:
    return UsageError(f"{name} {'is not set' if missing else 'is malformed'}. It must be {form}.")


def _required(environ: Mapping[str, str], name: str, form: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise _fault(name, form, missing=True)
    return value


def _uuid(environ: Mapping[str, str], name: str) -> str:
    form = "a UUID"
    # LA-004: trimmed and lower-cased before it is judged.
    value = _required(environ, name, form).lower()
    if not _UUID.fullmatch(value):
        raise _fault(name, form, missing=False)
    return value


def _url(environ: Mapping[str, str], name: str, schemes: tuple[str, ...]) -> str:
    form = f"a URL that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"
    value = _required(environ, name, form)
    try:
        parts = urlsplit(value)
        sound = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        sound = False
    if not sound:
        raise _fault(name, form, missing=False)
    return value


def _signature_mode(environ: Mapping[str, str]) -> str:
    mode = environ.get("LAB_SIGNATURE_MODE", "").strip().lower() or "enforce"
    if mode not in SIGNATURE_MODES:
        raise _fault("LAB_SIGNATURE_MODE", "off, warn or enforce", missing=False)
    return mode


def _clamped(environ: Mapping[str, str], name: str, limits: tuple[int, int, int], warnings: list[str]) -> int:
    default, least, most = limits
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        warnings.append(f"{name} is no whole number: {default} is used")
        return default
    value = min(max(int(text), least), most)
    if value != int(text):
        warnings.append(f"{name} lies outside {least} to {most}: {value} is used")
    return value


def _workspaces(environ: Mapping[str, str]) -> tuple[Workspace, ...]:
    name, form = "LAB_WORKSPACES", 'a JSON list of 1 to 64 {"workspaceId": id, "path": absolute path}, each id once'
    try:
        listed = json.loads(_required(environ, name, form))
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_WORKSPACES:
        raise _fault(name, form, missing=False)
    found = tuple(item for item in map(_workspace, listed) if item is not None)
    if len(found) != len(listed) or len({item.workspace_id for item in found}) != len(found):
        raise _fault(name, form, missing=False)
    return found


def _workspace(item: object) -> Workspace | None:
    if not isinstance(item, dict) or set(item) != {"workspaceId", "path"}:
        return None
    workspace_id, path = item["workspaceId"], item["path"]
    if not isinstance(workspace_id, str) or not _ID.fullmatch(workspace_id):
        return None
    if not isinstance(path, str) or "\0" in path or not Path(path).is_absolute():
        return None
    return Workspace(workspace_id, path)


def _trusted_keys(environ: Mapping[str, str]) -> dict[str, bytes]:
    name = "LAB_TRUSTED_KEYS"
    form = "keyId=base64 of a raw 32-byte Ed25519 public key; several are separated by commas"
    keys: dict[str, bytes] = {}
    for part in _required(environ, name, form).split(","):
        key_id, _, text = part.strip().partition("=")
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if not _ID.fullmatch(key_id) or len(raw) != KEY_BYTES or key_id in keys:
            raise _fault(name, form, missing=False)
        keys[key_id] = raw
    return keys
