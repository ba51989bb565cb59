"""The bodies of the fault API: what a request sets, and how proxies, toxics and connections are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.faults.address import ANY_PORT, to_text
from lab.faults.api.answers import BAD_STREAM, BAD_TYPE, MISSING_FIELD, ApiError
from lab.faults.api.kinds import ATTRIBUTES
from lab.faults.go_json import Field, List, Object, Raw, Struct, decode_later
from lab.faults.proxy import Proxy
from lab.faults.refusals import ToxicExists
from lab.faults.specs import STREAMS, ProxyConnection, ProxySpec, Toxic, ToxicSpec

_ATTRIBUTES = Field("attributes", Raw("toxics.NoopToxic"))
_PROXY_FIELDS = (Field("name", "string"), Field("listen", "string"), Field("upstream", "string"))
_ENABLED = Field("enabled", "bool")

TOXIC = Struct(
    "toxics.ToxicWrapper",
    (
        _ATTRIBUTES,
        Field("name", "string"),
        Field("type", "string"),
        Field("stream", "string"),
        Field("toxicity", "float32"),
    ),
)
TOXIC_UPDATE = Struct("struct { … }", (_ATTRIBUTES, Field("toxicity", "float32")))
PROXY_UPDATE = Struct("toxiproxy.Proxy", (*_PROXY_FIELDS, _ENABLED))
PROXY = Struct("toxiproxy.Proxy", (*_PROXY_FIELDS, _ENABLED, Field("toxics", List(TOXIC))))
POPULATE = List(
    Struct('struct { toxiproxy.Proxy; Enabled *bool "json:\\"enabled\\"" }', (*_PROXY_FIELDS, _ENABLED)),
)


def proxy_spec(body: Mapping[str, Any], at: str = "") -> ProxySpec:
    """The proxy that a body asks for. Raises `ApiError` when it has no name or no upstream."""
    for name in ("name", "upstream"):
        if not body.get(name):
            raise ApiError(400, f"{MISSING_FIELD}: {name}{at}")
    return ProxySpec(body["name"], body.get("listen") or ANY_PORT, body["upstream"], body.get("enabled", True))


def proxy_change(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a body changes of a proxy, by the names of `Engine.update`; a name in it says nothing.

    Raises `ApiError` for an empty upstream, with which the Go server leaves a proxy that serves nobody.
    """
    change = {name: body[name] for name in ("listen", "upstream", "enabled") if name in body}
    if change.get("upstream") == "":
        raise ApiError(400, f"{MISSING_FIELD}: upstream")
    if change.get("listen") == "":
        change["listen"] = ANY_PORT
    return change


def toxic_spec(proxy: Proxy | None, body: Mapping[str, Any], path: tuple[str, ...] = ()) -> ToxicSpec:
    """The toxic that a body asks for, for a proxy that is there or not yet.

    What is wrong is found in the order of the Go server: the stream, the type, the name, then the attributes. Raises
    `ApiError` and `GoJsonError`.
    """
    stream, kind = body.get("stream", "downstream").lower(), body.get("type", "")
    if stream not in STREAMS:
        raise ApiError(400, BAD_STREAM)
    if kind not in ATTRIBUTES:
        raise ApiError(400, BAD_TYPE)
    name = body.get("name") or f"{kind}_{body.get('stream', stream)}"
    if proxy is not None and any(toxic.name == name for toxic in proxy.toxics):
        raise ToxicExists(proxy.name, name)
    return ToxicSpec(kind, name, stream, body.get("toxicity", 1.0), attributes(kind, body, path))


def toxic_specs(body: Mapping[str, Any]) -> tuple[ToxicSpec, ...]:
    """The toxics that the body of a proxy asks for. Raises `ApiError` and `GoJsonError`."""
    return tuple(toxic_spec(None, toxic, ("toxics",)) for toxic in body.get("toxics", []))


def attributes(kind: str, body: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, object]:
    """The attributes that a body sets for a toxic of this kind. Raises `GoJsonError`."""
    raw = body.get("attributes", Object([]))
    return decode_later(raw, ATTRIBUTES[kind], (*path, "attributes"))


def toxic_json(toxic: Toxic) -> dict[str, object]:
    """A toxic as clients see it."""
    return {
        "attributes": toxic.attributes,
        "name": toxic.name,
        "type": toxic.type,
        "stream": toxic.stream,
        "toxicity": toxic.toxicity,
    }


def proxy_json(proxy: Proxy) -> dict[str, object]:
    """A proxy as clients see it; the Go server shows its logger, which has nothing to show, and so do we."""
    return {
        "name": proxy.name,
        "listen": proxy.listen,
        "upstream": proxy.upstream,
        "enabled": proxy.enabled,
        "Logger": {},
        "toxics": [toxic_json(toxic) for toxic in proxy.toxics],
    }


def connection_json(connection: ProxyConnection) -> dict[str, object]:
    """A live connection, with the toxics that touch it."""
    local = connection.upstream_local
    return {
        "id": connection.id,
        "client": to_text(connection.client),
        "upstream_local": None if local is None else to_text(local),
        "toxics": connection.toxics,
        "upstream": {"sent": connection.upstream_sent, "held": connection.upstream_held},
        "downstream": {"sent": connection.downstream_sent, "held": connection.downstream_held},
    }
