"""Valid vectors with something changed at random, for validators to agree on. The same seed gives the same ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from lab.contract.vectors import load_vectors
from lab.protocol.contract import Contract, default_contract_folder

LONGEST_SEED = 4000
"""Characters of a vector that is worth changing: in a longer one nearly every change is to its filling."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, {}, [], "", "ok", "fix", "chat", "quality", "approval", "rejected", "uploaded", "internal"),
    *(0, 1, 1.0, -1, 0.5, 2, 64, 65, 32769, 9007199254740991, 9007199254740992, 2**70, -0.0, 1e300),
    *(
        "2026-11-04T10:00:00Z",
        "0b0b0b0b-0000-4000-8000-00000000000b",
        "5e" * 32,
        "c" * 43,
        "e30=",
        "text/plain",
        "😀",
        "é\n",
    ),
    *({"index": 0, "total": 1, "last": True}, {"alias": "default"}, ["job.chat", "job.chat"], [{"ref": "c" * 43}]),
)
NAMES = (
    *("sig", "paramsRaw", "chunk", "agentId", "requestId", "ack", "errorCode", "ref", "inline", "transient", "inputs"),
    *(
        "kind",
        "options",
        "capabilities",
        "approvalId",
        "reasonCode",
        "totalBytes",
        "contentType",
        "sha256",
        "x",
        "a b",
        "é",
    ),
)


def mutations(count: int, seed: int, contract: Contract) -> Iterator[tuple[str, Any]]:
    """Schema names and messages; each message differs from a valid vector in one or two places."""
    random = Random(seed)
    seeds = [
        (
            vector.message["type"] if file.is_cross_type and isinstance(vector.message, dict) else file.schema,
            vector.message,
        )
        for file in load_vectors(default_contract_folder()).files
        if file.is_body or file.is_cross_type or file.schema in contract.types
        for vector in file.vectors
        if vector.expect.valid and vector.counts_in(contract.revision) and len(repr(vector.message)) <= LONGEST_SEED
    ]
    for _ in range(count):
        name, message = random.choice(seeds)
        changed = copy.deepcopy(message)
        for _ in range(random.randint(1, 2)):
            _change(random, changed)
        yield str(name), changed


def _change(random: Random, message: Any) -> None:
    container = random.choice([message, *_containers(message)])
    if isinstance(container, list):
        _change_list(random, container)
        return
    name = random.choice(sorted(container) or ["x"])
    match random.randrange(5):
        case 0:
            container.pop(name, None)
        case 1:
            container[random.choice(NAMES)] = copy.deepcopy(random.choice(VALUES))
        case 2:
            container[name] = copy.deepcopy(random.choice(VALUES))
        case _:
            container[name] = _near(random, container.get(name))


def _change_list(random: Random, items: list[Any]) -> None:
    match random.randrange(3):
        case 0 if items:
            items.pop()
        case 1 if items:
            items.append(copy.deepcopy(items[0]))
        case _:
            items.append(copy.deepcopy(random.choice(VALUES)))


def _near(random: Random, value: Any) -> Any:
    """A value of the same kind, or nearly."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice([value + 1, value - 1, float(value), -value, str(value)])
    if isinstance(value, str):
        return random.choice(_texts_near(value, random.randrange(len(value) or 1)))
    return copy.deepcopy(random.choice(VALUES))


def _texts_near(text: str, at: int) -> list[str]:
    swapped = text[:at] + text[:1] + text[at + 1 :]
    return [
        swapped,
        text[:at] + text[at + 1 :],
        text[:at] + "-" + text[at:],
        text + text[-1:],
        text.upper(),
        text + "\n",
    ]


def _containers(value: Any) -> Iterator[Any]:
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            yield child
            yield from _containers(child)
