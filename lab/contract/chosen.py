"""Which contract the lab works by: its own, or the copy of a gateway's folder that `lab contract use` took.

The copy lies in the working folder, where the runs lie too: in `.lab/contract/`, with the record `CHOSEN.json`. So one
checkout, a read-only one as well, serves several projects, each with a contract of its own, and the lab's own tests
judge the lab's own. The record holds the source, its commit and the sha256 of every file (CT-054). Copies are never
edited: at each use they are compared with the record, and a changed, added or missing file is refused (CT-051).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.errors import ContractError
from lab.protocol.contract import FIRST_REVISION, INDEX_FILE, default_contract_folder

CHOSEN_FOLDER: Final = Path(".lab") / "contract"
"""Where the choice lies in the working folder."""

RECORD_FILE: Final = "CHOSEN.json"
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
"""A commit of the source, in full (CT-052)."""

COPY_NAME: Final = re.compile(r"[0-9a-f]{16}")
"""What the folder of a copy is called; see `ChosenRecord.folder_name`."""

RECORD_LIMIT: Final = 1024 * 1024
"""Bytes of a record at most."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_WAY_OUT = (
    "Take the contract again with `lab contract use DIR --commit SHA`, or go back with `lab contract use --ours`."
)


@dataclass(frozen=True, slots=True)
class ContractInUse:
    """The contract that runs, laws and verification go by. `commit` None: it is the lab's own."""

    folder: Path
    revision: str
    commit: str | None = None

    def label(self, revisions: str) -> str:
        """How a run names the contract: the revisions that it spoke, and the commit of a chosen one."""
        return revisions if self.commit is None else f"{revisions}@{self.commit}"

    def __str__(self) -> str:
        """For people: the revision, and where it is from."""
        return self.label(self.revision) if self.commit else f"{self.revision} (reconstruction)"


@dataclass(frozen=True, slots=True)
class ChosenRecord:
    """What was taken, from where. `files` are sha256 by the path within the folder, with `/`.

    `supplied` are those among them that the lab added, since the source's revision has none. `described` says what a
    `CONTRACT_SOURCE.json` beside the files told of them: repo, path, branch and the like.
    """

    source: str
    commit: str
    revision: str
    files: Mapping[str, str]
    tip: str | None = None
    supplied: tuple[str, ...] = ()
    described: Mapping[str, str] | None = None

    @property
    def folder_name(self) -> str:
        """The name of the copy's folder: other content never lies where something was read before."""
        lines = "".join(f"{name} {digest}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def to_text(self) -> str:
        """The record's file."""
        members: dict[str, Any] = {
            "source": self.source,
            "commit": self.commit,
            "branchTip": self.tip,
            "revision": self.revision,
            "folder": self.folder_name,
            "supplied": list(self.supplied),
            "described": dict(self.described) if self.described is not None else None,
            "files": dict(sorted(self.files.items())),
        }
        return json.dumps(members, indent=2) + "\n"


def contract_in_use(project: Path | None = None) -> ContractInUse:
    """The contract of a working folder (default: the current one), its copy compared with its record.

    Raises ContractError for a record that cannot be read and for a copy that drifted, naming every file of it.
    """
    home = (project or Path.cwd()) / CHOSEN_FOLDER
    record = read_record(home)
    if record is None:
        folder = default_contract_folder()
        return ContractInUse(folder, _own_revision(folder))
    folder = home / record.folder_name
    drift = list(_drift(folder, record))
    if drift:
        raise ContractError(
            f"the contract chosen at commit {record.commit} is no longer what was taken from {record.source}:\n"
            + "\n".join(f"  {line}" for line in drift)
            + f"\nA copy is never edited (CT-051). {_WAY_OUT}"
        )
    return ContractInUse(folder, record.revision, record.commit)


def contract_folder() -> Path:
    """The folder of the contract in use; see `contract_in_use`, also for what it raises."""
    return contract_in_use().folder


def read_record(home: Path) -> ChosenRecord | None:
    """The record in a folder of choice; None when nothing is chosen. One of another form raises ContractError."""
    file = home / RECORD_FILE
    try:
        with file.open("rb") as opened:
            text = opened.read(RECORD_LIMIT + 1)
        document = json.loads(text) if len(text) <= RECORD_LIMIT else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ContractError(f"{file}: cannot be read: {error.strerror}. {_WAY_OUT}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{file}: not JSON: {error}. {_WAY_OUT}") from error
    record = _record(document)
    if record is None:
        raise ContractError(f"{file}: not the record that `lab contract use` wrote. {_WAY_OUT}")
    return record


def sha256_of(content: bytes) -> str:
    """In hex, as records have it."""
    return hashlib.sha256(content).hexdigest()


def _record(document: Any) -> ChosenRecord | None:
    match document:
        case {
            "source": str(source),
            "commit": str(commit),
            "branchTip": None | str() as tip,
            "revision": str(revision),
            "folder": str(folder),
            "supplied": list(supplied),
            "described": None | dict() as described,
            "files": dict(files),
        } if COMMIT.fullmatch(commit) and COPY_NAME.fullmatch(folder):
            if not all(isinstance(one, str) and _SHA256.fullmatch(one) for one in files.values()):
                return None
            record = ChosenRecord(source, commit, revision, files, tip, tuple(map(str, supplied)), described)
            return record if record.folder_name == folder else None
    return None


def _drift(folder: Path, record: ChosenRecord) -> Iterator[str]:
    seen = set()
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(folder).as_posix()
        seen.add(name)
        if name not in record.files:
            yield f"{name}: added"
        elif not path.is_file() or _digest(path) != record.files[name]:
            yield f"{name}: changed"
    yield from (f"{name}: missing" for name in sorted(record.files) if name not in seen)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _own_revision(folder: Path) -> str:
    """What the index says; one that says nothing, or cannot be read, is refused where it is loaded."""
    try:
        revision = json.loads((folder / INDEX_FILE).read_text("utf-8")).get("revision", FIRST_REVISION)
    except (OSError, ValueError, AttributeError):
        return FIRST_REVISION
    return revision if isinstance(revision, str) else FIRST_REVISION
