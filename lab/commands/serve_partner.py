"""`lab serve store` and `lab serve partner`: the doubles of the partner leg, each as a program of its own."""

from __future__ import annotations

import os
import shlex
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from lab.commands.serving import JOURNAL, PORT, serve_until_stopped, show_environment
from lab.context import RunContext
from lab.errors import ExitStatus, UsageError
from lab.run.ending import Part

NEEDED = ("LAB_ORGANIZATION_ID", "LAB_STORE_SERVER_ID", "LAB_STORE_URL", "LAB_STORE_CREDENTIAL")
"""What the partner API is told of the store, by what `lab serve store` prints."""


@click.command()
@PORT
@click.option("--issuer-port", type=click.IntRange(0, 65535), default=0, help="Port of the grant issuer.")
@click.option("--answers", type=click.Choice(["json", "sse"]), default="json", show_default=True)
@click.option(
    "--tls",
    "ca_file",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="Serve the store by HTTPS, and write what a client has to trust to this file.",
)
@JOURNAL
def store(port: int, issuer_port: int, answers: str, ca_file: Path | None, journal: Path | None) -> ExitStatus:
    """The store MCP double and the grant issuer, whose URLs and keys are printed. Grants are for tests only."""

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.grants.seal import Seal
        from lab.grants.server import IssuerServer
        from lab.run.partner.doubles import make_issuer, make_store
        from lab.run.partner.identity import draw_partner_identity
        from lab.store.server import StoreServer

        identity = draw_partner_identity(ctx, ())
        seal = Seal(identity.seal_key)
        core = make_issuer(ctx, identity, seal)
        issuer = IssuerServer(ctx, "issuer", core, port=issuer_port)
        tls = None if ca_file is None else _https(ctx, ca_file)
        server = StoreServer(ctx, "store", make_store(ctx, identity, seal, core, answers), port=port, tls=tls)
        await issuer.start()
        try:
            await server.start()
        except BaseException:
            await issuer.close()
            raise
        click.echo(f"store double at {server.url}, grant issuer (for tests only) at {issuer.base}/grants")
        show_environment(
            {
                "LAB_ORGANIZATION_ID": identity.organization_id,
                "LAB_STORE_SERVER_ID": identity.server_id,
                "LAB_STORE_URL": server.url,
                "LAB_STORE_CREDENTIAL": identity.static_credential,
                "LAB_GRANT_ISSUER_URL": f"{issuer.base}/grants",
                "LAB_GRANT_ISSUER_KEY": identity.issuer_key,
                "LAB_GRANT_REGISTER_URL": f"{issuer.base}/conversations",
                "LAB_GRANT_REGISTER_KEY": identity.register_key,
            }
        )
        if ca_file is not None:
            trust = shlex.quote(str(ca_file))
            click.echo(f"# for the process that calls it alone: NODE_EXTRA_CA_CERTS={trust} or SSL_CERT_FILE={trust}")
            sys.stdout.flush()
        return [server, issuer]

    return serve_until_stopped(start, journal)


@click.command()
@PORT
@click.option("--script", type=click.Path(path_type=Path), help="What its agent thinks: a script, or a folder of them.")
@click.option(
    "--state", type=click.Path(path_type=Path, dir_okay=False), help="Keep everything in this file over a restart."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the private output file of a fixture there (0600), for a driver; it ends after 30 minutes.",
)
@click.option("--origin", help="The origin that this file tells, when the API is reached through a proxy.")
@JOURNAL
def partner(
    port: int,
    script: Path | None,
    state: Path | None,
    output: Path | None,
    origin: str | None,
    journal: Path | None,
) -> ExitStatus:
    """The partner API model, told by LAB_… variables what `lab serve store` prints."""
    given = _given(os.environ)

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.partner.model.kept_state import keep_state

        agent_id, draws = os.environ.get("LAB_AGENT_ID"), ctx.draws("agent", "agentId")
        if state is None:
            return [await serve(ctx, agent_id or draws.uuid())]
        kept = keep_state(state, given["LAB_ORGANIZATION_ID"], agent_id, draws)
        try:
            return [await serve(ctx, kept.agent_id), kept]
        except BaseException:
            await kept.close()
            raise

    async def serve(ctx: RunContext, agent_id: str) -> Part:
        from lab.partner.model.server import PartnerServer
        from lab.partner.model.settings import (
            AgentSettings,
            FixtureSettings,
            McpCandidate,
            PartnerSettings,
            environment_from,
        )
        from lab.store.settings import CANONICAL_DESTINATION

        candidate = McpCandidate(given["LAB_STORE_SERVER_ID"], CANONICAL_DESTINATION)
        fixture = None
        if output is not None:
            fixture = FixtureSettings(
                output,
                CANONICAL_DESTINATION,
                os.environ.get("LAB_GRANT_ISSUER_URL"),
                os.environ.get("LAB_GRANT_ISSUER_KEY"),
                origin=origin,
                self_ending=True,
                register_url=os.environ.get("LAB_GRANT_REGISTER_URL"),
                register_key=os.environ.get("LAB_GRANT_REGISTER_KEY"),
            )
        settings = PartnerSettings(
            given["LAB_ORGANIZATION_ID"],
            ("shop",),
            (AgentSettings(agent_id, "shop", mcp=(candidate,), script=script),),
            environment=environment_from(os.environ),
            destinations={CANONICAL_DESTINATION: given["LAB_STORE_URL"]},
            static_credential=given["LAB_STORE_CREDENTIAL"],
            state_path=state,
            fixture=fixture,
        )
        server = PartnerServer(ctx, "partner_api", settings, port=port)
        await server.start()
        click.echo(f"partner API model at {server.url}/v1/orgs/{settings.organization_id}/chat")
        show_environment(
            {
                "LAB_PARTNER_API_ORIGIN": server.url,
                "LAB_PARTNER_CHAT_KEY": server.keys.chat,
                "LAB_PARTNER_PROVISIONING_KEY": server.keys.provisioning,
                "LAB_PARTNER_CONTROL_KEY": server.keys.control,
                "LAB_PARTNER_TEAM": "shop",
                "LAB_AGENT_ID": agent_id,
            }
        )
        sys.stdout.flush()
        return server

    return serve_until_stopped(start, journal)


def _https(ctx: RunContext, ca_file: Path) -> ssl.SSLContext:
    """A certificate of this start alone; what a client has to trust is written to `ca_file` (MCP-007)."""
    from lab.private_files import replace_private
    from lab.store.certificate import KEY_BYTES, SERIAL_BYTES, make_certificate

    draws = ctx.secret_draws("store", "certificate")
    made = make_certificate(draws.bytes(KEY_BYTES), draws.bytes(SERIAL_BYTES), ctx.wall_ms())
    replace_private(ca_file, made.pem)
    return made.server_context()


def _given(variables: Mapping[str, str]) -> Mapping[str, str]:
    missing = [name for name in NEEDED if not variables.get(name)]
    if missing:
        raise UsageError(f"{', '.join(missing)} missing: start `lab serve store` first, and give what it prints.")
    return {name: variables[name] for name in NEEDED}
