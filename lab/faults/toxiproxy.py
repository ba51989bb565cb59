"""A Toxiproxy server, driven through the client that others wrote, toxiproxy-python.

The client keeps its server in a class, so there is one server in a process. Its handles go stale and it hides failures:
so every proxy is looked up anew, and after each change what the server has now is read back. All calls block.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import toxiproxy
import toxiproxy.api
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from lab.faults.address import ANY_PORT, Address, from_text, to_text
from lab.faults.specs import ToxicSpec
from lab.faults.toxiproxy_calls import CALL_SECONDS, Calls, ToxiproxyFault, told

"""Where proxies listen: any free port of this machine, since the doubles are here."""

T = TypeVar("T")


class ToxicRefused(ToxiproxyFault):
    """The server does not know this toxic, or does not take it as it is; `reason` are its words."""

    def __init__(self, spec: ToxicSpec, reason: str) -> None:
        super().__init__(f"the Toxiproxy server does not take the toxic {spec.type}: {reason}")
        self.reason = reason


class ToxiproxyServer:
    """The server at an address. Names of proxies and toxics are its user's to choose so that no other's is met.

    Every method raises `ToxiproxyFault` where the server is not there, takes too long, answers oddly, or does not have
    what it was told to have.
    """

    def __init__(self, address: Address, seconds: float = CALL_SECONDS) -> None:
        host, port = address
        self.name = to_text(address)
        self._calls = Calls(host, port, seconds)
        self._client = toxiproxy.Toxiproxy()
        self._client.update_api_consumer(f"[{host}]" if ":" in host else host, port)
        toxiproxy.api.requests = self._calls

    def version(self) -> str:
        """What the server says its version is."""
        answer = self._ask(lambda: toxiproxy.api.APIConsumer.get("/version").content)
        try:
            version = json.loads(answer)["version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            # Servers before 2.9 say it in plain text.
            version = answer.decode("utf-8", "replace").strip()
        if not isinstance(version, str) or not version[:1].isdigit() or len(version) > 64:
            raise self._calls.odd(f"no version, but {told(answer)}")
        return version

    def create(self, name: str, upstream: Address, *, enabled: bool = True) -> Address:
        """A new proxy; where it listens. One that is not enabled has no port yet."""
        self._ask(lambda: self._client.create(to_text(upstream), name, ANY_PORT, enabled))
        made = self._proxy(name)
        address = from_text(made.listen)
        if made.enabled is not enabled or made.upstream != to_text(upstream) or address is None:
            raise self._calls.odd(f"proxy {name} is not as it was asked for")
        if enabled and not address[1]:
            raise self._calls.odd(f"proxy {name} listens on no port")
        return address

    def names(self) -> tuple[str, ...]:
        """The names of all its proxies, others' too."""
        return tuple(self._ask(self._client.proxies))

    def enable(self, name: str) -> None:
        """Let a proxy accept connects."""
        self._switch(name, to=True)

    def disable(self, name: str) -> None:
        """Let a proxy refuse connects, and end those that it has."""
        self._switch(name, to=False)

    def add_toxic(self, proxy: str, spec: ToxicSpec) -> None:
        """Put a toxic with a name of its own into a proxy. Raises `ToxicRefused` where the server cannot have it."""
        asked: dict[str, Any] = {
            "type": spec.type,
            "name": spec.name,
            "stream": spec.stream,
            "toxicity": spec.toxicity,
            "attributes": dict(spec.attributes),
        }
        found = self._proxy(proxy)
        try:
            self._ask(lambda: found.add_toxic(**asked))
        except InvalidToxic as error:
            raise ToxicRefused(spec, told(*error.args)) from None
        self._check_toxic(proxy, spec)

    def update_toxic(self, proxy: str, spec: ToxicSpec) -> None:
        """Give a toxic that is there other attributes. The client has no word for it, but its calls do."""
        path = f"/proxies/{quote(proxy, safe='')}/toxics/{quote(spec.name or '', safe='')}"
        self._ask(lambda: toxiproxy.api.APIConsumer.post(path, json={"attributes": dict(spec.attributes)}))
        self._check_toxic(proxy, spec)

    def remove_toxic(self, proxy: str, name: str) -> None:
        """Take a toxic out of a proxy."""
        found = self._proxy(proxy)
        self._ask(lambda: found.destroy_toxic(name))
        if self._ask(lambda: found.get_toxic(name)) is not None:
            raise self._calls.odd(f"toxic {name} is still there")

    def delete(self, name: str) -> None:
        """Remove a proxy and end its connections. One that is gone already is none to remove."""
        found = self._ask(lambda: self._client.get_proxy(name))
        if found is None:
            return
        self._ask(lambda: self._client.destroy(found))
        if self._ask(lambda: self._client.get_proxy(name)) is not None:
            raise self._calls.odd(f"proxy {name} is still there")

    def gone(self, name: str) -> ToxiproxyFault:
        """The error for a proxy that the server had, and has no more."""
        return ToxiproxyFault(
            f"the proxy {name} is gone from the Toxiproxy server at {self.name}: somebody else removed it, or the "
            "server was restarted. Run again, and leave the server alone meanwhile."
        )

    def _switch(self, name: str, *, to: bool) -> None:
        found = self._proxy(name)
        listen = found.listen
        self._ask(found.enable if to else found.disable)
        now = self._proxy(name)
        if now.enabled is not to or now.listen != listen:
            raise self._calls.odd(f"proxy {name} is not as it was asked for")

    def _proxy(self, name: str) -> Any:
        """The client's handle of a proxy, fresh."""
        found = self._ask(lambda: self._client.get_proxy(name))
        if found is None:
            raise self.gone(name)
        return found

    def _check_toxic(self, proxy: str, spec: ToxicSpec) -> None:
        found = self._proxy(proxy)
        toxic = self._ask(lambda: found.get_toxic(spec.name))
        if toxic is None:
            raise self._calls.odd(f"toxic {spec.name} is not there")
        lost = [name for name, value in spec.attributes.items() if not _is_same(toxic.attributes, name, value)]
        if lost:
            raise ToxicRefused(spec, f"it does not have {', '.join(lost)} then")
        if (toxic.type, toxic.stream) != (spec.type, spec.stream) or not math.isclose(
            toxic.toxicity, spec.toxicity, rel_tol=1e-6
        ):
            raise self._calls.odd(f"toxic {spec.name} is not as it was asked for")

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except ProxyExists as error:
            raise ToxiproxyFault(f"the Toxiproxy server at {self.name} refuses: {told(*error.args)}") from None
        except NotFound as error:
            raise ToxiproxyFault(
                f"the Toxiproxy server at {self.name} lost what the run created: {told(*error.args)}"
            ) from None
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            # The client takes what it was answered for what is due, and stumbles over anything else.
            raise self._calls.odd(f"an answer that is not the one due ({type(error).__name__})") from None


def _is_same(attributes: Mapping[str, object], name: str, asked: object) -> bool:
    seen = attributes.get(name)
    if isinstance(seen, int | float) and isinstance(asked, int | float):
        return math.isclose(seen, asked, rel_tol=1e-6)
    return seen == asked
