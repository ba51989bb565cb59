"""Weather: sets of toxics on one link, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.specs import ToxicSpec


@dataclass(frozen=True)
class Phase:
    """Toxics that stand together, for `seconds`; None holds until the weather ends. Without toxics it is calm."""

    toxics: tuple[ToxicSpec, ...]
    seconds: float | None = None


@dataclass(frozen=True)
class Weather:
    """A named weather. Several phases follow each other and begin again; one alone holds."""

    name: str
    about: str
    phases: tuple[Phase, ...]


def recurring(toxics: tuple[ToxicSpec, ...], seconds: float, every: float) -> tuple[Phase, ...]:
    """Toxics that stand for `seconds` at the beginning of each `every` seconds."""
    return Phase(toxics, seconds), Phase((), every - seconds)
