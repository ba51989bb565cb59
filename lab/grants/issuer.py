"""The issuer as a pure core: a request in, an answer and what is journalled of it out.

Ids, nonces and the time are arguments of the core; keys are kept as hashes. A conversation is known once the driver
has registered the create call's answer, because the wire's request names neither actor nor team (GR-012).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from lab.clock import timestamp
from lab.errors import MisuseError
from lab.grants.binding import WORDS, GrantBinding, told_id
from lab.grants.seal import GrantTooLong, Seal
from lab.hashed_key import HashedKey
from lab.journal.partner_events import IssuerRequest, fingerprint

# GR-011: how long a grant lives
DEFAULT_TTL_S = 300
MIN_TTL_S = 1
MAX_TTL_S = 1800

MAX_TEXT = 2048
"""Characters of a member; a destination is the longest."""
KEPT_CONVERSATIONS = 10_000
KEPT_GRANTS = 10_000
"""Of older ones nothing is known: a grant that was minted before so many can no longer be revoked by name."""

_REGISTERED = {
    "actor_id": "actorId",
    "team_id": "teamId",
    "agent_id": "agentId",
    "destination": "destination",
}
_CLAIMS = {word: name for name, word in WORDS.items() if name != "grant_id"}


class Route(StrEnum):
    """What an issuer answers, by the names of the journal."""

    GRANTS = "grants"
    CONVERSATIONS = "conversations"
    LAB_GRANTS = "lab-grants"
    LAB_REVOCATIONS = "lab-revocations"


@dataclass(frozen=True, slots=True)
class IssuerAnswer:
    """An HTTP answer, and its entry of the journal."""

    status: int
    body: Mapping[str, object]
    event: IssuerRequest


@dataclass(frozen=True, slots=True)
class _Conversation:
    conversation_id: str
    actor_id: str
    team_id: str
    agent_id: str
    destination: str | None


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(slots=True)
class _Told:
    """What the journal hears of a request, gathered on the way."""

    conversation_id: str | None = None
    grant: str | None = None
    grant_id: str | None = None
    facts: dict[str, object] = field(default_factory=dict)

    def event(self, route: Route, status: int, code: str | None) -> IssuerRequest:
        """The entry; what was sent in the place of an id stands in it only where it looks like one."""
        conversation_id = None if self.conversation_id is None else told_id(self.conversation_id)
        known = conversation_id if isinstance(conversation_id, str) else None
        return IssuerRequest(str(route), status, code, known, self.grant, self.grant_id, self.facts)


class IssuerCore:
    """The grants of one organization and environment.

    `ids` gives fresh grant ids, `nonce` 24 fresh bytes, `now_ms` the time in milliseconds since 1970. Grants live
    `ttl_s` seconds (1 to 1800), and none past `ends_at_ms`, the end of the fixture. The three keys must differ.
    """

    def __init__(
        self,
        seal: Seal,
        issuer_key: str,
        register_key: str,
        control_key: str,
        organization_id: str,
        environment: str,
        *,
        ids: Callable[[], str],
        nonce: Callable[[], bytes],
        now_ms: Callable[[], int],
        ttl_s: int = DEFAULT_TTL_S,
        ends_at_ms: int | None = None,
    ) -> None:
        if not MIN_TTL_S <= ttl_s <= MAX_TTL_S:
            raise MisuseError(f"a grant lives {MIN_TTL_S} to {MAX_TTL_S} seconds, not {ttl_s}")
        if len({issuer_key, register_key, control_key}) < 3:
            # GR-020
            raise MisuseError("the issuer's three keys must be different ones")
        self._seal = seal
        self._keys = {
            Route.GRANTS: HashedKey(issuer_key),
            Route.CONVERSATIONS: HashedKey(register_key),
            Route.LAB_GRANTS: HashedKey(control_key),
            Route.LAB_REVOCATIONS: HashedKey(control_key),
        }
        self._organization_id = organization_id
        self._environment = environment
        self._ids = ids
        self._nonce = nonce
        self._now_ms = now_ms
        self._ttl_ms = ttl_s * 1000
        self._ends_at_ms = ends_at_ms
        self._conversations: dict[str, _Conversation] = {}
        self._minted: dict[str, str] = {}
        """The conversation of each grant, by the grant's id."""
        self._revoked: dict[str, int] = {}
        """When each was revoked, by its id: what has expired since then need not be known any more."""

    def is_revoked(self, grant_id: str) -> bool:
        """Whether a grant was revoked; what the store asks at each call."""
        return grant_id in self._revoked

    def answer_untrusted(self, route: Route, authorizations: Sequence[str], body: bytes) -> IssuerAnswer:
        """Answer a request with these Authorization headers. Never raises."""
        told = _Told()
        status, code = 200, None
        try:
            # GR-002, GR-015: each route has a key of its own
            if not self._keys[route].borne_by(authorizations):
                raise _Refused(401, "unauthorized", "This route needs its own key as a bearer.")
            members = _object(body)
            answers = {
                Route.GRANTS: self._mint,
                Route.CONVERSATIONS: self._register,
                Route.LAB_GRANTS: self._mint_wrong,
                Route.LAB_REVOCATIONS: self._revoke,
            }
            answer = answers[route](members, told)
        except _Refused as refused:
            # GR-013: what an error looks like
            status, code = refused.status, refused.code
            answer = {"error": {"code": refused.code, "message": refused.message}}
        return IssuerAnswer(status, answer, told.event(route, status, code))

    def _mint(self, members: Mapping[str, object], told: _Told) -> dict[str, object]:
        # GR-001, GR-015: these three members and no other
        given = _texts(members, ("conversationId", "agentId", "destination"))
        conversation = self._known(given["conversationId"], told)
        if given["agentId"] != conversation.agent_id or given["destination"] != conversation.destination:
            raise _Refused(403, "forbidden", "The agent or the destination is not the conversation's.")
        told.facts |= {"agentId": told_id(conversation.agent_id), "destination": told_id(given["destination"])}
        return self._seal_and_tell(self._binding(conversation), told)

    def _register(self, members: Mapping[str, object], told: _Told) -> dict[str, object]:
        given = _texts(members, ("conversationId", "actorId", "teamId", "agentId"), ("destination",))
        destination = members.get("destination")
        if destination is not None and not isinstance(destination, str):
            raise _invalid("`destination` is a text or null.")
        conversation = _Conversation(
            given["conversationId"], given["actorId"], given["teamId"], given["agentId"], destination
        )
        told.conversation_id = conversation.conversation_id
        known = self._conversations.setdefault(conversation.conversation_id, conversation)
        if known != conversation:
            raise _Refused(409, "conflict", "The conversation is registered with other attributes.")
        ids = {name: getattr(known, attribute) for attribute, name in _REGISTERED.items()}
        told.facts = {name: None if id_ is None else told_id(id_) for name, id_ in ids.items()}
        _forget_oldest(self._conversations, KEPT_CONVERSATIONS)
        return {"conversationId": conversation.conversation_id}

    def _mint_wrong(self, members: Mapping[str, object], told: _Told) -> dict[str, object]:
        """{conversationId, claims?: {…}, ttlMs?}: a grant with these claims and life in place of the conversation's.

        A life of 0 ms is over already.
        """
        named = _texts(members, ("conversationId",), ("claims", "ttlMs"))
        binding = self._binding(self._known(named["conversationId"], told))
        claims, ttl_ms = members.get("claims", {}), members.get("ttlMs")
        if not isinstance(claims, dict):
            raise _invalid("`claims` is an object.")
        if set(claims) - set(_CLAIMS):
            raise _invalid(f"`claims` are some of {', '.join(_CLAIMS)}.")
        texts = _texts(claims, tuple(claims))
        wrong: dict[str, Any] = {_CLAIMS[word]: text for word, text in texts.items()}
        if ttl_ms is not None:
            if type(ttl_ms) is not int or not 0 <= ttl_ms <= MAX_TTL_S * 1000:
                raise _invalid(f"`ttlMs` is a whole number from 0 to {MAX_TTL_S * 1000}.")
            wrong["expires_at_ms"] = binding.issued_at_ms + ttl_ms
        told.facts["claims"] = {word: told_id(text) for word, text in texts.items()}
        binding = replace(binding, **wrong)
        return self._seal_and_tell(binding, told) | {"grantId": binding.grant_id}

    def _revoke(self, members: Mapping[str, object], told: _Told) -> dict[str, object]:
        """{grant}, {grantId} or {conversationId}: that grant, or all that were minted for the conversation so far."""
        if len(members) != 1:
            raise _invalid("Name one of `grant`, `grantId` and `conversationId`.")
        ((word, name),) = _texts(members, tuple(members)).items()
        found = self._named(word, name, told)
        now = self._now_ms()
        for grant_id in found:
            self._revoked[grant_id] = now
        _forget_before(self._revoked, now - MAX_TTL_S * 1000)
        told.facts["grantIds"] = found
        return {"revoked": found}

    def _named(self, word: str, name: str, told: _Told) -> list[str]:
        if word == "conversationId":
            self._known(name, told)
            return [grant_id for grant_id, conversation_id in self._minted.items() if conversation_id == name]
        if word == "grant":
            binding = self._seal.open(name)
            name = binding.grant_id if binding else ""
        elif word != "grantId":
            raise _invalid("Name one of `grant`, `grantId` and `conversationId`.")
        if name not in self._minted:
            raise _Refused(404, "not_found", "The issuer knows no such grant.")
        told.grant_id, told.conversation_id = name, self._minted[name]
        return [name]

    def _known(self, conversation_id: str, told: _Told) -> _Conversation:
        conversation = self._conversations.get(conversation_id)
        # GR-012: not before the registration. GR-017: nor for one without a store.
        if conversation is None or conversation.destination is None:
            raise _Refused(404, "not_found", "The issuer knows no such conversation with a store.")
        told.conversation_id = conversation_id
        return conversation

    def _binding(self, conversation: _Conversation) -> GrantBinding:
        now = self._now_ms()
        ends = now + self._ttl_ms if self._ends_at_ms is None else min(now + self._ttl_ms, self._ends_at_ms)
        if ends <= now:
            raise _Refused(403, "ended", "The fixture has ended; start it anew.")
        return GrantBinding(
            grant_id=self._ids(),
            organization_id=self._organization_id,
            environment=self._environment,
            team_id=conversation.team_id,
            actor_id=conversation.actor_id,
            agent_id=conversation.agent_id,
            conversation_id=conversation.conversation_id,
            destination=conversation.destination or "",
            issued_at_ms=now,
            expires_at_ms=ends,
        )

    def _seal_and_tell(self, binding: GrantBinding, told: _Told) -> dict[str, object]:
        try:
            grant = self._seal.seal(binding, self._nonce())
        except GrantTooLong as error:
            raise _invalid("The conversation's ids are too long for a grant.") from error
        # GR-014: earlier grants stay good
        self._minted[binding.grant_id] = str(told.conversation_id)
        _forget_oldest(self._minted, KEPT_GRANTS)
        told.grant, told.grant_id = fingerprint(grant), binding.grant_id
        told.facts["expiresAtMs"] = binding.expires_at_ms
        # GR-008, GR-019: bare, the expiry as text
        return {"grant": grant, "expiresAt": timestamp(binding.expires_at_ms)}


def _object(body: bytes) -> Mapping[str, object]:
    try:
        members: object = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise _invalid("The body is a JSON object.")
    return members


def _texts(members: Mapping[str, object], due: Sequence[str], others: Sequence[str] = ()) -> dict[str, str]:
    """The members `due`, each a text of a sane length; any member but these and `others` is refused."""
    if set(members) - {*due, *others} or set(due) - set(members):
        raise _invalid(f"The members are {', '.join(due)}" + (f" and perhaps {', '.join(others)}." if others else "."))
    texts = {name: member for name, member in members.items() if name in due and isinstance(member, str)}
    if len(texts) < len(due) or not all(0 < len(text) <= MAX_TEXT for text in texts.values()):
        raise _invalid(f"Each member is a text of 1 to {MAX_TEXT} characters.")
    return texts


def _invalid(message: str) -> _Refused:
    return _Refused(400, "invalid", message)


def _forget_before(times: dict[str, int], earliest: int) -> None:
    while times and times[next(iter(times))] < earliest:
        del times[next(iter(times))]


def _forget_oldest(kept: dict[str, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
