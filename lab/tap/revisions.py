"""Which revision of the contract a frame needs: an older peer refuses what this side's own contract allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.errors import ContractError
from lab.tap.schemas import Schemas, schemas_of


@lru_cache(maxsize=4)
def revisions_of(folder: Path) -> Revisions:
    """The revisions of a contract folder, read once for all taps of this process; see `Revisions`."""
    return Revisions(folder)


class Revisions:
    """Every revision that a folder describes; each takes what those before it took (CT-061, CT-062)."""

    def __init__(self, folder: Path) -> None:
        """Read `folder`; one that cannot be used raises `ContractError`. A single revision differs from none."""
        names, edited = _steps(folder)
        self._schemas: tuple[tuple[str, Schemas], ...] = tuple((name, schemas_of(folder, name)) for name in names)
        self._type_since = {type_name: name for name, schemas in reversed(self._schemas) for type_name in schemas.types}
        oldest = names[0] if names else ""
        # Of all other types every revision says the same, and most frames are of these.
        newer = {type_name for type_name, name in self._type_since.items() if name != oldest}
        self._differing = frozenset(edited & set(self._type_since) | newer)

    def facts(self, frame: Mapping[str, Any]) -> dict[str, str]:
        """`since` and `typeSince` of a frame: the oldest revision that takes it and that knows its type.

        Neither where it is the first one; no `since` where none takes the frame. Never raises for what a peer sends.
        """
        type_name = frame.get("type")
        if not isinstance(type_name, str) or type_name not in self._differing:
            return {}
        oldest = self._schemas[0][0]
        known = self._type_since[type_name]
        facts = {} if known == oldest else {"typeSince": known}
        taken_by = (
            name
            for name, schemas in self._schemas
            if type_name in schemas.types and schemas.judge(type_name, frame) == "ok"
        )
        since = next(taken_by, oldest)
        return facts if since == oldest else {**facts, "since": since}


def _steps(folder: Path) -> tuple[list[str], set[str]]:
    """The names of the revisions, oldest first, and of the schemas that differ between them."""
    file = folder / "revisions.json"
    if not file.exists():
        return [], set()
    try:
        steps = json.loads(file.read_text("utf-8"))
        names = [step["revision"] for step in reversed(steps["older"])]
        edited = {edit["schema"] for step in steps["older"] for edit in step["edits"]}
        return [*names, steps["newest"]], edited
    except OSError as error:
        raise ContractError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ContractError(f"{file}: not the steps from the newest revision to the oldest") from error
