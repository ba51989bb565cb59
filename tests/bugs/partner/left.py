"""Slips of the catalogue that are not planted, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NOT_PLANTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "api-other-organization-served": "no step of a scenario calls another organization than the driver's",
        "client-recovery-unbounded": "no scenario contests a context round after round",
    }
)
