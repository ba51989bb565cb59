"""A contract folder of one's own, to change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from lab.protocol.contract import default_contract_folder


def copied_contract(place: Path) -> Path:
    """A copy of the project's contract below `place`."""
    return Path(shutil.copytree(default_contract_folder(), place / "contract"))


def read(file: Path) -> Any:
    """The JSON document of a file."""
    return json.loads(file.read_text("utf-8"))


def write(file: Path, document: object) -> None:
    """Put a JSON document into a file."""
    file.write_text(json.dumps(document), encoding="utf-8")
