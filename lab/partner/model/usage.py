"""What a turn cost: its ledger of billing events, and the usage object that is stored at its end.

Money is whole pico-dollars (10^-12 US dollars), so that sums and their decimal text are exact (US-003, US-004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PICO_DIGITS = 12
TOKEN_KIND = "llm_tokens"  # noqa: S105  counted tokens, not a secret
"""The kind of an event that a model response causes."""
# US-006: what the provider costs, not what anybody is charged
PRICE_SIDE = "cost"


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """A provider's counters for one response. None where the provider does not have the counter.

    Five-minute and one-hour cache writes are disjoint (TM-051).
    """

    input: int = 0
    output: int = 0
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None

    def of_iteration(self) -> dict[str, int]:
        """The counters as they stand in an iteration: what the provider said, no more (TM-039)."""
        optional = {
            "cacheReadTokens": self.cache_read,
            "cacheWriteTokens": self.cache_write,
            "cacheWrite1hTokens": self.cache_write_1h,
        }
        told = {name: count for name, count in optional.items() if count is not None}
        return {"inputTokens": self.input, "outputTokens": self.output, **told}


@dataclass(frozen=True, slots=True)
class Price:
    """Pico-dollars for one token of each sort."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int

    def of(self, counts: TokenCounts) -> int:
        """What `counts` cost, in pico-dollars."""
        return (
            counts.input * self.input
            + counts.output * self.output
            + (counts.cache_read or 0) * self.cache_read
            + (counts.cache_write or 0) * self.cache_write
            + (counts.cache_write_1h or 0) * self.cache_write_1h
        )


# US-033: 9120 input and 410 output tokens cost 0.033510000000
SYNTHETIC_PRICE = Price(3_000_000, 15_000_000, 300_000, 3_750_000, 6_000_000)


@dataclass(slots=True)
class PriceTable:
    """The price of each model; a model without an entry of its own has the synthetic price, one with None has none."""

    own: dict[str, Price | None] = field(default_factory=dict)

    def price(self, model: str) -> Price | None:
        """The price of `model`'s tokens, None when it has none."""
        return self.own.get(model, SYNTHETIC_PRICE)


@dataclass(frozen=True, slots=True)
class BillingEvent:
    """One entry of the ledger. `pico` is None without a price; `counts` and `model` belong to token events alone.

    `streamed`: the response came as a stream (US-010).
    """

    kind: str
    pico: int | None
    model: str | None = None
    counts: TokenCounts | None = None
    streamed: bool = False


def token_event(model: str, counts: TokenCounts | None, prices: PriceTable, *, streamed: bool) -> BillingEvent:
    """The event of a response of `model`; one whose provider told no counters has no price (TM-040, US-023)."""
    price = prices.price(model)
    pico = None if counts is None or price is None else price.of(counts)
    return BillingEvent(TOKEN_KIND, pico, model, counts, streamed)


def cost_text(pico: int) -> str:
    """`pico` as dollars with twelve digits behind the point (US-003)."""
    whole, rest = divmod(pico, 10**PICO_DIGITS)
    return f"{whole}.{rest:0{PICO_DIGITS}d}"


def usage_of(events: Sequence[BillingEvent], *, certain: bool, flushed: bool) -> dict[str, object] | None:
    """The usage of a turn with this ledger; None is "not accounted for", never "free".

    `certain`: the turn ended, and not by an exception, a cancel or a crash (US-020); `flushed`: its ledger was written.
    """
    # US-017, US-018, US-019, US-020: never a part of a bill as if it were the whole (US-023)
    priced = [event.pico for event in events if event.pico is not None]
    if not certain or not flushed or not events or len(priced) < len(events):
        return None
    token_events = [event for event in events if event.counts is not None]
    by_model: dict[str, list[BillingEvent]] = {}
    for event in token_events:
        by_model.setdefault(event.model or "", []).append(event)
    by_kind: dict[str, int] = {}
    for event in events:
        by_kind[event.kind] = by_kind.get(event.kind, 0) + (event.pico or 0)
    usage: dict[str, object] = {
        "model": _model(token_events),
        **_counters(token_events),
        "costUsd": cost_text(sum(priced)),
        "priceSide": PRICE_SIDE,
        "kinds": [{"kind": kind, "costUsd": cost_text(pico)} for kind, pico in by_kind.items()],
    }
    if len(by_model) > 1:
        # US-011, US-034: only when there are several, in order of first use
        usage["models"] = [_of_model(model, of) for model, of in by_model.items()]
    return usage


def _model(token_events: Sequence[BillingEvent]) -> str | None:
    """US-010: the model that streamed last, else the token model used last."""
    streamed = [event.model for event in token_events if event.streamed]
    if streamed:
        return streamed[-1]
    return token_events[-1].model if token_events else None


def _of_model(model: str, events: Sequence[BillingEvent]) -> Mapping[str, object]:
    return {"model": model, **_counters(events), "costUsd": cost_text(sum(event.pico or 0 for event in events))}


def _counters(events: Sequence[BillingEvent]) -> dict[str, int]:
    counts = [event.counts for event in events if event.counts is not None]
    return {
        "inputTokens": sum(one.input for one in counts),
        "outputTokens": sum(one.output for one in counts),
        "cacheReadTokens": sum(one.cache_read or 0 for one in counts),
        # US-009: five-minute and one-hour writes together
        "cacheWriteTokens": sum((one.cache_write or 0) + (one.cache_write_1h or 0) for one in counts),
    }
