"""The billing events of a turn: queued while it runs, written before its end is published (US-024)."""

from __future__ import annotations

from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run
from lab.partner.model.state import State
from lab.partner.model.usage import TOKEN_KIND, BillingEvent, TokenCounts


class Ledger:
    """One turn's billing events that are not written yet."""

    def __init__(self) -> None:
        self._queued: list[BillingEvent] = []

    def queue(self, event: BillingEvent) -> None:
        """Have `event` written with the next `write`."""
        self._queued.append(event)

    def write(self, parts: Parts, run: Run) -> None:
        """Write what is queued, in order."""
        for event in self._queued:
            add_billing(parts, run.run_id, run.turn_id, event)
        self._queued.clear()


def add_billing(parts: Parts, run_id: str, turn_id: str, event: BillingEvent) -> None:
    """Put an event into the ledger; one that comes after the turn's end changes no usage (US-027, US-030)."""
    counts = TokenCounts() if event.counts is None else event.counts
    parts.state.run(
        "INSERT INTO billing (run_id, turn_id, kind, model, input_tokens, output_tokens, cache_read_tokens, "
        "cache_write_tokens, cost_usd_pico, streamed, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run_id,
        turn_id,
        event.kind,
        event.model,
        counts.input,
        counts.output,
        counts.cache_read or 0,
        # US-009: the ledger has both sorts of cache writes in one column
        (counts.cache_write or 0) + (counts.cache_write_1h or 0),
        event.pico,
        event.streamed,
        parts.now_ms(),
    )


def recorded(state: State, run_id: str) -> list[BillingEvent]:
    """The events that the ledger has of a turn, in order."""
    return [
        BillingEvent(
            row["kind"],
            row["cost_usd_pico"],
            row["model"],
            TokenCounts(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
            if row["kind"] == TOKEN_KIND
            else None,
            bool(row["streamed"]),
        )
        for row in state.rows("SELECT * FROM billing WHERE run_id = ? ORDER BY billing_id", run_id)
    ]
