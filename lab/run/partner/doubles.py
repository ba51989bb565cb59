"""The store and the issuer of an identity, not started yet: of a run, and of `lab serve store`."""

from __future__ import annotations

from lab.context import RunContext
from lab.grants.issuer import IssuerCore
from lab.grants.seal import NONCE_BYTES, Seal
from lab.run.partner.identity import ENVIRONMENT, PartnerIdentity
from lab.scenario.partner_model import IssuerSpec, StoreSpec
from lab.scenario.partner_names import ISSUER, STORE
from lab.store.catalogue import make_catalogue
from lab.store.core import StoreCore
from lab.store.settings import Form, Refusing, StoreSettings
from lab.store.tools import ToolSet, store_tools

CATALOGUE_SEED = 9001
"""One catalogue for all runs, so that a scenario may name its products."""


def store_tool_set() -> ToolSet:
    """What every store of the lab can do."""
    return ToolSet(store_tools(make_catalogue(CATALOGUE_SEED)))


def make_issuer(ctx: RunContext, identity: PartnerIdentity, seal: Seal, ttl: float = IssuerSpec.ttl) -> IssuerCore:
    """The issuer; its grants live `ttl` seconds by the wall clock of `ctx`."""
    nonces = ctx.secret_draws(ISSUER, "nonce")
    return IssuerCore(
        seal,
        identity.issuer_key,
        identity.register_key,
        identity.control_key,
        identity.organization_id,
        ENVIRONMENT,
        ids=ctx.draws(ISSUER, "grantId").uuid,
        nonce=lambda: nonces.bytes(NONCE_BYTES),
        now_ms=ctx.wall_ms,
        ttl_s=max(1, round(ttl)),
    )


def make_store(
    ctx: RunContext,
    identity: PartnerIdentity,
    seal: Seal,
    issuer: IssuerCore,
    answers: str = StoreSpec.answers,
    refusal: str = StoreSpec.refusal,
) -> StoreCore:
    """The store that opens the grants of `issuer`; `answers` and `refusal` are words of a scenario."""
    settings = StoreSettings(
        organization_id=identity.organization_id,
        environment=ENVIRONMENT,
        answers=Form(answers),
        refusing=Refusing(refusal),
        own_streams=True,
    )
    return StoreCore(
        settings,
        store_tool_set(),
        static_credential=identity.static_credential,
        seal=seal,
        is_revoked=issuer.is_revoked,
        session_ids=ctx.secret_draws(STORE, "session").token,
    )
