"""The private file in which a started API says where it is, and with which keys."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab.errors import EnvironmentFault, UsageError
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.members import BadShape, moment_untrusted
from lab.private_files import read_private

FIXTURE_OUTPUT = Path(".orca/logs/server-chat-fixture.json")
"""Below the workspace's root (FX-017, FX-031)."""

MARGIN_MS = 60_000
"""With less time left no step is begun (FX-039)."""

MOST_BYTES = 64 * 1024

_REQUIRED = (
    *("apiOrigin", "organizationId", "namespace", "environment"),
    *("provisioningKey", "chatKey", "destination", "staticCredential"),
)
_EXPIRIES = ("expiresAt", "fixtureExpiresAt")
_ENVIRONMENTS = ("test", "production")
_VISIBLE = re.compile(r"[!-~]{1,1024}", re.ASCII)


class FixtureRefused(UsageError):
    """A fixture file that must not or cannot be used; the message names the file and the member, never a value."""


class FixtureExpired(FixtureRefused):
    """A fixture that has ended by itself (FX-011)."""


@dataclass(frozen=True, slots=True)
class FixtureOutput:
    """A file that may be used. `ends_at_ms` is the earlier of its two ends, in milliseconds since 1970 (FX-030)."""

    api_origin: str
    organization_id: str
    namespace: str
    environment: str
    destination: str
    ends_at_ms: int
    chat_key: str = field(repr=False)
    provisioning_key: str = field(repr=False)
    static_credential: str = field(repr=False)
    issuer: IssuerTarget | None = None
    """In mock mode alone (FX-020)."""
    instance_id: str | None = None
    agent_id: str | None = None
    external_team_id: str | None = None

    def has_time(self, now_ms: int) -> bool:
        """Whether a step may still begin (FX-039)."""
        return self.ends_at_ms - now_ms >= MARGIN_MS

    @property
    def secrets(self) -> dict[str, str]:
        """What must stand nowhere, by name."""
        named = {
            "chat-key": self.chat_key,
            "provisioning-key": self.provisioning_key,
            "static-credential": self.static_credential,
        }
        return named if self.issuer is None else {**named, "issuer-key": self.issuer.issuer_key}


def read_fixture_output(path: Path, now_ms: int, *, allow_production: bool = False) -> FixtureOutput:
    """Read the file anew. Raises `FixtureRefused` for one that is absent, open to others or incomplete.

    For one past its end it raises `FixtureExpired`.
    """
    members = _members(path)
    for name in _REQUIRED:
        if not isinstance(members.get(name), str) or not members[name]:
            raise FixtureRefused(
                f"{path}: `{name}` is missing or no text. Start the fixture again, it writes a new file."
            )
    if members["environment"] not in _ENVIRONMENTS:
        raise FixtureRefused(f"{path}: `environment` is neither test nor production")
    if members["environment"] == "production" and not allow_production:
        # FX-043
        raise FixtureRefused(
            f"{path}: `environment` is production, which is driven only when that is allowed expressly"
        )
    _check_keys(path, members)
    ends_at_ms = _end(path, members)
    if ends_at_ms <= now_ms:
        raise FixtureExpired(f"{path}: the fixture has expired. Start it again, it writes a new file.")
    return FixtureOutput(
        _origin(path, members["apiOrigin"]),
        members["organizationId"],
        members["namespace"],
        members["environment"],
        members["destination"],
        ends_at_ms,
        members["chatKey"],
        members["provisioningKey"],
        members["staticCredential"],
        _issuer(path, members),
        _text(members, "instanceId"),
        _text(members, "agentId"),
        _text(members, "externalTeamId"),
    )


def find_fixture_output(path: Path, now_ms: int) -> tuple[FixtureOutput | None, str]:
    """The file's target, or None for the lab's own double, and the words that tell people which (FX-033).

    Only an absent and an expired file lead to the double; one that is wrong raises `FixtureRefused`.
    """
    if not path.exists():
        return None, "the lab's own partner API, as there is no fixture file"
    try:
        found = read_fixture_output(path, now_ms)
    except FixtureExpired:
        return None, "the lab's own partner API, as the fixture file has expired"
    return found, f"the fixture at {found.api_origin}"


def _members(path: Path) -> dict[str, Any]:
    try:
        text = read_private(path, MOST_BYTES)
    except EnvironmentFault as error:
        raise FixtureRefused(str(error)) from error
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise FixtureRefused(f"{path}: not the JSON object that a fixture writes")
    return members


def _check_keys(path: Path, members: dict[str, Any]) -> None:
    names = [name for name in ("chatKey", "provisioningKey", "staticCredential", "grantIssuerKey") if name in members]
    for name in names:
        if not isinstance(members[name], str) or _VISIBLE.fullmatch(members[name]) is None:
            raise FixtureRefused(f"{path}: `{name}` is no key: visible characters without spaces are due")
    for index, name in enumerate(names):
        for other in names[index + 1 :]:
            if members[name] == members[other]:
                # FX-019, GR-020
                raise FixtureRefused(f"{path}: `{name}` and `{other}` are the same key; each must be its own")


def _end(path: Path, members: dict[str, Any]) -> int:
    try:
        ends = [moment_untrusted(members[name], name).ms for name in _EXPIRIES if members.get(name) is not None]
    except BadShape as wrong:
        raise FixtureRefused(f"{path}: `{wrong}` is no time in ISO 8601 with a zone") from wrong
    if not ends:
        raise FixtureRefused(f"{path}: neither `expiresAt` nor `fixtureExpiresAt` is there")
    return min(ends)


def _origin(path: Path, text: str) -> str:
    """Scheme, host and port; a slash behind them is dropped (FX-042)."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    bare = not (parts.query or parts.fragment or parts.username or parts.password) and parts.path in ("", "/")
    if parts.scheme not in ("http", "https") or not parts.hostname or not bare:
        raise FixtureRefused(f"{path}: `apiOrigin` is no http(s) origin: scheme, host and port without a path")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port is None else f":{port}")


def _issuer(path: Path, members: dict[str, Any]) -> IssuerTarget | None:
    url, key = _text(members, "grantIssuerUrl"), _text(members, "grantIssuerKey")
    if (url is None) != (key is None):
        raise FixtureRefused(f"{path}: `grantIssuerUrl` and `grantIssuerKey` belong together; one of them is missing")
    if url is None or key is None:
        return None
    # GR-012: the lab's own issuer takes registrations; one that knows its conversations by itself names no such route.
    return IssuerTarget(url, key, _text(members, "registerUrl"), _text(members, "registerKey"))


def _text(members: dict[str, Any], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) and value else None
