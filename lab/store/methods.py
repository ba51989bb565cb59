"""What each method of MCP answers, once its request has been let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.store import wire_2025, wire_2026
from lab.store.access import Reason
from lab.store.answers import Fields, Reply
from lab.store.calls import Calls
from lab.store.exchange import Seen
from lab.store.headers import SESSION, Code, Era
from lab.store.misbehaviour import Misbehaviour, Wrong
from lab.store.refusals import denial
from lab.store.rpc import Call, JsonObject, notification
from lab.store.sessions import Session, Sessions
from lab.store.settings import Form, StoreSettings
from lab.store.tools import ToolSet, failed

SERVER = {"name": "store-double", "version": "1.0.0"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that is to be answered: on which wire and in which session, and the rule that it met."""

    call: Call
    era: Era
    session: Session | None
    rule: Misbehaviour | None
    seen: Seen

    def met(self, *wrongs: Wrong) -> Misbehaviour | None:
        """The rule, where it is one of these."""
        return self.rule if self.rule is not None and self.rule.wrong in wrongs else None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The HTTP status, the answer's `result` or `error`, and what else goes with it."""

    body: JsonObject
    status: int = 200
    headers: Fields = ()
    session: Session | None = None


class Methods:
    """The methods, over the tools and the sessions of one store."""

    def __init__(self, settings: StoreSettings, tools: ToolSet, sessions: Sessions) -> None:
        self._settings = settings
        self._tools = tools
        self._sessions = sessions
        self._calls = Calls(tools)

    def answer(self, asked: Asked) -> Reply:
        """The whole answer, as far as it is not damaged on its way. Raises `Refused` for an initialize that is none."""
        outcome = self._outcome(asked)
        body = outcome.body
        if "error" in body:
            asked.seen.rpc_error = body["error"]["code"]
        elif asked.era is Era.STATELESS:
            body = {"result": wire_2026.complete(asked.call.method, body["result"], SERVER)}
        asked.seen.is_error = bool(body.get("result", {}).get("isError"))
        cut = asked.met(Wrong.SSE_CUT, Wrong.SSE_CUT_WITH_ID) is not None
        streamed = cut or (self._settings.answers is Form.SSE and outcome.status == 200)
        return Reply(
            outcome.status,
            {"jsonrpc": "2.0", "id": asked.call.id, **body},
            outcome.headers,
            before=self._told_before(asked.call) if "result" in body else (),
            form=Form.SSE if streamed else Form.JSON,
            session=outcome.session or asked.session,
        )

    def deny(self, asked: Asked, reason: Reason, text: str | None = None) -> Reply:
        """A tools/call that may not run, in the store's style."""
        asked.seen.refused = reason
        status, body = denial(self._settings.refusing, reason, text)
        if "error" in body:
            asked.seen.rpc_error = body["error"]["code"]
        elif asked.era is Era.STATELESS:
            body = {"result": wire_2026.complete(asked.call.method, body["result"], SERVER)}
        asked.seen.is_error = "result" in body
        return Reply(status, {"jsonrpc": "2.0", "id": asked.call.id, **body})

    def _outcome(self, asked: Asked) -> _Outcome:
        method, era = asked.call.method, asked.era
        if rule := asked.met(Wrong.JSONRPC_ERROR):
            return _Outcome({"error": {"code": int(Code.INTERNAL), "message": rule.text}})
        if method == "tools/call":
            return self._call(asked)
        if method == "tools/list":
            if asked.call.params.get("cursor") is not None:
                return _error(era, Code.INVALID_PARAMS, "The list has one page.")
            return _Outcome({"result": {"tools": self._tools.listed()}})
        if era is Era.SESSIONS and method == "initialize":
            session, result = wire_2025.initialize(asked.call, self._sessions, SERVER, asked.seen)
            return _Outcome({"result": result}, headers=((SESSION, session.session_id),), session=session)
        if era is Era.SESSIONS and method == "ping":
            return _Outcome({"result": {}})
        if era is Era.STATELESS and method == "server/discover":
            return _Outcome({"result": wire_2026.discovery()})
        return _error(era, Code.METHOD_NOT_FOUND, "There is no such method.")

    def _call(self, asked: Asked) -> _Outcome:
        arguments = asked.call.params.get("arguments", {})
        if asked.call.tool is None or not isinstance(arguments, dict):
            return _error(asked.era, Code.INVALID_PARAMS, "`name` is a text and `arguments` an object.")
        if rule := asked.met(Wrong.IS_ERROR):
            return _Outcome({"result": failed(rule.text).to_json()})
        result = self._calls.run(asked.call.tool, arguments, asked.seen)
        if result is None:
            return _error(asked.era, Code.INVALID_PARAMS, "There is no such tool.")
        return _Outcome({"result": result.to_json()})

    def _told_before(self, call: Call) -> tuple[dict[str, Any], ...]:
        """A tool's progress, where the call asked for it."""
        token, tool = call.meta.get("progressToken"), self._tools.find(call.tool)
        if tool is None or isinstance(token, bool) or not isinstance(token, str | int):
            return ()
        return tuple(
            notification("notifications/progress", {"progressToken": token, "progress": done, "total": 100})
            for done in tool.progress
        )


def _error(era: Era, code: Code, message: str) -> _Outcome:
    status = wire_2026.status_of(code) if era is Era.STATELESS else 200
    return _Outcome({"error": {"code": int(code), "message": message}}, status)
