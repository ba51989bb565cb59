"""Values that exist, for what Schemathesis makes up: without them no call would get past an unknown conversation.

Two of three ids are replaced; the rest stay what they were, so that what is unknown or malformed is seen as well.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import HookContext

SEEDS: dict[str, Any] = json.loads(Path(os.environ["INTEROP_SEEDS"]).read_text(encoding="utf-8"))


def replaced(value: object) -> bool:
    """Whether a value gives way: by the value itself, so that a seed repeats a run."""
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass")) % 3 > 0


@schemathesis.hook
def before_call(context: HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Put what exists in place of what was made up, in path, query and body."""
    operation = case.operation.definition.raw.get("operationId", "")
    seeds = {**SEEDS["all"], **SEEDS.get(operation, {})}
    for given in (case.path_parameters, case.query, case.body):
        if isinstance(given, dict):
            given.update({name: seeds[name] for name, value in given.items() if name in seeds and replaced(value)})
