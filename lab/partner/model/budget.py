"""The organization's budget: spent or not, as the lab control says (PA-019, PA-051, MSG-044)."""

from __future__ import annotations

from lab.partner.model.refusals import Refusal, quota_exceeded
from lab.partner.model.state import State

_SPENT = "budget_spent"


def budget_refusal(state: State) -> Refusal | None:
    """429 while the budget is spent, else None. Asked at a message and again before each model request."""
    return quota_exceeded("budget spent") if state.meta(_SPENT) == "1" else None


def set_spent(state: State, spent: bool) -> None:
    """Spend the budget, or raise it again."""
    state.set_meta(_SPENT, "1" if spent else "0")
