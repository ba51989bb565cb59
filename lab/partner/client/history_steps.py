"""The steps that read a conversation's items."""

from __future__ import annotations

from typing import Any

from lab.partner.client.asking import Departure
from lab.partner.client.ground import Ground, odd_one
from lab.partner.client.history_walk import HistoryWalk, Page, page_untrusted
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.words import GET_HISTORY


class HistorySteps(Ground):
    """Pages, and walks through them."""

    async def page(
        self,
        conversation: str,
        *,
        who: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        number: int | None = None,
        departure: Departure | None = None,
    ) -> Outcome[Page]:
        """Read one page of a conversation's items; the cursor goes back as it came (HIS-005)."""
        record, member = self.with_member(conversation, who)
        query: dict[str, Any] = dict(member.actor)
        if limit is not None:
            query["limit"] = limit
        if cursor is not None:
            query["cursor"] = cursor
        # A cursor outside a walk is the scenario's own.
        odd = odd_one(departure, cursor is not None and number is None)
        marks = {} if number is None else {"page": number}
        ask = self.site.ask(GET_HISTORY, record.ids, query=query, departure=odd, marks=marks)
        return await self.calls.call(ask, page_untrusted)

    async def history(
        self, conversation: str, *, who: str | None = None, limit: int | None = None, most_pages: int | None = None
    ) -> Outcome[HistoryWalk]:
        """Walk through all pages (HIS-036)."""
        walk = HistoryWalk(self.settings.most_pages if most_pages is None else most_pages)
        cursor: str | None = None
        while not walk.end:
            outcome = await self.page(conversation, who=who, limit=limit, cursor=cursor, number=walk.pages + 1)
            if not isinstance(outcome, Done):
                return outcome
            cursor = walk.take(outcome.value)
        return Done(walk, 200)
