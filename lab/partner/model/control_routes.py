"""The lab controls over HTTP: `POST /__lab/<name>` with a JSON body, `GET /__lab/counts` and `/__lab/timings` (PA-055).

They need the control key and are no part of the contract. A body that is not the one due is 400, a thing that is not
there 404; `error.why` says which member or thing it is, as these callers are the lab's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lab.clock import timestamp
from lab.errors import UsageError
from lab.partner.model.answers import Answer, ApiRequest, refused, success
from lab.partner.model.controls import Controls
from lab.partner.model.refusals import Refusal, invalid, unavailable
from lab.partner.model.settings import McpCandidate
from lab.partner.model.shape import Fields, read_object_untrusted, text_untrusted

_TEXT: Final = 2048
_CLOCK_MS: Final = 10 * 365 * 86_400_000
_TURNS: Final = 1000

Control = Callable[[Controls, Fields], object]


def _clock(controls: Controls, fields: Fields) -> object:
    by_ms = fields.signed("advanceMs", _CLOCK_MS)
    fields.done()
    return {"now": timestamp(controls.move_clock(by_ms))}


def _seed_key(controls: Controls, fields: Fields) -> object:
    role = fields.text("role", _TEXT)
    scopes = fields.optional_texts("scopes", _TEXT)
    namespace = fields.optional_text("namespace", _TEXT)
    fields.done()
    return {"role": role, "key": controls.seed_key(role, scopes, namespace)}


def _rotate_key(controls: Controls, fields: Fields) -> object:
    role = fields.text("role", _TEXT)
    fields.done()
    return {"role": role, "key": controls.rotate_key(role)}


def _revoke_key(controls: Controls, fields: Fields) -> object:
    role = fields.text("role", _TEXT)
    fields.done()
    controls.revoke_key(role)
    return {}


def _revoke_binding(controls: Controls, fields: Fields) -> object:
    conversation_id = fields.text("conversationId", _TEXT)
    fields.done()
    controls.revoke_binding(conversation_id)
    return {}


def _change_identity(controls: Controls, fields: Fields) -> object:
    change = fields.choice("change", ("revoke", "delete", "reset"))
    user = fields.text("externalUserId", _TEXT)
    namespace = fields.optional_text("namespace", _TEXT)
    fields.done()
    if change == "reset":
        return {"subjectVersion": controls.reset_identity(user, namespace)}
    if change == "revoke":
        controls.revoke_identity(user, namespace)
    else:
        controls.delete_identity(user, namespace)
    return {}


def _remove(controls: Controls, fields: Fields) -> object:
    kind, id_ = fields.text("kind", _TEXT), fields.text("id", _TEXT)
    fields.done()
    controls.remove(kind, id_)
    return {}


def _budget(controls: Controls, fields: Fields) -> object:
    spent = fields.boolean("spent")
    fields.done()
    controls.spend_budget(spent)
    return {}


def _configure_agent(controls: Controls, fields: Fields) -> object:
    agent_id = fields.text("agentId", _TEXT)
    mcp = fields.any("mcp")
    profile = fields.boolean("profile")
    fields.done()
    controls.configure_agent(agent_id, _candidates_untrusted(mcp), profile)
    return {}


def _guest(controls: Controls, fields: Fields) -> object:
    conversation_id = fields.text("conversationId", _TEXT)
    guest, closed = fields.boolean("guest"), fields.boolean("closed")
    fields.done()
    controls.set_guest(conversation_id, guest, closed)
    return {}


def _history(controls: Controls, fields: Fields) -> object:
    conversation_id = fields.text("conversationId", _TEXT)
    turns = fields.integer("turns", _TURNS)
    fields.done()
    return {"runIds": list(controls.seed_history(conversation_id, turns))}


def _queue(controls: Controls, fields: Fields) -> object:
    held = fields.boolean("held")
    fields.done()
    controls.hold_queue(held)
    return {}


def _cancel(controls: Controls, fields: Fields) -> object:
    run_id = fields.text("runId", _TEXT)
    fields.done()
    controls.cancel_run(run_id)
    return {}


CHANGES: Final[Mapping[str, Control]] = {
    "clock": _clock,
    "keys": _seed_key,
    "keys/rotate": _rotate_key,
    "keys/revoke": _revoke_key,
    "bindings/revoke": _revoke_binding,
    "identities": _change_identity,
    "remove": _remove,
    "budget": _budget,
    "agents": _configure_agent,
    "guest": _guest,
    "history": _history,
    "queue": _queue,
    "cancel": _cancel,
}
"""What `POST /__lab/<name>` does."""

VIEWS: Final[Mapping[str, Callable[[Controls], object]]] = {
    "counts": lambda controls: dict(controls.counts()),
    "timings": lambda controls: {"lines": list(controls.timing_lines())},
}
"""What `GET /__lab/<name>` shows."""


def control_untrusted(controls: Controls, method: str, name: str, request: ApiRequest) -> Answer:
    """Serve a control whose caller bore the control key."""
    try:
        if method == "GET" and name in VIEWS:
            return success(200, VIEWS[name](controls))
        if method == "POST" and name in CHANGES:
            return success(200, CHANGES[name](controls, Fields(read_object_untrusted(request), strict=True)))
        raise unavailable("no such control")
    except UsageError as error:
        return _explained(unavailable(str(error)))
    except Refusal as refusal:
        return _explained(refusal)


def _explained(refusal: Refusal) -> Answer:
    return refused(Refusal(refusal.code, refusal.why, {**refusal.extras, "why": refusal.why}, refusal.status))


def _candidates_untrusted(value: object) -> tuple[McpCandidate, ...] | None:
    """null for a profile without MCP, else a list of {serverId, destination}."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise invalid("mcp")
    found = []
    for entry in value:
        if not isinstance(entry, dict) or set(entry) != {"serverId", "destination"}:
            raise invalid("mcp")
        found.append(
            McpCandidate(
                text_untrusted(entry["serverId"], "mcp", _TEXT), text_untrusted(entry["destination"], "mcp", _TEXT)
            )
        )
    return tuple(found)
