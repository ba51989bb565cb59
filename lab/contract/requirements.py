"""The requirements ledger: what the source documents state or imply, one entry an id.

The ledger is a folder of YAML files, each a list of entries. Reading it is strict: an entry that is not exactly
of the form described in the files' own headers is a ContractError that names the file and the id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from lab.errors import ContractError

Basis = Literal["stated", "inferred"]
Scope = Literal["lab", "outside"]

PARTIES: Final = frozenset(
    {
        "contract",
        "cp",
        "la",
        "agent2",
        "runner",
        "partner-double",
        "partner-client",
        "store-mcp",
        "grant-issuer",
    }
)
"""Everyone that an entry may bind."""

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""A ledger file beyond this is refused unread."""

_ID: Final = re.compile(r"(?P<prefix>[A-Z][A-Z0-9]{1,4})-[0-9]{3}")
_REQUIRED: Final = frozenset({"id", "basis", "source", "who", "rule", "check"})
_OPTIONAL: Final = frozenset({"decision", "scope", "reason"})


@dataclass(frozen=True)
class Requirement:
    """One entry of the ledger.

    `scope` is `outside` when neither the lab nor its doubles have the thing that the entry is about; `reason`
    then says why, and is None otherwise. `decision` numbers the reading that settled the entry, if one did.
    """

    id: str
    basis: Basis
    source: str
    who: tuple[str, ...]
    rule: str
    check: str
    decision: int | None
    scope: Scope
    reason: str | None

    @property
    def prefix(self) -> str:
        """The family of the entry: `CHAT` of `CHAT-036`."""
        return self.id.partition("-")[0]


def default_requirements_folder() -> Path:
    """The ledger that lies beside the package in the project's tree."""
    return Path(__file__).resolve().parents[2] / "contract" / "requirements"


def load_requirements(folder: Path) -> Mapping[str, Requirement]:
    """Read every `*.yaml` of the folder, in file order, by id.

    Raises ContractError for a folder or file that cannot be read, a duplicate id, or an entry with an unknown,
    missing or ill-typed key; the message names the file and the id.
    """
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise ContractError(f"{folder}: no requirements (*.yaml) here; name the folder that holds the ledger")
    found: dict[str, Requirement] = {}
    homes: dict[str, Path] = {}
    for file in files:
        for number, entry in enumerate(_entries(file), start=1):
            requirement = _requirement(file, number, entry)
            if requirement.id in found:
                raise ContractError(f"{file}: {requirement.id}: this id already stands in {homes[requirement.id]}")
            found[requirement.id] = requirement
            homes[requirement.id] = file
    return found


def _entries(file: Path) -> list[Any]:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ContractError(f"{file}: larger than {MAX_FILE_BYTES} bytes, so it is not a ledger file")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(f"{file}: cannot be read: {error}") from error
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        raise ContractError(f"{file}: not YAML: {error}") from error
    if not isinstance(document, list):
        raise ContractError(f"{file}: holds a {type(document).__name__}; a list of entries is due")
    return document


def _requirement(file: Path, number: int, entry: object) -> Requirement:
    if not isinstance(entry, dict):
        raise ContractError(f"{file}: entry {number}: is a {type(entry).__name__}; a mapping is due")
    named = entry.get("id")
    if not isinstance(named, str) or _ID.fullmatch(named) is None:
        raise ContractError(
            f"{file}: entry {number}: id is {named!r}; a prefix and three digits, like CHAT-036, is due"
        )
    return _Reader(f"{file}: {named}", entry).requirement(named)


@dataclass(frozen=True)
class _Reader:
    """Takes one entry apart; `where` opens each message."""

    where: str
    entry: Mapping[Any, Any]

    def requirement(self, id_: str) -> Requirement:
        self._check_keys()
        scope = self._scope()
        return Requirement(
            id=id_,
            basis=self._basis(),
            source=self._text("source"),
            who=self._who(),
            rule=self._text("rule"),
            check=self._text("check"),
            decision=self._decision(),
            scope=scope,
            reason=self._reason(scope),
        )

    def _check_keys(self) -> None:
        given = {str(key) for key in self.entry}
        unknown = sorted(given - _REQUIRED - _OPTIONAL)
        if unknown:
            known = ", ".join(sorted(_REQUIRED | _OPTIONAL))
            raise self._error(f"unknown key {', '.join(unknown)}; known are {known}")
        missing = sorted(_REQUIRED - given)
        if missing:
            raise self._error(f"missing key {', '.join(missing)}")

    def _text(self, key: str) -> str:
        value = self.entry[key]
        if not isinstance(value, str) or not value.strip():
            raise self._error(f"{key} is {value!r}; a text is due")
        return value

    def _basis(self) -> Basis:
        value = self.entry["basis"]
        if value == "stated":
            return "stated"
        if value == "inferred":
            return "inferred"
        raise self._error(f"basis is {value!r}; stated or inferred is due")

    def _who(self) -> tuple[str, ...]:
        value = self.entry["who"]
        if not isinstance(value, list) or not value or not all(isinstance(party, str) for party in value):
            raise self._error(f"who is {value!r}; a list of parties is due")
        strangers = [party for party in value if party not in PARTIES]
        if strangers:
            raise self._error(f"who names {', '.join(strangers)}; known are {', '.join(sorted(PARTIES))}")
        return tuple(value)

    def _decision(self) -> int | None:
        value = self.entry.get("decision")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._error(f"decision is {value!r}; a number from 1 is due")
        return value

    def _scope(self) -> Scope:
        value = self.entry.get("scope", "lab")
        if value == "lab":
            return "lab"
        if value == "outside":
            return "outside"
        raise self._error(f"scope is {value!r}; lab or outside is due")

    def _reason(self, scope: Scope) -> str | None:
        if scope == "lab":
            if "reason" in self.entry:
                raise self._error("reason without scope: outside")
            return None
        if "reason" not in self.entry:
            raise self._error("scope: outside needs a reason")
        return self._text("reason")

    def _error(self, message: str) -> ContractError:
        return ContractError(f"{self.where}: {message}")
