"""Reads the frame that a fault waits for, and checks that the party named in `from` can send it at all."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from lab.contract.chosen import contract_folder
from lab.errors import ContractError
from lab.faults.plan import FrameAnchor
from lab.protocol.contract import INDEX_FILE
from lab.scenario.findings import words
from lab.scenario.reading import Reading, reference, text, whole
from lab.scenario.yaml_places import MapNode

CONTENT_TYPES = ("content.request", "content.response")
CHUNKED_TYPES = ("content.response", "webhook.forward")
CONTROL_TYPES = ("ack", "error", "hello", "ready", "register")
"""Frames without a number of their own, which nobody acks (SQ-013)."""

FROM_GATEWAY = "cp-to-la"
FROM_LOCAL_AGENT = "la-to-cp"
FROM_BOTH = "both"


def contract_directions() -> Mapping[str, str]:
    """Each frame type of the contract in use with its direction: cp-to-la, la-to-cp or both."""
    return {name: direction for name, (direction, _) in _contract_types(Path.cwd()).items()}


def signed_types() -> tuple[str, ...]:
    """The frame types that bear a signature."""
    return tuple(name for name, (_, signed) in _contract_types(Path.cwd()).items() if signed)


@functools.cache
def _contract_types(_working_folder: Path) -> Mapping[str, tuple[str, bool]]:
    # The working folder decides which contract is in use.
    return types_in(contract_folder() / INDEX_FILE)


def types_in(index: Path) -> Mapping[str, tuple[str, bool]]:
    """Direction and whether it is signed, for each type of an index; one that cannot be read raises ContractError."""
    try:
        types = json.loads(index.read_text("utf-8"))["types"]
        return {name: (str(facts["direction"]), bool(facts["signed"])) for name, facts in types.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(f"{index.name}: the directions of the frame types cannot be read: {error!r}.") from None


def read_anchor(reading: Reading, node: MapNode, directions: Mapping[str, str] | None) -> FrameAnchor:
    """The anchor that the members of `node` describe. `directions` None takes those of the contract."""
    names = reading.names
    sender = reference(reading, node, "from", "gateway or local agent", names.gateways + names.local_agents)
    frame = text(node, "frame") or ""
    known = contract_directions() if directions is None else directions
    sends = FROM_GATEWAY if sender in names.gateways else FROM_LOCAL_AGENT
    answers = FROM_LOCAL_AGENT if sends == FROM_GATEWAY else FROM_GATEWAY
    sender_known = sender in names.gateways or sender in names.local_agents
    if _is_known_type(reading, node, "frame", known) and sender_known:
        _check_direction(reading, node, "frame", known, sends, f"`{frame}` is never sent by `{sender}`")
    _check_signed(reading, node, frame)
    _check_of(reading, node, known, answers if sender_known else None)
    _check_narrowing(reading, node, "content", frame, CONTENT_TYPES)
    _check_narrowing(reading, node, "chunk", frame, CHUNKED_TYPES)
    return FrameAnchor(
        frame,
        sender,
        # `every` stands for every frame from the first on.
        nth=whole(node, "nth") or 1,
        of=text(node, "of"),
        content=text(node, "content"),
        chunk=whole(node, "chunk"),
    )


def _check_signed(reading: Reading, node: MapNode, frame: str) -> None:
    """Only a frame that bears a signature can be tampered with (SG-016)."""
    signed = signed_types()
    if text(node, "do") == "tamper" and frame in contract_directions() and frame not in signed:
        message = f"`tamper` breaks a signature, and `{frame}` has none; signed are {words(signed)}."
        reading.findings.add(node.members["do"], message)


def _check_of(reading: Reading, node: MapNode, known: Mapping[str, str], answers: str | None) -> None:
    acked = text(node, "of")
    if acked is None:
        return
    _check_narrowing(reading, node, "of", text(node, "frame") or "", ("ack",))
    if acked in CONTROL_TYPES:
        reading.findings.add(node.members["of"], f"`{acked}` is a control frame; nobody acks it.")
    elif _is_known_type(reading, node, "of", known) and answers:
        message = f"`{acked}` is never acked by `{text(node, 'from')}`"
        _check_direction(reading, node, "of", known, answers, message)


def _is_known_type(reading: Reading, node: MapNode, member: str, known: Mapping[str, str]) -> bool:
    word = text(node, member)
    if word is None or word in known:
        return word is not None
    message = f"the protocol has no frame type `{word}`."
    reading.findings.add(node.members[member], message, word=word, among=known)
    return False


def _check_direction(
    reading: Reading, node: MapNode, member: str, known: Mapping[str, str], due: str, message: str
) -> None:
    direction = known[text(node, member) or ""]
    if direction not in (due, FROM_BOTH):
        way = "a local agent to its gateway" if direction == FROM_LOCAL_AGENT else "a gateway to its local agent"
        reading.findings.add(node.members[member], f"{message}; it goes from {way}.")


def _check_narrowing(reading: Reading, node: MapNode, member: str, frame: str, allowed: tuple[str, ...]) -> None:
    if member in node.members and frame not in allowed:
        listed = " and ".join(f"`{name}`" for name in allowed)
        reading.findings.add(node.members[member], f"`{member}` narrows {listed}, not `{frame}`.")
