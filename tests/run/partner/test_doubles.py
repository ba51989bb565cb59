"""Store and issuer of one identity."""

from __future__ import annotations

import json

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.grants.issuer import Route
from lab.grants.seal import Seal
from lab.journal.writer import Journal
from lab.run.partner.doubles import CATALOGUE_SEED, make_issuer, make_store, store_tool_set
from lab.run.partner.identity import draw_partner_identity
from lab.store.catalogue import PROVEN_PRODUCT, make_catalogue


@pytest.mark.parametrize(("ttl", "due_ms"), [(300.0, 300_000), (1.4, 1000), (0.2, 1000)])
def test_grants_of_the_issuer_are_what_the_store_opens(ttl: float, due_ms: int) -> None:
    """They live as long as the scenario says, in whole seconds."""
    clock = Clock(lambda: 0.0, 1_000_000)
    ctx = RunContext(1, clock, Journal(clock.now))
    identity = draw_partner_identity(ctx, ())
    seal = Seal(identity.seal_key)
    issuer = make_issuer(ctx, identity, seal, ttl)
    make_store(ctx, identity, seal, issuer, "sse", "result")
    told = {"conversationId": "c", "actorId": "a", "teamId": "t", "agentId": "g", "destination": "https://x"}
    register = [f"Bearer {identity.register_key}"]
    assert issuer.answer_untrusted(Route.CONVERSATIONS, register, json.dumps(told).encode()).status == 200
    asked = json.dumps({"conversationId": "c", "agentId": "g", "destination": "https://x"}).encode()
    answer = issuer.answer_untrusted(Route.GRANTS, [f"Bearer {identity.issuer_key}"], asked)
    assert answer.status == 200
    binding = seal.open(str(answer.body["grant"]))
    assert binding is not None
    assert (binding.organization_id, binding.environment) == (identity.organization_id, "test")
    assert binding.expires_at_ms - binding.issued_at_ms == due_ms
    assert not issuer.is_revoked(binding.grant_id)


def test_the_catalogue_is_the_same_in_all_runs() -> None:
    """So that a scenario may name its products."""
    assert make_catalogue(CATALOGUE_SEED) == make_catalogue(CATALOGUE_SEED)
    tools = store_tool_set()
    tool = tools.find("catalog_get")
    assert tool is not None
    assert tool.takes({"productId": PROVEN_PRODUCT})
