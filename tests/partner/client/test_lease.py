import asyncio

import pytest

from lab.partner.client.lease import SHORTEST_S, half_of
from lab.partner.client.settings import DriverSettings
from tests.partner.client.scripted_api import LOST, Bench, Reply, Request, bad, bench, good, virtually
from tests.partner.samples import MEMBERSHIP

PUT = "PUT /memberships"


def stored(request: Request) -> Reply:
    """What a right API tells: the confirmation as it was sent."""
    sent = request.json
    return good({**MEMBERSHIP, **{name: sent[name] for name in ("sourceRevision", "role", "active", "validUntil")}})


def times(bed: Bench) -> list[float]:
    return [round(entry.t, 2) for entry in bed.ctx.journal.entries if entry.event.kind == "partner.call"]


@pytest.mark.req("MB-036", "MB-022")
def test_a_lease_is_renewed_at_its_half_with_a_higher_revision() -> None:
    async def main() -> tuple[list[float], list[int]]:
        async with bench(DriverSettings()) as bed:
            bed.api.on(PUT, stored)
            await bed.driver.membership("anna", role="owner")
            await asyncio.sleep(7 * 60)
            sent = [request.json for request in bed.api.of(PUT)]
            assert {one["role"] for one in sent} == {"owner"}
            assert sent[0]["validUntil"] == "2026-01-01T00:04:00.000Z"
            return times(bed), [one["sourceRevision"] for one in sent]

    assert virtually(main) == ([0.0, 120.0, 240.0, 360.0], [1, 2, 3, 4])


@pytest.mark.req("MB-022")
def test_the_lease_that_was_told_counts() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings()) as bed:
            bed.api.on(PUT, good({**MEMBERSHIP, "validUntil": "2026-01-01T00:00:20.000Z"}), stored)
            await bed.driver.membership("anna")
            await asyncio.sleep(20)
            return times(bed)

    assert virtually(main) == [0.0, 10.0]


def test_a_renewal_without_an_answer_is_tried_again() -> None:
    async def main() -> int:
        async with bench(DriverSettings()) as bed:
            bed.api.on(PUT, stored, *[LOST] * 9, stored)
            await bed.driver.membership("anna")
            await asyncio.sleep(200)
            return int(bed.api.of(PUT)[-1].json["sourceRevision"])

    assert virtually(main) == 3


@pytest.mark.parametrize("how", ["refused", "revoked", "unwanted", "setting", "closed"])
def test_when_nothing_is_renewed(how: str) -> None:
    async def main() -> int:
        async with bench(DriverSettings(renews_leases=how != "setting")) as bed:
            bed.api.on(PUT, stored, bad(409, "CHAT_CONFLICT") if how == "refused" else stored)
            await bed.driver.membership("anna", renew=False if how == "unwanted" else None)
            if how == "revoked":
                await bed.driver.membership("anna", active=False)
            elif how == "closed":
                await bed.driver.close()
            await asyncio.sleep(1000)
            return len(bed.api.of(PUT))

    assert virtually(main) == (2 if how in ("refused", "revoked") else 1)


@pytest.mark.req("MB-036")
def test_a_step_takes_the_place_of_the_renewal_that_was_due() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings()) as bed:
            bed.api.on(PUT, stored)
            await bed.driver.membership("anna")
            await asyncio.sleep(100)
            await bed.driver.membership("anna", role="admin")
            await asyncio.sleep(130)
            return times(bed)

    assert virtually(main) == [0.0, 100.0, 220.0]


def test_a_refused_step_leaves_the_lease_in_care() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings()) as bed:
            bed.api.on(PUT, stored, bad(400, "CHAT_INVALID"), stored)
            await bed.driver.membership("anna")
            await bed.driver.membership("anna", lease_s=900)
            await asyncio.sleep(130)
            assert "byOrder" in bed.calls[1].facts
            return times(bed)

    assert virtually(main) == [0.0, 0.0, 120.0]


def test_a_lease_in_the_past_is_not_renewed_in_a_rush() -> None:
    assert half_of(-5000) == SHORTEST_S
    assert half_of(240_000) == 120.0
