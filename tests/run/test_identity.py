"""Who is who in a run."""

from __future__ import annotations

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.run.identity import PROMPT_CANARY, Identity, draw_identity, keys_named_in


def identity(secret_seed: int = 5, agents: tuple[str, ...] = ("a", "b")) -> Identity:
    clock = Clock(lambda: 0.0, 0)
    ctx = RunContext(1, clock, Journal(clock.now), secret_seed)
    return draw_identity(ctx, agents, ("agent2",), ("gateway", "other"))


def test_ids_follow_the_seed_and_secrets_do_not() -> None:
    """Two runs with one seed cannot be told apart by ids, and share no credential."""
    one, two = identity(5), identity(6)
    assert one.tenant_id == two.tenant_id
    assert [agent.agent_id for agent in one.agents.values()] == [agent.agent_id for agent in two.agents.values()]
    assert not set(one.secrets()) & set(two.secrets())
    assert one.signers["gateway"].public_key != two.signers["gateway"].public_key


def test_everyone_has_its_own() -> None:
    """No two agents, doubles or keys share anything; another agent changes nothing for the others."""
    made = identity()
    assert len({agent.agent_id for agent in made.agents.values()}) == 2
    # Two tokens of agents, one of agent2, and the prompt's canary in two spellings.
    assert len(set(made.secrets())) == 5
    assert made.signers["gateway"].public_key != made.signers["other"].public_key
    assert made.signers["gateway"].key_id != made.signers["other"].key_id
    assert identity(agents=("a",)).agents["a"] == made.agents["a"]


def test_each_token_is_a_canary_too() -> None:
    """So that a place where it must not be is found."""
    made = identity()
    assert made.canaries["gateway-token.a"] == made.agents["a"].gateway_token
    assert made.canaries["agent2-token.agent2"] == made.agent2_tokens["agent2"]
    assert PROMPT_CANARY in made.canaries


def test_no_secret_is_in_a_repr() -> None:
    """Of the identity, and of one agent."""
    made = identity()
    shown = repr(made) + repr(made.agents["a"])
    assert [secret for secret in made.secrets() if secret in shown] == []


def test_a_key_in_an_input_is_filled_in_by_its_name() -> None:
    """One that nobody drew stays as it was written."""
    made = identity()
    made.canaries["my_key"] = "value"
    text = "password={canary:my_key} or {canary:other}"
    assert keys_named_in([text, "none"]) == ["my_key", "other"]
    assert made.filled(text) == "password=value or {canary:other}"
