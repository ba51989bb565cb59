"""Proxies from a file: Toxiproxy's own JSON, a list of proxies, in which each may have its toxics as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RemoteError, UsageError
from lab.faults.api import bodies
from lab.faults.engine import Engine
from lab.faults.go_json import List, decode_untrusted
from lab.faults.go_scan import MAX_BYTES
from lab.faults.specs import ProxySpec, ToxicSpec


@dataclass(frozen=True)
class ConfiguredProxy:
    """A proxy of a file."""

    spec: ProxySpec
    toxics: tuple[ToxicSpec, ...]


def load_config(path: Path) -> list[ConfiguredProxy]:
    """The proxies that a file lists. Raises `UsageError` for a file that cannot be read or holds anything else."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}. Name a file that can be read.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"--config {path}: it has more than {MAX_BYTES} bytes. Name a list of proxies in JSON.")
    try:
        return [_proxy(body, number) for number, body in enumerate(decode_untrusted(data, List(bodies.PROXY)), start=1)]
    except RemoteError as error:
        raise UsageError(f"--config {path}: {error}. Due is Toxiproxy's JSON: a list of proxies.") from error


def _proxy(body: dict[str, object], number: int) -> ConfiguredProxy:
    return ConfiguredProxy(bodies.proxy_spec(body, f" at proxy {number}"), bodies.toxic_specs(body))


async def configure(engine: Engine, path: Path, proxies: Sequence[ConfiguredProxy]) -> None:
    """Create the proxies of a file. Raises `UsageError` for one that cannot be, and `ListenFailed`."""
    for proxy in proxies:
        try:
            await engine.create(proxy.spec, proxy.toxics)
        except UsageError as error:
            raise UsageError(f"--config {path}: proxy {proxy.spec.name}: {error}.") from error
