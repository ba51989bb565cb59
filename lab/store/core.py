"""The store as a pure core: an HTTP request and the time in; what is written and what is journalled out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from lab.grants.seal import Seal
from lab.store import wire_2025, wire_2026
from lab.store.access import Access, Denied, Reason
from lab.store.answers import Reply, deliver, listening, resumed
from lab.store.exchange import Delivery, Handled, HttpRequest, Seen
from lab.store.headers import (
    LAST_EVENT_ID,
    META_VERSION,
    METHOD,
    PROTOCOL_VERSION,
    SESSION,
    SESSION_VERSIONS,
    STATELESS_VERSION,
    Code,
    Era,
)
from lab.store.methods import Asked, Methods
from lab.store.misbehaviour import Misbehaviour, Misbehaviours, Wrong
from lab.store.refusals import Refused, refuse
from lab.store.rpc import Call, Notice, Returned, RpcFault, error_message, read_untrusted
from lab.store.sessions import Session, Sessions
from lab.store.settings import StoreSettings
from lab.store.tools import ToolSet

MAX_BODY_BYTES = 1 << 20

_WORD = re.compile(r"[A-Za-z0-9_./$-]{1,128}")
_CHALLENGE = (("WWW-Authenticate", 'Bearer realm="store"'),)
_LATER = (("Retry-After", "1"),)


class StoreCore:
    """One store.

    `static_credential` None leaves it open to anybody: the profile in which conformance runners, which can send no
    headers, see it. `is_revoked` is the issuer's; `session_ids` gives ids that nobody can guess.
    """

    def __init__(
        self,
        settings: StoreSettings,
        tools: ToolSet,
        *,
        static_credential: str | None,
        seal: Seal | None,
        is_revoked: Callable[[str], bool],
        session_ids: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._access = Access(settings, static_credential, seal, is_revoked)
        self._sessions = Sessions(session_ids)
        self._methods = Methods(settings, tools, self._sessions)
        self._wrongs = Misbehaviours()

    def misbehave(self, rules: Iterable[Misbehaviour], *, also: bool = False) -> None:
        """From now on these rules hold, in place of those before, or beside them with `also`. None: behave."""
        if also:
            self._wrongs.add(rules)
        else:
            self._wrongs.set(rules)

    def lose_sessions(self) -> int:
        """Forget all sessions (MCP-026); how many there were."""
        return self._sessions.end_all()

    def handle_untrusted(self, request: HttpRequest, now_ms: int) -> Handled:
        """Answer a request at the MCP endpoint. Never raises."""
        seen = Seen(request.method)
        try:
            delivery = self._handle(request, now_ms, seen)
        except Refused as refused:
            seen.refused = refused.reason
            if refused.reply.message is not None:
                seen.rpc_error = refused.reply.message["error"]["code"]
            delivery = deliver(refused.reply)
        return Handled(delivery, seen.event(delivery))

    def _handle(self, request: HttpRequest, now_ms: int, seen: Seen) -> Delivery:
        if not self._access.comes_from_here(request):
            raise refuse(403, Code.INVALID_REQUEST, "Host and Origin must be this machine.")
        # MCP-015: on every method
        if not self._access.bears_credential(request):
            message = "The static credential is missing or wrong."
            raise refuse(401, Code.ACCESS, message, reason=Reason.STATIC, headers=_CHALLENGE)
        if request.method == "POST":
            return self._post(request, now_ms, seen)
        sessions_served = Era.SESSIONS in self._settings.eras
        if request.method == "GET" and sessions_served:
            return self._get(request, seen)
        if request.method == "DELETE" and sessions_served:
            seen.era = Era.SESSIONS
            self._sessions.end(wire_2025.admit(request, self._sessions, seen))
            return Delivery(200)
        raise _not_allowed("GET, POST, DELETE" if sessions_served else "POST")

    def _get(self, request: HttpRequest, seen: Seen) -> Delivery:
        """A session's own stream, or the rest of one that was cut."""
        seen.era = Era.SESSIONS
        if not _accepts(request, "text/event-stream"):
            raise refuse(406, Code.INVALID_REQUEST, "A GET must accept text/event-stream.")
        session = wire_2025.admit(request, self._sessions, seen)
        last = request.one(LAST_EVENT_ID)
        if last is not None:
            events = session.after_untrusted(last)
            if events is None:
                raise refuse(400, Code.INVALID_REQUEST, f"{LAST_EVENT_ID} is none of this session's.")
            seen.facts["resumed"] = len(events)
            return resumed(events)
        if not self._settings.own_streams:
            # MCP-012
            raise _not_allowed("POST, DELETE")
        if session.listened:
            raise refuse(409, Code.INVALID_REQUEST, "The session's stream is open already.", reason=Reason.SESSION)
        # Here, and not where it is written: what comes in the meantime finds it taken.
        session.listened = True
        return listening(session)

    def _post(self, request: HttpRequest, now_ms: int, seen: Seen) -> Delivery:
        message = _message(request)
        era = self._era(request, message)
        seen.era = era
        if isinstance(message, Returned):
            if era is Era.STATELESS:
                raise refuse(400, Code.INVALID_REQUEST, "A client sends no answers.")
            wire_2025.admit(request, self._sessions, seen)
            return Delivery(202)
        seen.method = _word(message.method)
        tool = message.tool if isinstance(message, Call) else None
        seen.tool = None if tool is None else _word(tool)
        session = self._admit(request, message, era, seen)
        if isinstance(message, Call) and message.method == "tools/call":
            try:
                self._access.check_call(request, now_ms, seen)
            except Denied as denied:
                # A request that is refused anyway meets no misbehaviour.
                return deliver(self._methods.deny(Asked(message, era, session, None, seen), denied.reason))
        rule = self._wrongs.meet(era, message.method, tool)
        seen.misbehaved = None if rule is None else str(rule.wrong)
        return self._served(message, era, session, rule, seen)

    def _served(
        self, message: Call | Notice, era: Era, session: Session | None, rule: Misbehaviour | None, seen: Seen
    ) -> Delivery:
        instead = None if rule is None else self._instead(message, session, rule, seen)
        if instead is not None:
            return deliver(instead)
        if isinstance(message, Notice):
            return deliver(Reply(202), rule)
        asked = Asked(message, era, session, rule, seen)
        if rule is not None and rule.wrong is Wrong.REFUSAL:
            return deliver(self._methods.deny(asked, Reason.ORDERED, rule.text))
        return deliver(self._methods.answer(asked), rule)

    def _instead(self, message: Call | Notice, session: Session | None, rule: Misbehaviour, seen: Seen) -> Reply | None:
        """What is answered at the level of HTTP in place of all else."""
        id_ = message.id if isinstance(message, Call) else None
        if rule.wrong is Wrong.REDIRECT:
            return Reply(307, headers=(("Location", rule.location),))
        if rule.wrong is Wrong.HTTP_STATUS:
            seen.rpc_error = int(Code.INTERNAL)
            headers = _CHALLENGE if rule.status == 401 else _LATER if rule.status in (429, 503) else ()
            return Reply(rule.status, error_message(id_, Code.INTERNAL, rule.text), headers)
        if rule.wrong is Wrong.LOST_SESSION and session is not None:
            self._sessions.end(session)
            raise refuse(404, Code.INVALID_REQUEST, "There is no such session.", id_, reason=Reason.SESSION)
        return None

    def _era(self, request: HttpRequest, message: Call | Notice | Returned) -> Era:
        """The wire that a request speaks, of those that are served."""
        if len(self._settings.eras) == 1:
            return self._settings.eras[0]
        versions = request.all(PROTOCOL_VERSION)
        # A session id that is left over from elsewhere is to be ignored on the wire of 2026.
        if (isinstance(message, Call) and META_VERSION in message.meta) or STATELESS_VERSION in versions:
            return Era.STATELESS
        if request.all(SESSION) or isinstance(message, Returned) or message.method == "initialize":
            return Era.SESSIONS
        unknown = any(version not in SESSION_VERSIONS for version in versions)
        odd = bool(request.all(METHOD)) and not versions
        return Era.STATELESS if unknown or odd or message.method == "server/discover" else Era.SESSIONS

    def _admit(self, request: HttpRequest, message: Call | Notice, era: Era, seen: Seen) -> Session | None:
        """Check what the wire asks of each request; the session, where there is one."""
        if era is Era.STATELESS:
            if isinstance(message, Call):
                wire_2026.check(message, request)
            return None
        id_ = message.id if isinstance(message, Call) else None
        if message.method == "initialize":
            wire_2025.check_version(request, seen, id_)
            return None
        return wire_2025.admit(request, self._sessions, seen, id_)


