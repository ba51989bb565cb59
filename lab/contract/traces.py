"""The traces of a contract folder: whole sessions as data, `vectors/traces/<name>.json` (CT-024, CT-050).

    name, about         as the file is called, and what it shows
    revision            the first revision that it counts for; later ones are additive (CT-061)
    tenant, agent       whose connection it is
    mode                the tenant's mode: client, hybrid or hosted
    start               wall time of `at` 0
    keys                key id to base64 of a secret Ed25519 seed: test keys, known to everybody
    steps               in order; each is `from` la or cp, `at` so many milliseconds after the start
        frame           the frame as it stands on the wire, its signature included
        raw             or the text of a message that is no frame
        act             or `reconnect`: the connection is lost, and the Local Agent opens another
        sign            how the frame was signed: `keyId`, and `paramsRaw` and `tenantId` where it was signed wrongly
        bytes           the message is filled up to this size with spaces behind the frame
        fault           true: the step that breaks the rule; no sound implementation writes it
        lost            true: it is written, and never arrives
    expect              empty for a session that goes well; else `error`, the wire code, `by`, the side that refuses,
                        and `or`, codes that the sources leave open as well

Times, ids and nonces are fixed and the signatures real, since Ed25519 gives one signature for one text: whoever can
verify can play a trace, and a second reading of the canonical text shows at once (SG-003).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.contract.vectors import revision_order
from lab.errors import ContractError
from lab.protocol.errors import ERROR_CODES
from lab.protocol.wire import byte_length, encode

TRACES_FOLDER = Path("vectors", "traces")
TRACE_SUFFIX = ".json"
MODES = ("client", "hybrid", "hosted")

_TRACE_MEMBERS = frozenset({"name", "about", "revision", "tenant", "agent", "mode", "start", "keys", "steps", "expect"})
_STEP_MEMBERS = frozenset({"from", "at", "frame", "raw", "act", "sign", "bytes", "fault", "lost"})
_SIGN_MEMBERS = frozenset({"keyId", "paramsRaw", "tenantId"})
_EXPECT_MEMBERS = frozenset({"error", "by", "or"})


class Side(StrEnum):
    """A side of the wire: the Local Agent, or the control plane with its gateway."""

    LA = "la"
    CP = "cp"

    @property
    def other(self) -> Side:
        """The peer's side."""
        return Side.CP if self is Side.LA else Side.LA


@dataclass(frozen=True, slots=True)
class SignOrder:
    """How a frame is signed; `params_raw` and `tenant_id` are set where its signer was told otherwise than is so."""

    key_id: str
    params_raw: str | None = None
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Of `frame` and `raw` one is there, none for a reconnect. Its repr has no content."""

    number: int
    side: Side
    at: float
    """Seconds after the start."""
    frame: Mapping[str, Any] | None = field(default=None, repr=False)
    raw: str | None = field(default=None, repr=False)
    sign: SignOrder | None = None
    bytes: int | None = None
    fault: bool = False
    lost: bool = False

    @property
    def reconnects(self) -> bool:
        """Whether the connection is lost here and another opened."""
        return self.frame is None and self.raw is None

    @property
    def type(self) -> str:
        """The frame's type; empty for what is no frame, or has none."""
        return str(self.frame.get("type", "")) if self.frame is not None else ""

    @property
    def payload(self) -> Mapping[str, Any]:
        """The frame's payload; empty where there is none."""
        payload = self.frame.get("payload", {}) if self.frame is not None else {}
        return payload if isinstance(payload, Mapping) else {}

    def text(self) -> str:
        """The message on the wire."""
        return padded(encode(self.frame), self.bytes) if self.frame is not None else self.raw or ""

    def __str__(self) -> str:
        return f"step {self.number} ({self.side} {self.type or ('reconnect' if self.reconnects else 'raw')})"


