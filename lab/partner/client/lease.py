"""Keeping leases alive: a newer confirmation once half of one is gone (MB-036)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.partner.client.outcomes import Done, Outcome, TransportError
from lab.partner.client.shapes import Membership

AGAIN_S = 1.0
"""Wait before a renewal that got no answer is tried again."""

SHORTEST_S = 0.05
"""The least time between two renewals, whatever a lease that was told says."""

Renew = Callable[[], Awaitable[Outcome[Membership]]]


class LeaseKeeper:
    """Renews the leases of members, by label, until told to stop. `wall_ms` is the time in milliseconds since 1970."""

    def __init__(self, wall_ms: Callable[[], int], fail: Callable[[BaseException], None]) -> None:
        self._wall_ms = wall_ms
        self._fail = fail
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def keep(self, label: str, membership: Membership, renew: Renew) -> None:
        """Renew from now on; called again for a label, it begins anew with what is told now."""
        self.stop(label)
        loop = asyncio.get_running_loop()
        self._tasks[label] = loop.create_task(self._keep(membership, renew), name=f"lease of {label}")

    def stop(self, label: str) -> None:
        """Renew no more. Safe for a label that is not kept."""
        task = self._tasks.pop(label, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop all."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, membership: Membership, renew: Renew) -> None:
        try:
            while membership.active and membership.valid_until is not None:
                await asyncio.sleep(half_of(membership.valid_until.ms - self._wall_ms()))
                outcome = await renew()
                while isinstance(outcome, TransportError):
                    await asyncio.sleep(AGAIN_S)
                    outcome = await renew()
                if not isinstance(outcome, Done):
                    # A refusal is final: there is nothing left to renew.
                    return
                membership = outcome.value
        except asyncio.CancelledError:
            raise
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run as one
            self._fail(defect)


def half_of(left_ms: int) -> float:
    """Seconds to wait with `left_ms` of the lease left."""
    return max(SHORTEST_S, left_ms / 2000)
