"""Reads the steps of the partner leg, one function a kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lab.durations import parse_duration
from lab.partner.client.words import CODES as API_CODES
from lab.scenario.findings import words
from lab.scenario.partner_model import (
    KEYS,
    ONLY,
    AttachStep,
    BindStep,
    CallStep,
    ContextStep,
    ControlStep,
    ConversationStep,
    DownloadStep,
    FollowStep,
    GrantStep,
    HistoryStep,
    MembershipStep,
    MessageStep,
    PollStep,
    RecoverStep,
    StoreStep,
)
from lab.scenario.read_partner import read_misbehaviour
from lab.scenario.reading import Reading, StepBody, duration, input_text, mapping, reference, text, texts, whole
from lab.scenario.step import Step
from lab.scenario.yaml_places import MapNode, Node, ScalarNode, plain

NEEDS_CONTROLS = "controls"
"""The word of `requires` for what only the lab's own model and issuer can be made to do (PA-055)."""

ROLES = ("owner", "admin", "member")
LIMITS = (1, 200)
"""Items that a page of history may have (HIS-028)."""
ISSUER_CODES = ("unauthorized", "forbidden", "not_found", "invalid", "conflict", "ended")
CODES = (*sorted(API_CODES), *ISSUER_CODES)
"""What a refusal may say, of the partner API and of the issuer."""

SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie", "x-store-context-grant")
_BEARER = re.compile(r"\bbearer\s+\S|\btg1\.", re.IGNORECASE)
"""A key behind its scheme, and how a grant begins."""

_LABELLED_CONTROLS = {
    "unbind": "conversation",
    "revoke_grant": "conversation",
    "remove": "conversation",
    "cancel": "run",
    "guest": "conversation",
}
"""The controls whose value is a label, and which kind of label."""


