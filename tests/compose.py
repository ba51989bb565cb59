"""docker-compose.yml and Dockerfile as data: variables filled in, commands taken apart."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"
LAB_IMAGE = "lab:0.1.0"

_VARIABLE = re.compile(r"(?<!\$)\$\{(?P<name>[A-Z0-9_]+)(?::-(?P<default>[^}]*))?\}")

Service = Mapping[str, Any]


def raw_compose() -> dict[str, Any]:
    """The file as YAML has it."""
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return loaded


def variables() -> dict[str, str | None]:
    """The variables of the file, with their defaults."""
    return {found["name"]: found["default"] for found in _VARIABLE.finditer(COMPOSE.read_text("utf-8"))}


def filled(text: str) -> str:
    """A value as a container gets it when no variable is set."""
    return _VARIABLE.sub(lambda found: found["default"] or "", text).replace("$$", "$")


def services() -> Mapping[str, Service]:
    """All services, with every variable at its default."""
    made: Mapping[str, Service] = _filled_in(raw_compose()["services"])
    return made


def _filled_in(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _filled_in(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled_in(one) for one in value]
    return filled(value) if isinstance(value, str) else value


def is_lab(service: Service) -> bool:
    """Whether it runs the lab's image."""
    return bool(service["image"] == LAB_IMAGE)


def script(service: Service) -> str | None:
    """What its shell is given, None where `lab` is started without one."""
    return None if "entrypoint" not in service else str(service["command"][0])


def lab_arguments(service: Service) -> list[str]:
    """What `lab` is called with."""
    text = script(service)
    if text is None:
        return list(service["command"])
    (call,) = re.findall(r"(?<![/\w])lab ([^>;]*)", text)
    # What the shell works out itself is a number.
    return shlex.split(re.sub(r"\$\([^)]*\)", "1", call))


def port_options(arguments: list[str]) -> list[int]:
    """The ports that a call of `lab` listens on."""
    return [int(arguments[place + 1]) for place, word in enumerate(arguments) if word.endswith("port")]


@dataclass(frozen=True)
class Proxy:
    """A proxy of a file, by its ports."""

    name: str
    listen: int
    upstream: int


@dataclass(frozen=True)
class Front:
    """A service of fault proxies, the file that it has them from, and the services that stand behind it."""

    name: str
    config: str
    api: int
    """Port of its fault API."""
    proxies: Sequence[Proxy]
    behind: Sequence[str]

    @property
    def listens(self) -> set[int]:
        """The ports of its proxies."""
        return {proxy.listen for proxy in self.proxies}

    @property
    def upstreams(self) -> set[int]:
        """The ports that its proxies lead to."""
        return {proxy.upstream for proxy in self.proxies}

    @property
    def published(self) -> Mapping[int, int]:
        """The port on this machine of each that is published."""
        mappings = [mapping.split(":") for mapping in services()[self.name]["ports"]]
        return {int(inner): int(outer) for _, outer, inner in mappings}


def fronts() -> Sequence[Front]:
    """Every service that has its proxies from a file."""
    return [_front(name, service) for name, service in services().items() if "--config" in service["command"]]


def front(name: str) -> Front:
    """The one of this name."""
    (found,) = [one for one in fronts() if one.name == name]
    return found


def _front(name: str, service: Service) -> Front:
    arguments = lab_arguments(service)
    config = arguments[arguments.index("--config") + 1]
    listed = json.loads((ROOT / config).read_text("utf-8"))
    proxies = [Proxy(one["name"], _port(one["listen"]), _port(one["upstream"])) for one in listed]
    (api,) = port_options(arguments)
    behind = [other for other, one in services().items() if one.get("network_mode") == f"service:{name}"]
    return Front(name, config, api, proxies, behind)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


@dataclass(frozen=True)
class Instruction:
    """A line of a Dockerfile."""

    word: str
    rest: str


def dockerfile() -> Iterator[Instruction]:
    """Its instructions, each with its continuation lines."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield Instruction(word, rest.strip())


def copied() -> dict[str, str]:
    """What the image gets from the checkout: source and place below its folder."""
    found: dict[str, str] = {}
    for one in dockerfile():
        if one.word == "COPY":
            *sources, target = one.rest.split()
            found |= {source: source if target == "./" else target for source in sources}
    return found
