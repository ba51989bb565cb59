"""How the plants of the partner leg get at the model: by its routes, its answers, its events, its history."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from lab.partner.model import history, server, turn_record
from lab.partner.model.answers import Answer, ApiRequest
from lab.partner.model.authority import Caller
from lab.partner.model.core import Operation, PartnerCore
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal
from lab.partner.model.runs import Run
from tests.bugs.plants import Function, Patch

Data = dict[str, Any]
Route = Callable[[Parts, Caller, ApiRequest], Answer]

MEMBERSHIPS = "PUT /memberships"
CONVERSATIONS = "POST /conversations"
_ONE = "/conversations/{conversationId}"
GET_CONTEXT = f"GET {_ONE}/context"
PUT_CONTEXT = f"PUT {_ONE}/context"
ATTACHMENTS = f"POST {_ONE}/attachments"
MESSAGES = f"POST {_ONE}/messages"
HISTORY = f"GET {_ONE}/messages"
RUN = f"GET {_ONE}/runs/{{runId}}"
CONTENT = f"GET {_ONE}/attachments/{{attachmentId}}/content"


def operations(patch: Patch, change: Callable[[Operation], Operation]) -> None:
    """Let `change` alter each of the nine operations that are plain calls."""
    patch.set(server, "OPERATIONS", tuple(change(operation) for operation in vars(server)["OPERATIONS"]))


def route(patch: Patch, name: str, make: Callable[[Route], Route]) -> None:
    """Replace the function of one route by what `make` builds around it."""
    operations(patch, lambda one: replace(one, function=make(one.function)) if one.route == name else one)


def answer(patch: Patch, name: str, change: Callable[[Answer], Answer | None]) -> None:
    """Let `change` alter the successes of one route; None leaves one as it is."""

    def make(original: Route) -> Route:
        def altered(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            usual = original(parts, caller, request)
            other = change(usual)
            if other is None:
                return usual
            patch.slipped()
            return other

        return altered

    route(patch, name, make)


def data(patch: Patch, name: str, change: Callable[[Data], bool]) -> None:
    """Let `change` alter the data of one route's successes in place; it tells whether it did."""

    def altered(usual: Answer) -> Answer | None:
        body = deepcopy(usual.body)
        if not isinstance(body, dict) or not change(body["data"]):
            return None
        return replace(usual, body=body)

    answer(patch, name, altered)


def refusals(patch: Patch, change: Callable[[Answer], Answer | None]) -> None:
    """Let `change` alter each refusal of a plain call; None leaves one as it is."""

    def make(original: Function) -> Function:
        def answered(self: PartnerCore, operation: Operation, request: ApiRequest) -> Answer:
            usual: Answer = original(self, operation, request)
            other = change(usual) if usual.code is not None else None
            if other is None:
                return usual
            patch.slipped()
            return other

        return answered

    patch.wrap(PartnerCore, "answer", make)


def result(patch: Patch, change: Callable[[Run, Data], bool], *, of: str = "to_json") -> None:
    """Let `change` alter what is told of a run; `of` result is its part that GET shares with nothing else."""

    def make(original: Function) -> Function:
        def told(self: Run) -> Data:
            members = deepcopy(original(self))
            if change(self, members):
                patch.slipped()
            return dict(members)

        return told

    patch.wrap(Run, of, make)


def events(patch: Patch, change: Callable[[str, Data], tuple[str, Data] | None]) -> None:
    """Let `change` alter kind and data of an event before a turn stores it; None leaves it as it is."""

    def make(original: Function) -> Function:
        def append(state: Any, run_id: str, kind: str, members: Mapping[str, object]) -> int | None:
            other = change(kind, json.loads(json.dumps(members)))
            if other is not None:
                patch.slipped()
            stored: int | None = original(state, run_id, *((kind, members) if other is None else other))
            return stored

        return append

    patch.wrap(turn_record, "append_event", make)


def items(patch: Patch, change: Callable[[Data], bool]) -> None:
    """Let `change` alter the items of history in place; it tells whether it did."""

    def make(original: Function) -> Function:
        def item(parts: Parts, row: Any) -> Data:
            told: Data = original(parts, row)
            if change(told):
                patch.slipped()
            return told

        return item

    patch.wrap(history, "_item", make)


def pages(patch: Patch, change: Callable[[Parts, ApiRequest, Data], bool]) -> None:
    """Let `change` alter a page of history in place, knowing what was asked."""

    def make(original: Route) -> Route:
        def page(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            told = original(parts, caller, request)
            body = deepcopy(told.body)
            if isinstance(body, dict) and change(parts, request, body["data"]):
                patch.slipped()
                return replace(told, body=body)
            return told

        return page

    route(patch, HISTORY, make)


def instead(patch: Patch, owner: Any, name: str, value: object) -> None:
    """Replace a function by one that gives `value`, and counts."""

    def wrong(*_: Any, **__: Any) -> object:
        patch.slipped()
        return value

    patch.set(owner, name, wrong)


def other_refusal(patch: Patch, owner: Any, name: str, make_other: Callable[[], Refusal]) -> None:
    """Replace what makes a refusal, in the module that uses it."""

    def other(*_: Any, **__: Any) -> Refusal:
        patch.slipped()
        return make_other()

    patch.set(owner, name, other)


def changed(patch: Patch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Let `change` alter what a function gives; None leaves it as it is."""

    def make(original: Function) -> Function:
        def other(*args: Any, **kwargs: Any) -> Any:
            usual = original(*args, **kwargs)
            wrong = change(usual)
            if wrong is None:
                return usual
            patch.slipped()
            return wrong

        return other

    patch.wrap(owner, name, make)
