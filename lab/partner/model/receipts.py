"""Idempotency receipts: hashes of key and input, so that a retry finds the first answer (CV-010, MSG-005, PRIV-023)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from lab.partner.model.refusals import conflict
from lab.partner.model.state import State


@dataclass(frozen=True, slots=True)
class ReceiptPlace:
    """What a key is unique within: CV-020 for creates, MSG-028 for messages, which name their conversation."""

    organization_id: str
    environment: str
    namespace: str
    operation: str
    conversation_id: str = ""

    def hash_of(self, key: str) -> str:
        """What the state keeps of a key used here."""
        parts = [
            self.organization_id,
            self.environment,
            self.namespace,
            self.operation,
            self.conversation_id,
            key,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the first use of a key led to. `answer` is None once that was removed."""

    conversation_id: str
    run_id: str | None
    answer: Mapping[str, object] | None


def input_hash(facts: Mapping[str, object]) -> str:
    """The identity of an input: sorted members, so the order in the body does not count (MSG-029)."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Receipts:
    """The receipts in the state. They outlive every key rotation and removal (CV-012, PA-027)."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, place: ReceiptPlace, key: str, given: str) -> Receipt | None:
        """The receipt of an earlier use with the same input; another input is 409 (CV-011, MSG-006)."""
        row = self._state.row("SELECT * FROM receipts WHERE key_hash = ?", place.hash_of(key))
        if row is None:
            return None
        if row["input_hash"] != given:
            raise conflict("another input under this key")
        answer = row["answer"]
        return Receipt(row["conversation_id"], row["run_id"], None if answer is None else json.loads(answer))

    def keep(self, place: ReceiptPlace, key: str, given: str, receipt: Receipt, now_ms: int) -> None:
        """Remember the first use; call it in the transaction that stores what it led to."""
        self._state.run(
            "INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?)",
            place.hash_of(key),
            place.operation,
            given,
            receipt.conversation_id,
            receipt.run_id,
            None if receipt.answer is None else json.dumps(receipt.answer),
            now_ms,
        )
