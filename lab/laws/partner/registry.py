"""Every law of the partner leg."""

from __future__ import annotations

from lab.laws.law import Law
from lab.laws.partner import (
    admission,
    answers,
    authority,
    contexts,
    doubles,
    driver_calls,
    driver_requests,
    driver_runs,
    effects,
    endings,
    events,
    figures,
    history,
    memberships,
    orders,
    receipts,
    tools,
    uploads,
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
    *admission.LAWS,
    *uploads.LAWS,
    *orders.LAWS,
    *effects.LAWS,
    *driver_calls.LAWS,
    *driver_runs.LAWS,
    *driver_requests.LAWS,
    *doubles.LAWS,
)
