"""Every law of the partner leg."""

from __future__ import annotations

from lab.laws.law import Law
from lab.laws.partner import (
    answers,
    authority,
    contexts,
    doubles,
    driver_calls,
    driver_runs,
    endings,
    events,
    figures,
    history,
    memberships,
    receipts,
    tools,
)

PARTNER_LAWS: tuple[Law, ...] = (
    *receipts.LAWS,
    *events.LAWS,
    *endings.LAWS,
    *figures.LAWS,
    *history.LAWS,
    *answers.LAWS,
    *memberships.LAWS,
    *authority.LAWS,
    *contexts.LAWS,
    *tools.LAWS,
    *driver_calls.LAWS,
    *driver_runs.LAWS,
    *doubles.LAWS,
)