@dataclass(frozen=True, slots=True)
class Due:
    """How a trace ends: `error` is the wire code, None for a session that goes well; `by` is the side that refuses."""

    error: str | None = None
    by: Side | None = None
    also: tuple[str, ...] = ()
    """Further codes, where the sources leave the code open."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code that is right."""
        return () if self.error is None else (self.error, *self.also)

    def __str__(self) -> str:
        return "no error" if self.error is None else f"{' or '.join(self.codes)} by {self.by}"


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole session. `keys` are secret seeds by key id; they are test keys, and still in no repr."""

    path: Path
    name: str
    about: str
    revision: str
    tenant: str
    agent: str
    mode: str
    start_ms: int
    keys: Mapping[str, bytes] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    expect: Due

    def own(self, side: Side) -> tuple[Step, ...]:
        """The steps of one side that a sound implementation makes, in order."""
        return tuple(step for step in self.steps if step.side is side and not step.fault and not step.reconnects)


@dataclass(frozen=True, slots=True)
class Traces:
    """All that could be read, by name, and a line for each file that could not."""

    traces: tuple[Trace, ...]
    faults: tuple[str, ...]


def padded(text: str, size: int | None) -> str:
    """The text with spaces behind it up to `size` bytes of UTF-8: white space after a JSON text means nothing."""
    return text if size is None else text + " " * (size - byte_length(text))


def load_traces(folder: Path) -> Traces:
    """The traces of the contract in `folder`; a missing or empty folder of traces is a fault like any other."""
    place = folder / TRACES_FOLDER
    traces: list[Trace] = []
    faults: list[str] = []
    for path in sorted(place.glob(f"*{TRACE_SUFFIX}")):
        try:
            traces.append(load_trace(path))
        except ContractError as error:
            faults.append(str(error))
    if not traces and not faults:
        faults.append(f"{place}: no traces")
    return Traces(tuple(traces), tuple(faults))


def load_trace(path: Path) -> Trace:
    """Raises ContractError, naming file and step, for whatever has not the form."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{path}: not JSON: {error}") from error
    return _Reader(path).trace(document)


