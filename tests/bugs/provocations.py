"""Ways in which the gateway double misbehaves by order, for situations that frame and link faults cannot make.

A scenario of `scenarios/` names them as tags. Each alters or adds a frame before it is witnessed, once, and notes in
the journal a fault that excuses the gateway for the laws that it broke so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from nacl.signing import SigningKey

from lab.gateway.core import GatewayCore
from lab.gateway.server import GatewayServer
from lab.gateway.socket import GatewaySocket
from lab.journal.events import FaultFired, FaultPlanned
from lab.protocol.events import Transmit
from lab.protocol.frames import Draft
from lab.protocol.gateway_side import SessionStore
from lab.protocol.signing import Verifier
from lab.run import driver
from tests.bugs.plants import Function, Patch

Members = dict[str, Any]
Provocation = Callable[[Patch], None]
Alter = Callable[[GatewayServer, Members], object]
"""Changes the members of the gateway's frame in place."""

GATEWAY_LAWS: Final = (
    *("gateway-frames-signed", "gateway-frames-valid", "gateway-numbering", "gateway-refusals"),
    *("gateway-resume-rules", "acked-at-once", "gateway-retransmission", "gateway-content-stays-in-its-fields"),
)
"""What a gateway that forges a frame may break."""

_FOUND: Final[dict[str, Provocation]] = {}

PROVOCATIONS: Final[Mapping[str, Provocation]] = _FOUND


def provocation(name: str) -> Callable[[Provocation], Provocation]:
    """Register a provocation under the tag that scenarios name it by."""

    def register(put: Provocation) -> Provocation:
        _FOUND[name] = put
        return put

    return register


def note_order(server: GatewayServer, name: str) -> None:
    """Tell the journal that the gateway misbehaves by order."""
    journal = server._ctx.journal
    journal.record(
        "faults", FaultPlanned(name, "forge", server.name, 0, tuple((law, "gateway") for law in GATEWAY_LAWS))
    )
    journal.record("faults", FaultFired(name, "forge", server.name))


