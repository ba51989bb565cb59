"""Who may do what: the key of a call, the employee it names, and whether a run's authority still stands (PA-021)."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.bearer import token_of
from lab.partner.model.refusals import Refusal, credential_rejected, execution_denied, unavailable
from lab.partner.model.state import State
from lab.partner.model.words import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer key of a call. `key_hash` is what stands in the state in place of the key (PRIV-019)."""

    role: str
    namespace: str
    scopes: frozenset[str]
    key_hash: str


@dataclass(frozen=True, slots=True)
class Actor:
    """The employee a call acts for, with an active membership and a current lease."""

    actor_id: str
    team_id: str
    subject_version: int
    membership_version: int


@dataclass(frozen=True, slots=True)
class RunAuthority:
    """What a run was admitted with. It names the key's role, not its value: a rotation ends no run (MSG-036)."""

    key_role: str
    namespace: str
    actor_id: str
    team_id: str
    agent_id: str
    conversation_id: str
    subject_version: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that the caller may see. `server_id` and `destination` are None together: conversation only."""

    conversation_id: str
    actor_id: str
    team_id: str
    agent_id: str
    server_id: str | None
    destination: str | None
    guest: bool
    closed: bool


def key_hash(key: str) -> str:
    """What the state keeps of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Authority:
    """Checks against the state as it is now. `now_ms` is the model's wall clock, which a lab control can move."""

    def __init__(self, state: State, organization_id: str, now_ms: Callable[[], int]) -> None:
        self._state = state
        self._organization_id = organization_id
        self._now_ms = now_ms

    def check_key(self, authorization: Sequence[str], organization_id: str | None) -> Caller:
        """The caller, or 401 (PA-036). `organization_id` is the one of the path, None where the path has none.

        Every living key is compared, so that the time tells nothing of which one is near (PRIV-019).
        """
        token = token_of(authorization)
        given = key_hash("" if token is None else token)
        found: sqlite3.Row | None = None
        for row in self._state.rows("SELECT * FROM keys WHERE revoked = 0 ORDER BY key_hash"):
            if hmac.compare_digest(str(row["key_hash"]), given):
                found = row
        if token is None or found is None:
            raise credential_rejected("no key" if token is None else "unknown key")
        if organization_id is not None and organization_id != self._organization_id:
            raise credential_rejected("another organization")
        scopes = frozenset(str(found["scopes"]).split())
        return Caller(str(found["role"]), str(found["namespace"]), scopes, given)

    def check_scope(self, caller: Caller, *scopes: Scope) -> None:
        """403 unless the key has one of `scopes` (PA-010, PA-037)."""
        if not any(scope in caller.scopes for scope in scopes):
            raise execution_denied("scope")

    def actor_of(self, caller: Caller, external_user_id: str, external_team_id: str) -> Actor:
        """The employee with an active membership and a current lease; else 403, or 404 for what is gone (PA-049)."""
        team = self._state.row("SELECT * FROM teams WHERE external_team_id = ?", external_team_id)
        if team is None or team["removed"]:
            raise unavailable("team")
        identity = self._state.row(
            "SELECT * FROM identities WHERE namespace = ? AND external_user_id = ?", caller.namespace, external_user_id
        )
        if identity is None:
            raise execution_denied("no membership")
        if identity["deleted"]:
            # MB-029: a deleted identity is a removed thing
            raise unavailable("identity")
        version = self._standing(identity["actor_id"], team["team_id"])
        if isinstance(version, Refusal):
            raise version
        return Actor(identity["actor_id"], team["team_id"], identity["subject_version"], version)

    def conversation_of(self, actor: Actor, conversation_id: str) -> Conversation:
        """The actor's own conversation; 404 for one that is unknown, removed or another's (CV-013, PA-039)."""
        found = self.find_conversation(conversation_id)
        if found is None or (found.actor_id, found.team_id) != (actor.actor_id, actor.team_id):
            raise unavailable("conversation")
        return found

    def find_conversation(self, conversation_id: str) -> Conversation | None:
        """A conversation of the organization, whoever it belongs to; None when unknown or removed."""
        row = self._state.row("SELECT * FROM conversations WHERE conversation_id = ? AND removed = 0", conversation_id)
        if row is None:
            return None
        return Conversation(
            row["conversation_id"],
            row["actor_id"],
            row["team_id"],
            row["agent_id"],
            row["server_id"],
            row["destination"],
            bool(row["guest"]),
            bool(row["closed"]),
        )

    def still_allowed(self, authority: RunAuthority) -> Refusal | None:
        """Why a run may do nothing further now, None while it may (PA-021, MB-037). A role change is no reason."""
        roles = "SELECT COUNT(*) FROM keys WHERE role = ? AND revoked = 0"
        if self._state.count(roles, authority.key_role) == 0:
            return execution_denied("key revoked")
        identity = self._state.row("SELECT * FROM identities WHERE actor_id = ?", authority.actor_id)
        if identity is None or identity["deleted"] or identity["subject_version"] != authority.subject_version:
            return execution_denied("subject epoch")
        if self.find_conversation(authority.conversation_id) is None:
            return unavailable("conversation")
        standing = self._standing(authority.actor_id, authority.team_id)
        return standing if isinstance(standing, Refusal) else None

    def may_deliver(self, caller: Caller, authority: RunAuthority) -> Refusal | None:
        """As `still_allowed`, and the very key that opened the stream must still count (MSG-036, SSE-037)."""
        living = "SELECT COUNT(*) FROM keys WHERE key_hash = ? AND revoked = 0"
        if self._state.count(living, caller.key_hash) == 0:
            return credential_rejected("key rotated")
        return self.still_allowed(authority)

    def lease_end_ms(self, actor_id: str, team_id: str) -> int | None:
        """When the present lease lapses, so that a waiting stream can look again then."""
        row = self._membership(actor_id, team_id)
        return None if row is None or not row["active"] else row["valid_until_ms"]

    def _standing(self, actor_id: str, team_id: str) -> int | Refusal:
        """The membership's version, or why it gives no right now."""
        row = self._membership(actor_id, team_id)
        if row is None:
            return execution_denied("no membership")
        if not row["active"]:
            return execution_denied("membership revoked")
        if row["valid_until_ms"] is None or row["valid_until_ms"] <= self._now_ms():
            return execution_denied("lease lapsed")
        version: int = row["version"]
        return version

    def _membership(self, actor_id: str, team_id: str) -> sqlite3.Row | None:
        return self._state.row("SELECT * FROM memberships WHERE actor_id = ? AND team_id = ?", actor_id, team_id)
