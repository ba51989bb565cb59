"""Frames of a trace as templates for a live conversation.

A live peer has ids, times and numbers of its own, so a frame of the trace is filled before it is sent:

    tenant, agent, workspace    those of the live connection
    UUIDs                       what the peer sent in their place, else fresh ones; one for each of the trace's
    root ref of a workspace     made of the peer's own pathSha256
    times                       now, as far off as the trace's frame is off its own step
    ack, ackSeq, resume         what was received on this connection's session
    paramsRaw, sig              signed anew with the live key and a fresh nonce, wrongly where the trace says so

All else stays, above all `seq` and whatever breaks the rule. Nothing here waits or reads a clock.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nacl.signing import SigningKey

from lab.clock import timestamp
from lab.contract.trace_signing import signed
from lab.contract.traces import SignOrder, Step, Trace, padded
from lab.protocol.wire import encode

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
_NAMED = ("workspaceId", "pathSha256")
"""Members beside UUIDs that a peer chooses and the trace repeats."""

Members = Mapping[str, Any]


@dataclass(frozen=True)
class LiveIdentity:
    """Whose connection a live one is. `key` signs what the lab says as a gateway; no gateway, no key."""

    tenant: str
    agent: str
    workspace: str | None = None
    """None for the trace's own, or what the agent names."""
    key: tuple[str, SigningKey] | None = field(default=None, repr=False)


class Filling:
    """Fills one trace for one live conversation; `fresh` gives a new UUID at each call."""

    def __init__(self, trace: Trace, identity: LiveIdentity, fresh: Callable[[], str]) -> None:
        self._trace = trace
        self._identity = identity
        self._fresh = fresh
        self._texts = {trace.tenant: identity.tenant, trace.agent: identity.agent}
        if identity.workspace is not None:
            first = next((step.frame for step in trace.steps if step.frame is not None), {})
            self._texts[str(first.get("workspaceId"))] = identity.workspace
        self._seqs: dict[str, int] = {}
        self._sent: list[tuple[Members, str]] = []

    def knows(self, text: object) -> bool:
        """Whether the live conversation has something in the place of a text of the trace."""
        return text in self._texts

    def live(self, text: object) -> str:
        """What stands in the place of a text of the trace; a fresh id for one that nobody has named yet."""
        word = str(text)
        if word not in self._texts and _UUID.fullmatch(word):
            self._texts[word] = self._fresh()
        return self._texts.get(word, word)

    def learn(self, step: Step, members: Members) -> None:
        """The peer sent `members` where the trace has `step`."""
        self._align(step.frame or {}, members, "")
        if isinstance(members.get("seq"), int):
            self._seqs[str(members.get("msgId"))] = members["seq"]

    def _align(self, old: object, new: object, name: str) -> None:
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for key in old.keys() & new.keys():
                self._align(old[key], new[key], key)
        elif isinstance(old, list) and isinstance(new, list):
            for before, after in zip(old, new, strict=False):
                self._align(before, after, name)
        elif isinstance(old, str) and isinstance(new, str) and (name in _NAMED or _UUID.fullmatch(old)):
            self._texts.setdefault(old, new)
            if name == "pathSha256":
                self._texts.setdefault(_root_ref(old), _root_ref(new))

    def text(self, step: Step, wall_ms: int, received: int) -> str:
        """The message to send for a step of the lab's side. `received` is the peer's highest seq without a gap."""
        if step.frame is None:
            return step.raw or ""
        for frame, text in self._sent:
            # A copy is the same bytes.
            if frame == step.frame:
                return text
        shift = wall_ms - self._trace.start_ms - round(step.at * 1000)
        filled = self._filled(
            {name: value for name, value in step.frame.items() if name not in ("paramsRaw", "sig")}, shift
        )
        text = padded(encode(self._signed(step, self._counted(filled, received), wall_ms)), step.bytes)
        self._sent.append((step.frame, text))
        return text

    def payload(self, step: Step, wall_ms: int) -> dict[str, Any]:
        """The payload of a step, for whoever is to make the peer send it."""
        filled = self._filled(step.payload, wall_ms - self._trace.start_ms - round(step.at * 1000))
        return dict(filled)

    def _filled(self, value: Any, shift: int) -> Any:
        if isinstance(value, Mapping):
            return {name: self._filled(item, shift) for name, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, shift) for item in value]
        if isinstance(value, str):
            return _shifted(value, shift) if _TIME.fullmatch(value) else self.live(value)
        return value

    def _counted(self, frame: dict[str, Any], received: int) -> dict[str, Any]:
        if "ack" in frame:
            frame["ack"] = received
            if received == 0:
                del frame["ack"]
        payload = frame.get("payload", {})
        if "ackMsgId" in payload:
            payload["ackSeq"] = self._seqs.get(payload["ackMsgId"], payload.get("ackSeq"))
        if "resume" in payload:
            payload["resume"]["lastRecvSeq"] = received
        if payload.get("resumed") is True:
            payload["peerLastSeq"] = received
        return frame

    def _signed(self, step: Step, frame: dict[str, Any], wall_ms: int) -> dict[str, Any]:
        if step.sign is None:
            return frame
        own = self._identity.key
        # What a Local Agent may not send it cannot sign either; the trace's test key gives it the right form.
        key_id, key = own if own is not None else (step.sign.key_id, SigningKey(self._trace.keys[step.sign.key_id]))
        order = SignOrder(key_id, step.sign.params_raw, step.sign.tenant_id)
        return signed(frame, order, key, self._fresh(), wall_ms)


def _root_ref(path_sha256: str) -> str:
    try:
        return base64.urlsafe_b64encode(bytes.fromhex(path_sha256)).rstrip(b"=").decode()
    except ValueError:
        return path_sha256


def _shifted(text: str, shift_ms: int) -> str:
    try:
        return timestamp(round(datetime.fromisoformat(text).timestamp() * 1000) + shift_ms)
    except ValueError:
        return text
