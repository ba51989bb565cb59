"""Planting a slip of the catalogue: patches of the reference agent or a double that last as long as one run.

A module `plants_*.py` beside this file registers its plants:

    @plant("agent-no-explicit-ack", scenario="fix", law="acks")
    def no_explicit_ack(patch: Patch) -> None:
        def accept(self: Connection, frame: Frame, now: float) -> None:
            patch.slipped()
            ...
        patch.set(AgentConnection, "accept", accept)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, Final

Function = Callable[..., Any]


class Patch:
    """Attributes that are replaced until `undo`; counts how often the wrong code was reached."""

    def __init__(self) -> None:
        self.reached = 0
        self._undo: list[Callable[[], None]] = []

    def slipped(self) -> None:
        """To be called by the planted code itself, where it does what is wrong."""
        self.reached += 1

    def set(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute that is there. One that a class inherits is shadowed in that class alone."""
        before = vars(owner).get(name)
        own = name in vars(owner)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner!r} has no {name} to be replaced")
        setattr(owner, name, value)
        self._undo.append((lambda: setattr(owner, name, before)) if own else (lambda: delattr(owner, name)))

    def wrap(self, owner: Any, name: str, make: Callable[[Function], Function]) -> None:
        """Replace a function by what `make` builds around it."""
        original = getattr(owner, name)
        self.set(owner, name, wraps(original)(make(original)))

    def after(self, owner: Any, name: str, act: Function) -> None:
        """Let the function run, then call `act` with the same arguments; what the function gave is kept."""

        def make(original: Function) -> Function:
            def both(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                act(*args, **kwargs)
                return result

            return both

        self.wrap(owner, name, make)

    def undo(self) -> None:
        """Put everything back, the latest first."""
        while self._undo:
            self._undo.pop()()


PlantSlip = Callable[[Patch], None]


@dataclass(frozen=True)
class Plant:
    """A slip of the catalogue that can be switched on.

    `scenario` is a file of `scenarios/` beside this one, without its suffix. `law` is the law that catches the slip
    first, None while none does; `why` then tells what a law would have to see. `promise` says that this law's sentence
    is the slip's promise though the requirements that the two name differ. `blamed` are laws of the agent that a slip
    of the gateway may break as well, wrongly.
    """

    slip: str
    scenario: str
    law: str | None
    put: PlantSlip
    promise: bool = False
    why: str = ""
    blamed: tuple[str, ...] = ()


class Plants:
    """The plants of one leg: those of all modules `plants_*` of a package, whose files lie in `folder`."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
        self._folder = folder
        self._known: dict[str, Plant] = {}

    def plant(
        self,
        slip: str,
        *,
        scenario: str,
        law: str | None,
        promise: bool = False,
        why: str = "",
        blamed: tuple[str, ...] = (),
    ) -> Callable[[PlantSlip], PlantSlip]:
        """Register a plant of a slip. `law` None wants a `why`."""

        def register(put: PlantSlip) -> PlantSlip:
            if slip in self._known:
                raise ValueError(f"{slip} is planted twice")
            if law is None and not why:
                raise ValueError(f"{slip}: no law catches it, and nothing says what one would have to see")
            self._known[slip] = Plant(slip, scenario, law, put, promise, why, blamed)
            return put

        return register

    def all(self) -> Mapping[str, Plant]:
        """Every plant by its slip."""
        for module in sorted(found.name for found in pkgutil.iter_modules([str(self._folder)])):
            if module.startswith("plants_"):
                importlib.import_module(f"{self._package}.{module}")
        return dict(sorted(self._known.items()))


_CHAT_LEG: Final = Plants("tests.bugs", Path(__file__).parent)
plant: Final = _CHAT_LEG.plant


@cache
def all_plants() -> Mapping[str, Plant]:
    """Every plant of the chat leg by its slip."""
    return _CHAT_LEG.all()


@contextmanager
def planted(*puts: PlantSlip) -> Iterator[Patch]:
    """The plants, for as long as the block lasts."""
    patch = Patch()
    try:
        for put in puts:
            put(patch)
        yield patch
    finally:
        patch.undo()