def _message(request: HttpRequest) -> Call | Notice | Returned:
    """The message in a POST; raises `Refused` for what is none."""
    if request.body is None:
        raise refuse(413, Code.INVALID_REQUEST, f"The body is broken, or longer than {MAX_BODY_BYTES} bytes.")
    if (request.one("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
        raise refuse(415, Code.INVALID_REQUEST, "The Content-Type is application/json.")
    if not _accepts(request, "application/json") or not _accepts(request, "text/event-stream"):
        raise refuse(406, Code.INVALID_REQUEST, "A POST must accept application/json and text/event-stream.")
    try:
        return read_untrusted(request.body)
    except RpcFault as fault:
        raise refuse(400, fault.code, fault.message) from fault


def _accepts(request: HttpRequest, media_type: str) -> bool:
    return _has_type(tuple(request.all("Accept")), media_type)


@lru_cache(maxsize=64)
def _has_type(accepted: tuple[str, ...], media_type: str) -> bool:
    listed = [item.partition(";")[0].strip().lower() for value in accepted for item in value.split(",")]
    return any(item in (media_type, "*/*", f"{media_type.partition('/')[0]}/*") for item in listed)


def _not_allowed(allowed: str) -> Refused:
    return Refused(Reply(405, headers=(("Allow", allowed),)), None)


def _word(text: str) -> str | None:
    """What may stand in the journal: a name that looks like one."""
    return text if _WORD.fullmatch(text) else None