def encoded(members: Members) -> str:
    """A frame's text."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def sign(
    server: GatewayServer,
    members: Members,
    *,
    params: str | None = None,
    tenant: str | None = None,
    workspace: str | None = None,
    timestamp: int | None = None,
) -> None:
    """Sign a frame again: over `params` or its payload, bound to its own members and to now, or to what is named."""
    signer = server.core._signer
    assert signer is not None
    members["paramsRaw"] = params if params is not None else encoded(members["payload"])
    members["sig"] = signer.sign(
        members["type"],
        tenant or members["tenantId"],
        workspace or members["workspaceId"],
        members["paramsRaw"],
        timestamp or server._ctx.wall_ms(),
    )


def on_first(patch: Patch, name: str, type_name: str, act: Function) -> None:
    """At the first frame of a type call `act(write, server, members)`, which writes texts with `write`."""
    done: list[str] = []

    def make(original: Function) -> Function:
        def write_frame(self: GatewayServer, socket: GatewaySocket, output: Transmit) -> None:
            members = json.loads(output.text)
            if done or members["type"] != type_name:
                original(self, socket, output)
                return
            done.append(name)
            note_order(self, name)
            act(lambda text: original(self, socket, Transmit(text)), self, members)

        return write_frame

    patch.wrap(GatewayServer, "_write_frame", make)


def _altered(name: str, alter: Alter, type_name: str = "job.assign") -> None:
    """A provocation that changes the first frame of a type."""

    def act(write: Callable[[str], None], server: GatewayServer, members: Members) -> None:
        alter(server, members)
        write(encoded(members))

    provocation(name)(lambda patch: on_first(patch, name, type_name, act))


def _preceded(name: str, junk: Callable[[GatewayServer, Members], str]) -> None:
    """A provocation that writes something right before the first assignment."""

    def act(write: Callable[[str], None], server: GatewayServer, members: Members) -> None:
        text = encoded(members)
        write(junk(server, members))
        write(text)

    provocation(name)(lambda patch: on_first(patch, name, "job.assign", act))


# Signatures


def _flip(_server: GatewayServer, members: Members) -> None:
    signature = members["sig"]["signature"]
    members["sig"]["signature"] = ("B" if signature[0] == "A" else "A") + signature[1:]


_altered("forged-signature", _flip)
_altered("forged-ready", _flip, "ready")
_altered(
    "params-differ",
    lambda server, members: sign(server, members, params=encoded({**members["payload"], "kind": "implement"})),
)
_altered(
    "params-twice",
    lambda server, members: sign(server, members, params='{"kind":"implement",' + encoded(members["payload"])[1:]),
)
_altered("sig-of-other-tenant", lambda server, members: sign(server, members, tenant=members["agentId"]))
_altered("sig-of-other-workspace", lambda server, members: sign(server, members, workspace="ws-other"))
_altered(
    "old-signature",
    lambda server, members: sign(server, members, timestamp=server._ctx.wall_ms() - 120_000),
)
_altered(
    "early-signature",
    lambda server, members: sign(server, members, timestamp=server._ctx.wall_ms() + 120_000),
)
_altered(
    "params-spaced",
    lambda server, members: sign(server, members, params=json.dumps(members["payload"], indent=1)),
)
_altered(
    "payload-turned-round",
    lambda server, members: members.update(payload=dict(reversed(members["payload"].items()))),
)


@provocation("nonce-again")
def nonce_again(patch: Patch) -> None:
    """The second assignment bears the nonce of the first."""
    nonces: list[str] = []

    def make(original: Function) -> Function:
        def write_frame(self: GatewayServer, socket: GatewaySocket, output: Transmit) -> None:
            members = json.loads(output.text)
            if members["type"] == "job.assign":
                nonces.append(members["sig"]["nonce"])
                signer = self.core._signer
                if len(nonces) == 2 and signer is not None:
                    note_order(self, "nonce-again")
                    with_old = Patch()
                    with_old.set(signer, "_nonce", lambda: nonces[0])
                    sign(self, members)
                    with_old.undo()
                    output = Transmit(encoded(members))
            original(self, socket, output)

        return write_frame

    patch.wrap(GatewayServer, "_write_frame", make)


# Wrong and odd frames


def _resigned(**changes: Any) -> Alter:
    def alter(server: GatewayServer, members: Members) -> None:
        members.update(changes)
        sign(server, members)

    return alter


_OTHER_TENANT = "00000000-0000-4000-8000-00000000000f"
_OTHER_ID = "00000000-0000-4000-8000-0000000000aa"

_altered("foreign-tenant", _resigned(tenantId=_OTHER_TENANT))
_altered("unknown-type", _resigned(type="job.invented"))
_altered("high-ack", _resigned(ack=9999))


def _unknown_member(server: GatewayServer, members: Members) -> None:
    members["payload"]["priority"] = "high"
    sign(server, members)


_altered("unknown-member", _unknown_member)


def _used_number(server: GatewayServer, members: Members) -> str:
    """The assignment under another msgId, with its number used up by itself."""
    members["msgId"] = _OTHER_ID
    sign(server, members)
    return encoded(members)


@provocation("used-number")
def used_number(patch: Patch) -> None:
    """Right behind the first assignment comes another message with its number."""

    def act(write: Callable[[str], None], server: GatewayServer, members: Members) -> None:
        write(encoded(members))
        write(_used_number(server, members))

    on_first(patch, "used-number", "job.assign", act)


@provocation("second-ready")
def second_ready(patch: Patch) -> None:
    """Right behind the first assignment comes the ready once more, as a new message."""
    readies: list[Members] = []

    def keep(write: Callable[[str], None], _server: GatewayServer, members: Members) -> None:
        readies.append(dict(members))
        write(encoded(members))

    def act(write: Callable[[str], None], server: GatewayServer, members: Members) -> None:
        write(encoded(members))
        again = {**readies[0], "msgId": _OTHER_ID}
        sign(server, again)
        write(encoded(again))

    on_first(patch, "ready-kept", "ready", keep)
    on_first(patch, "second-ready", "job.assign", act)


def _control(type_name: str, payload: Members) -> Callable[[GatewayServer, Members], str]:
    def text(_server: GatewayServer, members: Members) -> str:
        frame = {key: members[key] for key in ("schemaVersion", "tenantId", "agentId", "workspaceId", "ts")}
        return encoded({**frame, "type": type_name, "msgId": _OTHER_ID, "seq": 0, "payload": payload})

    return text


_preceded("junk", lambda *_: "{")
_preceded("binary", lambda _server, members: encoded(members).encode())  # type: ignore[arg-type,return-value]
_preceded("too-large", lambda _server, members: encoded({**members, "pad": "é" * 24_800}))
_preceded(
    "too-large-unknown", lambda _server, members: encoded({**members, "type": "job.invented", "pad": "x" * 50_000})
)
_preceded("malformed-error", _control("error", {"retryable": True}))
_preceded("soft-error", _control("error", {"code": "rate_limited", "retryable": True}))
_preceded("v1-command", lambda *_: encoded({"type": "status", "requestId": "r-1"}))


@provocation("text-ping")
def text_ping(patch: Patch) -> None:
    """A text ping stands before the first assignment."""

    def make(original: Function) -> Function:
        pinged: list[bool] = []

        def write(self: GatewayServer, socket: GatewaySocket, output: Any) -> None:
            if isinstance(output, Transmit) and '"job.assign"' in output.text and not pinged:
                pinged.append(True)
                original(self, socket, Transmit("ping"))
            original(self, socket, output)

        return write

    patch.wrap(GatewayServer, "_write", make)


@provocation("config-update")
def config_update(patch: Patch) -> None:
    """With the first assignment the gateway sends a legal type that agents need not handle."""
    done: list[bool] = []

    def make(original: Function) -> Function:
        def assign(self: GatewayCore, agent_id: str, order: object, now: float) -> object:
            if not done:
                done.append(True)
                workspace = self._agents[agent_id].workspace_id
                self._send(agent_id, Draft("config.update", {"revision": 1, "values": {}}, workspace), now)
            return original(self, agent_id, order, now)

        return assign

    patch.wrap(GatewayCore, "assign", make)


@provocation("second-key")
def second_key(patch: Patch) -> None:
    """The agent trusts another key before the one that the gateway signs with."""

    def make(original: Function) -> Function:
        def init(self: Verifier, trusted: Mapping[str, bytes], skew_seconds: float) -> None:
            older = bytes(SigningKey(bytes(32)).verify_key)
            original(self, {"an-older-key": older, **trusted}, skew_seconds)

        return init

    patch.wrap(Verifier, "__init__", make)


@provocation("approval-forged")
def approval_forged(patch: Patch) -> None:
    """The token of an approval is signed by a key that nobody trusts."""
    patch.wrap(
        driver,
        "mint_token",
        lambda original: lambda _key, *claims: original(SigningKey(bytes(32)), *claims),
    )


@provocation("approval-expired")
def approval_expired(patch: Patch) -> None:
    """The token of an approval was made an hour ago."""
    patch.wrap(
        driver,
        "mint_token",
        lambda original: lambda *claims: original(*claims[:-1], claims[-1] - 3600),
    )


@provocation("session-forgotten")
def session_forgotten(patch: Patch) -> None:
    """The gateway has lost its sessions, as after a restart."""
    servers: list[GatewayServer] = []
    patch.after(GatewayServer, "__init__", lambda self, *_args, **_named: servers.append(self))

    def resumable(_self: SessionStore, resume: object, *_: object) -> None:
        if resume is not None:
            note_order(servers[0], "session-forgotten")

    patch.set(SessionStore, "resumable", resumable)


@provocation("assigned-again")
def assigned_again(patch: Patch) -> None:
    """After a resume the gateway sends an assignment again that it has the ack of."""
    assigned: list[Members] = []

    def make(original: Function) -> Function:
        def write_frame(self: GatewayServer, socket: GatewaySocket, output: Transmit) -> None:
            members = json.loads(output.text)
            original(self, socket, output)
            if members["type"] == "job.assign":
                assigned.append(members)
            if members["type"] == "ready" and members["payload"]["resumed"] and assigned:
                note_order(self, "assigned-again")
                again = {**assigned[0]}
                sign(self, again)
                original(self, socket, Transmit(encoded(again)))

        return write_frame

    patch.wrap(GatewayServer, "_write_frame", make)


@provocation("unknown-ref")
def unknown_ref(patch: Patch) -> None:
    """Right behind the first assignment the gateway asks for a conversation that nobody ever had."""
    _asking(patch, "chat.session")


@provocation("unserved-kind")
def unserved_kind(patch: Patch) -> None:
    """Right behind the first assignment the gateway asks for a kind of content that nobody serves."""
    _asking(patch, "scan.report")


def _asking(patch: Patch, kind: str) -> None:
    done: list[bool] = []

    def make(original: Function) -> Function:
        def assign(self: GatewayCore, agent_id: str, order: object, now: float) -> object:
            job = original(self, agent_id, order, now)
            if not done:
                done.append(True)
                self.request_content(agent_id, kind, _OTHER_ID, now)
            return job

        return assign

    patch.wrap(GatewayCore, "assign", make)


@provocation("no-ready")
def no_ready(patch: Patch) -> None:
    """The gateway takes what comes and never answers a handshake."""

    def make(original: Function) -> Function:
        def write_frame(self: GatewayServer, socket: GatewaySocket, output: Transmit) -> None:
            if '"type":"ready"' not in output.text:
                original(self, socket, output)

        return write_frame

    patch.wrap(GatewayServer, "_write_frame", make)