class _Reader:
    """Reads one file; every error names it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _fault(self, what: str) -> ContractError:
        return ContractError(f"{self._path}: {what}")

    def _known(self, where: str, members: Mapping[str, Any], known: frozenset[str]) -> None:
        odd = sorted(name for name in members if name not in known and not name.startswith("x-"))
        if odd:
            raise self._fault(f"{where}: unknown member {', '.join(odd)}; known are {', '.join(sorted(known))}")

    def trace(self, document: Any) -> Trace:
        match document:
            case {
                "name": str(name),
                "about": str(about),
                "revision": str(revision),
                "tenant": str(tenant),
                "agent": str(agent),
                "mode": str(mode),
                "start": str(start),
                "steps": list(steps),
                "expect": dict(expect),
                **rest,
            } if steps:
                self._known("trace", document, _TRACE_MEMBERS)
            case _:
                raise self._fault(
                    "name, about, revision, tenant, agent, mode, start (texts), steps (a list with an entry) and "
                    "expect (an object) are due"
                )
        if name != self._path.stem:
            raise self._fault(f"`name` says {name}, the file's name says {self._path.stem}")
        if mode not in MODES:
            raise self._fault(f"`mode` is one of {', '.join(MODES)}, not {mode!r}")
        try:
            revision_order(revision)
        except ContractError as error:
            raise self._fault(str(error)) from None
        keys = self._keys(rest.get("keys", {}))
        trace = Trace(
            path=self._path,
            name=name,
            about=about,
            revision=revision,
            tenant=tenant,
            agent=agent,
            mode=mode,
            start_ms=self._start(start),
            keys=keys,
            steps=tuple(self._step(number, step, keys) for number, step in enumerate(steps, 1)),
            expect=self._due(expect),
        )
        self._check_order(trace)
        return trace

    def _start(self, text: str) -> int:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self._fault(f"`start` is a time with its zone, such as 2026-11-04T10:00:00.000Z, not {text!r}")
        return round(moment.timestamp() * 1000)

    def _keys(self, keys: object) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for key_id, text in keys.items() if isinstance(keys, dict) else [("keys", None)]:
            try:
                raw = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
            except (binascii.Error, ValueError):
                raw = b""
            if len(raw) != 32:
                raise self._fault(f"`keys` maps a key id to the base64 of a seed of 32 bytes, which {key_id} has not")
            found[key_id] = raw
        return found

    def _step(self, number: int, step: Any, keys: Mapping[str, bytes]) -> Step:
        where = f"step {number}"
        match step:
            case {"from": ("la" | "cp") as side, "at": int(at)} if at >= 0 and not isinstance(at, bool):
                self._known(where, step, _STEP_MEMBERS)
            case _:
                raise self._fault(f"{where}: `from` la or cp and `at` in milliseconds from 0 on are due")
        rest: Mapping[str, Any] = step
        frame, raw = rest.get("frame"), rest.get("raw")
        match [name for name in ("frame", "raw", "act") if name in rest]:
            case ["frame"] if isinstance(frame, dict):
                pass
            case ["raw"] if isinstance(raw, str):
                pass
            case ["act"] if rest["act"] == "reconnect" and side == "la":
                pass
            case _:
                raise self._fault(
                    f"{where}: one of frame (an object), raw (a text) and act (`reconnect`, from la) is due"
                )
        return Step(
            number=number,
            side=Side(side),
            at=at / 1000,
            frame=frame,
            raw=raw,
            sign=self._sign(where, rest["sign"], keys) if "sign" in rest else None,
            bytes=self._bytes(where, rest.get("bytes"), frame),
            fault=self._flag(where, rest, "fault"),
            lost=self._flag(where, rest, "lost"),
        )

    def _flag(self, where: str, members: Mapping[str, object], name: str) -> bool:
        if members.get(name, True) is not True:
            raise self._fault(f"{where}: `{name}` is true or left out")
        return name in members

    def _bytes(self, where: str, size: object, frame: Mapping[str, Any] | None) -> int | None:
        if size is None:
            return None
        if not isinstance(size, int) or frame is None or size < byte_length(encode(frame)):
            raise self._fault(
                f"{where}: `bytes` is the size of the whole message, and goes with a frame that is smaller"
            )
        return size

    def _sign(self, where: str, order: Any, keys: Mapping[str, bytes]) -> SignOrder:
        match order:
            case {"keyId": str(key_id)} if key_id in keys and all(isinstance(value, str) for value in order.values()):
                self._known(f"{where}, sign", order, _SIGN_MEMBERS)
                return SignOrder(key_id, order.get("paramsRaw"), order.get("tenantId"))
        raise self._fault(f"{where}: `sign` needs a keyId of `keys`; paramsRaw and tenantId, if there, are texts")

    def _due(self, expect: Mapping[str, Any]) -> Due:
        self._known("expect", expect, _EXPECT_MEMBERS)
        match {name: value for name, value in expect.items() if not name.startswith("x-")}:
            case {"error": str(error), "by": ("la" | "cp") as by, **rest}:
                also = rest.get("or", [])
            case {} as left if not left:
                return Due()
            case _:
                raise self._fault("expect: empty, or `error` with `by` la or cp")
        codes = [error, *(also if isinstance(also, list) else [None])]
        odd = [code for code in codes if not isinstance(code, str) or code not in ERROR_CODES]
        if odd:
            raise self._fault(f"expect: {odd[0]!r} is no wire code; `error` is one and `or` a list of them")
        return Due(error, Side(by), tuple(str(code) for code in codes[1:]))

    def _check_order(self, trace: Trace) -> None:
        for before, after in zip(trace.steps, trace.steps[1:], strict=False):
            if after.at < before.at:
                raise self._fault(f"{after}: its time is before that of the step before")
        last = trace.steps[-1]
        if trace.expect.error is not None and (last.type != "error" or last.side is not trace.expect.by):
            raise self._fault(f"{last}: the last step is the error frame of {trace.expect.by}, which refuses")