class PartnerStepReader:
    """Reads the steps whose words are in `readers`. `teams` are those of the partner API."""

    def __init__(self, reading: Reading, teams: tuple[str, ...], requires: tuple[str, ...]) -> None:
        self._reading = reading
        self._teams = teams
        self._requires = requires
        self.readers: Mapping[str, Callable[[StepBody], Step]] = {
            "membership": self._membership,
            "conversation": self._conversation,
            "grant": self._grant,
            "bind": self._bind,
            "context": self._context,
            "recover": self._recover,
            "attach": self._attach,
            "download": self._download,
            "message": self._message,
            "follow": self._follow,
            "poll": self._poll,
            "history": self._history,
            "call": self._call,
            "control": self._control,
            "store": self._store,
        }

    def _label(self, body: StepBody, kind: str, member: str | None = None) -> str:
        """The label of `kind` that a member of the step uses; a step before it declares it."""
        node = body.node.members[member or kind]
        label = str(plain(node))
        self._check_declared(node, kind, label, body.index)
        return label

    def _label_or_none(self, body: StepBody, kind: str, member: str) -> str | None:
        return self._label(body, kind, member) if member in body.node.members else None

    def _check_declared(self, node: Node, kind: str, label: str, index: int) -> None:
        known = self._reading.names.partner.labels.get(kind, {})
        if label not in known:
            message = f"no step makes a {kind} `{label}`; there are {words(known)}."
            self._reading.findings.add(node, message, word=label, among=known)
        elif known[label] >= index:
            message = f"{kind} `{label}` is used before steps[{known[label]}] makes it."
            self._reading.findings.add(node, message)

    def _fails(self, body: StepBody) -> str | None:
        """The code of a refusal that is due, one that the API or the issuer has."""
        code = text(body.node, "fails")
        if code is not None and code not in CODES:
            message = f"no refusal has the code `{code}`; there are {words(CODES)}."
            self._reading.findings.add(body.node.members["fails"], message, word=code, among=CODES)
        return code

    def _check_right(self, node: Node, right: bool, message: str, fails: str | None) -> None:
        """What is wrong by the contract is written only where its refusal is due."""
        if not right and fails is None:
            self._reading.findings.add(node, f"{message} Say `fails: …` where that is what the scenario is about.")

    def _new_label(self, body: StepBody, kind: str) -> str:
        node = body.node.members[kind]
        label = str(plain(node))
        first = self._reading.names.partner.labels.get(kind, {}).get(label, body.index)
        if first != body.index:
            message = f"{kind} `{label}` is made twice; steps[{first}] makes it first."
            self._reading.findings.add(node, message)
        return label

    def _team(self, body: StepBody) -> str:
        # Another than those of the model is allowed: it must be refused.
        return text(body.node, "team") or self._teams[0]

    def _needs_controls(self, node: Node, what: str) -> None:
        if NEEDS_CONTROLS not in self._requires:
            message = f"{what} needs the lab's own controls; say `requires: [{NEEDS_CONTROLS}]`."
            self._reading.findings.add(node, message)

    def _flag(self, body: StepBody, name: str, *, default: bool) -> bool:
        return plain(body.node.members[name]) is True if name in body.node.members else default

    def _membership(self, body: StepBody) -> Step:
        active = self._flag(body, "active", default=True)
        role, fails = text(body.node, "role") or MembershipStep.role, text(body.node, "fails")
        if role not in ROLES:
            self._check_right(
                body.node.members["role"], False, f"`{role}` is no role; there are {words(ROLES)}.", fails
            )
        return MembershipStep(
            body.line,
            body.within,
            user=text(body.node, "user") or "",
            team=self._team(body),
            role=role,
            active=active,
            revision=whole(body.node, "revision"),
            lease=self._lease(body),
            fails=self._fails(body),
        )

    def _lease(self, body: StepBody) -> float | None:
        written = text(body.node, "lease")
        if written is None:
            return None
        seconds = parse_duration(written.removeprefix("-"))
        return -seconds if written.startswith("-") else seconds

    def _conversation(self, body: StepBody) -> Step:
        agents = self._reading.names.partner.agents
        return ConversationStep(
            body.line,
            body.within,
            conversation=self._new_label(body, "conversation"),
            user=text(body.node, "user") or "",
            team=self._team(body),
            agent=reference(self._reading, body.node, "agent", "agent", agents),
            again=self._label_or_none(body, "conversation", "again"),
            fails=self._fails(body),
        )

    def _grant(self, body: StepBody) -> Step:
        wrong = mapping(body.node, "wrong")
        if wrong is not None:
            self._needs_controls(wrong, "`wrong`")
        return GrantStep(
            body.line,
            body.within,
            conversation=self._label(body, "conversation"),
            wrong={name: str(plain(value)) for name, value in wrong.members.items()} if wrong else {},
            fails=self._fails(body),
        )

    def _bind(self, body: StepBody) -> Step:
        node = body.node
        return BindStep(
            body.line,
            body.within,
            conversation=self._label(body, "conversation"),
            expected=whole(node, "expected"),
            destination=text(node, "destination"),
            server=text(node, "server"),
            user=text(node, "user"),
            fails=self._fails(body),
        )

    def _context(self, body: StepBody) -> Step:
        node = body.node
        return ContextStep(
            body.line,
            body.within,
            conversation=self._label(body, "conversation"),
            active=self._flag(body, "active", default=False) if "active" in node.members else None,
            version=whole(node, "version"),
            user=text(node, "user"),
            fails=self._fails(body),
        )

    def _recover(self, body: StepBody) -> Step:
        return RecoverStep(body.line, body.within, self._label(body, "conversation"), self._fails(body))

    def _attach(self, body: StepBody) -> Step:
        node = body.node
        label = self._new_label(body, "file")
        media = text(node, "type") or "text/plain"
        return AttachStep(
            body.line,
            body.within,
            file=label,
            conversation=self._label(body, "conversation"),
            type=media,
            name=text(node, "name") or f"{label}.{media.partition('/')[2]}",
            text=text(node, "text"),
            size=whole(node, "size"),
            user=text(node, "user"),
            fails=self._fails(body),
        )

    def _download(self, body: StepBody) -> Step:
        return DownloadStep(
            body.line,
            body.within,
            file=self._label(body, "file"),
            conversation=self._label_or_none(body, "conversation", "conversation"),
            fails=self._fails(body),
        )

    def _message(self, body: StepBody) -> Step:
        node = body.node
        files = node.members.get("files")
        for label in texts(node, "files"):
            self._check_declared(files or node, "file", label, body.index)
        there = "text" in node.members or bool(texts(node, "files"))
        self._check_right(node, there, "neither `text` nor `files`: a message has one of them.", text(node, "fails"))
        return MessageStep(
            body.line,
            body.within,
            run=self._new_label(body, "run"),
            conversation=self._label(body, "conversation"),
            text=input_text(self._reading, node.members["text"]) if "text" in node.members else None,
            files=texts(node, "files"),
            timezone=text(node, "timezone"),
            again=self._label_or_none(body, "run", "again"),
            user=text(node, "user"),
            fails=self._fails(body),
        )

    def _follow(self, body: StepBody) -> Step:
        until = mapping(body.node, "until")
        after = body.node.members.get("after")
        return FollowStep(
            body.line,
            body.within,
            run=self._label(body, "run"),
            events=whole(until, "events") if until else None,
            replay=self._flag(body, "replay", default=False),
            after=after.text if isinstance(after, ScalarNode) else None,
            user=text(body.node, "user"),
            fails=self._fails(body),
        )

    def _poll(self, body: StepBody) -> Step:
        node = body.node
        until = text(node, "until") or PollStep.until
        run = self._label(body, "run")
        return PollStep(body.line, body.within, run, until, text(node, "user"), self._fails(body))

    def _history(self, body: StepBody) -> Step:
        node = body.node
        limit = whole(node, "limit")
        if limit is not None:
            message = f"seen {limit}, due {LIMITS[0]} to {LIMITS[1]} items a page."
            self._check_right(node.members["limit"], LIMITS[0] <= limit <= LIMITS[1], message, text(node, "fails"))
        return HistoryStep(
            body.line,
            body.within,
            conversation=self._label(body, "conversation"),
            limit=whole(node, "limit"),
            cursor=text(node, "cursor"),
            user=text(node, "user"),
            fails=self._fails(body),
        )

    def _call(self, body: StepBody) -> Step:
        node = body.node
        headers = mapping(node, "headers")
        key = text(node, "key") or CallStep.key
        if key.startswith(ONLY):
            self._needs_controls(node.members["key"], f"the key `{key}`")
        elif key not in KEYS:
            message = f"no key is called `{key}`; there are {words(KEYS)}, and `{ONLY}` with a scope."
            self._reading.findings.add(node.members["key"], message, word=key, among=KEYS)
        self._check_no_secret(node, headers)
        return CallStep(
            body.line,
            body.within,
            method=text(node, "method") or "",
            path=text(node, "path") or "",
            status=whole(node, "status") or 0,
            key=key,
            actor=text(node, "actor"),
            idempotency_key=text(node, "idempotency_key"),
            headers={name: str(plain(value)) for name, value in headers.members.items()} if headers else {},
            body=text(node, "body"),
            fails=self._fails(body),
        )

    def _check_no_secret(self, node: MapNode, headers: MapNode | None) -> None:
        """PRIV-022: a scenario names a secret and never writes one."""
        written = {f"the header `{name}`": value for name, value in headers.members.items()} if headers else {}
        secret = [what for what in written if what.split("`")[1].lower() in SECRET_HEADERS]
        written |= {f"`{name}`": node.members[name] for name in ("path", "body") if name in node.members}
        secret += [what for what, value in written.items() if _BEARER.search(str(plain(value)))]
        for what in dict.fromkeys(secret):
            message = f"{what} holds a secret; name one by `key`: {words(KEYS)}, or `{ONLY}` with a scope."
            self._reading.findings.add(written[what], message)

    def _control(self, body: StepBody) -> Step:
        node = body.node
        word = next((name for name in node.members if name != "within"), "")
        self._needs_controls(node, "`control`")
        if word == "clock":
            seconds = duration(self._reading.findings, node, "clock") or 0.0
            return ControlStep(body.line, body.within, word, seconds)
        if word in _LABELLED_CONTROLS:
            return ControlStep(body.line, body.within, word, self._label(body, _LABELLED_CONTROLS[word], word))
        return ControlStep(body.line, body.within, word, text(node, word) or "")

    def _store(self, body: StepBody) -> Step:
        node = body.node
        misbehave = read_misbehaviour(self._reading, node) if "misbehave" in node.members else None
        return StoreStep(body.line, body.within, misbehave, forget_sessions="forget_sessions" in node.members)
