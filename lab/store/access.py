"""Who may do what: the doors of the endpoint, the static credential, and the grant of a tools/call."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from urllib.parse import urlsplit

from lab.grants.binding import GrantBinding
from lab.grants.seal import Seal
from lab.hashed_key import HashedKey
from lab.journal.partner_events import fingerprint
from lab.store.exchange import HttpRequest, Seen
from lab.store.settings import StoreSettings

_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,256}")


class Reason(StrEnum):
    """Why no tool ran, by the names of the journal."""

    STATIC = "static"
    GRANT_MISSING = "grant-missing"
    GRANT_UNKNOWN = "grant-unknown"
    GRANT_EXPIRED = "grant-expired"
    GRANT_REVOKED = "grant-revoked"
    GRANT_DESTINATION = "grant-destination"
    GRANT_CONVERSATION = "grant-conversation"
    GRANT_ORGANIZATION = "grant-organization"
    GRANT_ENVIRONMENT = "grant-environment"
    SESSION = "session"
    SHAPE = "shape"
    ORDERED = "ordered"


class Denied(Exception):
    """A tools/call that may not run."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Access:
    """The store's rules of access. Without a static credential the store is open: nothing is asked of anybody."""

    def __init__(
        self,
        settings: StoreSettings,
        static_credential: str | None,
        seal: Seal | None,
        is_revoked: Callable[[str], bool],
    ) -> None:
        self._settings = settings
        self._credential = None if static_credential is None else HashedKey(static_credential)
        self._seal = seal
        self._is_revoked = is_revoked

    @property
    def open(self) -> bool:
        """Whether anybody may do anything."""
        return self._credential is None

    def comes_from_here(self, request: HttpRequest) -> bool:
        """Whether Host is a name of this machine, and Origin, where there is one, a page of it (MCP-024)."""
        if not _is_host(request.one("Host") or "", self._settings.hosts):
            return False
        return all(self._is_own_origin(origin) for origin in request.all("Origin"))

    def bears_credential(self, request: HttpRequest) -> bool:
        """Whether the static credential came (MCP-015)."""
        return self._credential is None or self._credential.borne_by(request.all("Authorization"))

    def check_call(self, request: HttpRequest, now_ms: int, seen: Seen) -> None:
        """Judge the grant and the ids of a tools/call, and note them; raises `Denied`."""
        if self.open:
            return
        names = self._settings.headers
        seen.turn_id, seen.call_id = _id(request, names.turn), _id(request, names.call)
        seen.conversation_header = _id(request, names.conversation)
        binding = self._opened(request, seen)
        if reason := self._misfit(binding, request, now_ms):
            raise Denied(reason)
        # MCP-003: the partner's server names turn and call itself, at each call
        if seen.turn_id is None or seen.call_id is None:
            raise Denied(Reason.SHAPE)

    def _opened(self, request: HttpRequest, seen: Seen) -> GrantBinding:
        grants = request.all(self._settings.headers.grant)
        if not grants:
            raise Denied(Reason.GRANT_MISSING)
        seen.grant = fingerprint(grants[0])
        binding = self._seal.open(grants[0]) if self._seal is not None and len(grants) == 1 else None
        if binding is None:
            raise Denied(Reason.GRANT_UNKNOWN)
        seen.binding = binding.told()
        return binding

    def _misfit(self, binding: GrantBinding, request: HttpRequest, now_ms: int) -> Reason | None:
        settings = self._settings
        if now_ms >= binding.expires_at_ms:
            return Reason.GRANT_EXPIRED
        if self._is_revoked(binding.grant_id):
            return Reason.GRANT_REVOKED
        # CX-017, MCP-002: what the store can judge by itself; actor, team and agent it cannot
        if settings.organization_id not in (None, binding.organization_id):
            return Reason.GRANT_ORGANIZATION
        if settings.environment not in (None, binding.environment):
            return Reason.GRANT_ENVIRONMENT
        if binding.destination != settings.destination:
            return Reason.GRANT_DESTINATION
        named = request.all(settings.headers.conversation)
        if any(name != binding.conversation_id for name in named):
            return Reason.GRANT_CONVERSATION
        return None

    def _is_own_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and _is_host(host, self._settings.hosts)


@lru_cache(maxsize=64)
def _is_host(value: str, hosts: tuple[str, ...]) -> bool:
    """Whether `value` is one of `hosts`, with or without a port."""
    try:
        parts = urlsplit(f"//{value}")
        parts.port  # noqa: B018  raises for what is no port
    except ValueError:
        return False
    if parts.netloc != value or parts.username is not None or parts.path:
        return False
    name = parts.hostname or ""
    return (f"[{name}]" if ":" in name else name) in hosts


def _id(request: HttpRequest, name: str) -> str | None:
    """An id from a header. None for what is none: it could be anything, and would be written down."""
    value = request.one(name)
    return value if value is not None and _ID.fullmatch(value) else None
