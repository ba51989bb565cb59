"""Who is who in a run of the partner leg."""

from __future__ import annotations

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.run.partner.identity import PartnerIdentity, draw_partner_identity


def drawn(seed: int, secret: int) -> PartnerIdentity:
    clock = Clock(lambda: 0.0, 0)
    return draw_partner_identity(RunContext(seed, clock, Journal(clock.now), secret_seed=secret), ("store", "talk"))


@pytest.mark.req("GR-016")
def test_ids_are_of_the_seed_and_keys_of_the_secret_one() -> None:
    """So that a run is repeated by its seed, and nobody who knows this guesses a key."""
    one, other = drawn(1, 10), drawn(1, 11)
    assert (one.organization_id, one.server_id, one.agents) == (other.organization_id, other.server_id, other.agents)
    assert {*one.secrets().values()}.isdisjoint(other.secrets().values())
    assert one.seal_key != other.seal_key
    assert drawn(1, 10) == one
    assert drawn(2, 10).organization_id != one.organization_id


def test_all_keys_differ() -> None:
    secrets = drawn(1, 10).secrets()
    assert len({*secrets.values()}) == len(secrets)
    assert len({*drawn(1, 10).agents.values()}) == 2


@pytest.mark.req("SEC-012")
def test_it_shows_no_key() -> None:
    identity = drawn(1, 10)
    for secret in (*identity.secrets().values(), str(identity.seal_key), identity.seal_key.hex()):
        assert secret not in repr(identity)
