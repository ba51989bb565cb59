"""`lab serve`: one double, the reference Local Agent or the fault proxies, as a program of its own, until Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from lab.commands.serve_partner import partner, store
from lab.commands.serving import JOURNAL, PORT, serve_until_stopped, show_environment
from lab.context import RunContext
from lab.draws import Draws
from lab.errors import EnvironmentFault, ExitStatus, LabError, UsageError
from lab.run.ending import Part

AGENT_NAME = "local_agent"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def serve() -> None:
    """One double, the reference Local Agent or the fault proxies, as a program of its own.

    What it prints at its start holds credentials on purpose: the other side needs them.
    """


@serve.command()
@PORT
@click.option("--tenant-mode", type=click.Choice(["client", "hybrid", "hosted"]), default="client", show_default=True)
@click.option(
    "--revision", type=click.Choice(["2.0", "2.1", "2.2", "2.3"]), help="[default: the newest of the contract in use]"
)
@click.option("--control-port", type=click.IntRange(0, 65535), default=0, help="Port of the control API on 127.0.0.1.")
@JOURNAL
def gateway(port: int, tenant_mode: str, revision: str | None, control_port: int, journal: Path | None) -> ExitStatus:
    """The gateway double for one Local Agent, whose environment is printed, with an HTTP API to give it jobs."""

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.contract.chosen import contract_in_use
        from lab.gateway.control import ControlApi
        from lab.run.identity import draw_identity
        from lab.run.world import make_gateway
        from lab.scenario.model import GatewaySpec
        from lab.sut.profile import LAB_ENVIRONMENT

        identity = draw_identity(ctx, (AGENT_NAME,), (), ("gateway",))
        contract = contract_in_use()
        spec = GatewaySpec("gateway", tenant_mode=tenant_mode, revision=revision or contract.revision)
        server = make_gateway(ctx, spec, (AGENT_NAME,), identity, contract.folder, port)
        await server.start()
        host, bound = server.address
        signer, agent = identity.signers["gateway"], identity.agents[AGENT_NAME]
        control_token = ctx.secret_draws("control", "token").token()
        names = {agent.agent_id: AGENT_NAME}
        control = ControlApi(server, names, control_token, ctx.draws("control", "jobId").uuid, port=control_port)
        try:
            await control.start()
        except EnvironmentFault:
            await server.close()
            raise
        click.echo(f"gateway double at ws://{host}:{bound}/agent; a Local Agent needs")
        show_environment(
            {
                "LAB_GATEWAY_WS_URL": f"ws://{host}:{bound}/agent",
                "LAB_GATEWAY_TOKEN": agent.gateway_token,
                "LAB_TENANT_ID": identity.tenant_id,
                "LAB_AGENT_ID": agent.agent_id,
                "LAB_TRUSTED_KEYS": _key_text(signer.key_id, signer.public_key),
            },
            [name for name, _ in LAB_ENVIRONMENT],
        )
        click.echo("jobs are given over HTTP, for instance")
        click.echo(f"export LAB_CONTROL_TOKEN={control_token}")
        click.echo(
            f'curl -H "Authorization: Bearer $LAB_CONTROL_TOKEN" {control.url}/jobs '
            """-d '{"kind": "chat", "inputs": ["Where is the tax rate set?"]}'"""
        )
        sys.stdout.flush()
        return [control, server]

    return serve_until_stopped(start, journal)


@serve.command()
@PORT
@click.option("--kinds", default="fix,implement,chat", show_default=True, help="Kinds of job, separated by commas.")
@click.option("--script", "scripts", multiple=True, metavar="KIND=FILE", help="Script of a kind; repeatable.")
@JOURNAL
def agent2(port: int, kinds: str, scripts: tuple[str, ...], journal: Path | None) -> ExitStatus:
    """The agent2 double, whose URL and token are printed."""
    from lab.agent2.script import load_script

    served = _kinds(kinds)
    loaded = {kind: load_script(path) for kind, path in _script_files(scripts, served).items()}

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.agent2.engine import Engine
        from lab.agent2.server import Agent2Server

        canaries = {
            name: ctx.secret_draws("canary", name).token() for script in loaded.values() for name in script.canaries
        }
        token = ctx.secret_draws("agent2", "token").token()
        tenant_id = os.environ.get("LAB_TENANT_ID", ctx.draws("run", "tenantId").uuid())
        engine = Engine(served, loaded, tenant_id, canaries)
        server = Agent2Server(ctx, "agent2", engine, token, port=port)
        await server.start()
        click.echo(f"agent2 double at {server.url}/local/v1; a Local Agent needs")
        show_environment({"LAB_AGENT2_URL": server.url, "LAB_AGENT2_TOKEN": token}, [])
        return [server]

    return serve_until_stopped(start, journal)


@serve.command("local-agent")
@click.option(
    "--contract",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Its contract folder.  [default: the contract in use]",
)
@JOURNAL
def local_agent(folder: Path | None, journal: Path | None) -> ExitStatus:
    """The reference Local Agent, told by LAB_… variables what `lab serve gateway` and `agent2` print."""
    from lab.localagent.config import from_environment

    config, warnings = from_environment(os.environ)
    for warning in warnings:
        click.echo(f"lab: {warning}", err=True)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.contract.chosen import contract_folder
        from lab.localagent.agent import LocalAgent
        from lab.protocol.contract import Contract

        agent = LocalAgent(ctx, AGENT_NAME, config, Contract.load(folder or contract_folder()))
        await agent.start()
        return [agent]

    return serve_until_stopped(start, journal, on_asyncio=True)


@serve.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8474, show_default=True, help="0 takes a free one.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Toxiproxy's JSON: a list of proxies, each with its toxics.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of all that toxics draw; by default a fresh one.")
@click.option("--metrics", is_flag=True, help="Serve /metrics for Prometheus.")
def faults(host: str, port: int, config: Path | None, seed: int | None, metrics: bool) -> ExitStatus:
    """Fault proxies under Toxiproxy's HTTP API, for every client of it."""
    from lab.faults.api.config import configure, load_config

    proxies = [] if config is None else load_config(config)

    async def start(ctx: RunContext) -> Sequence[Part]:
        from lab.faults.address import is_loopback
        from lab.faults.api.routes import VERSION
        from lab.faults.api.server import ApiServer
        from lab.faults.engine import Engine

        chosen = ctx.seed if seed is None else seed
        engine = Engine(asyncio.get_running_loop(), partial(Draws, chosen), loopback_only=is_loopback(host))
        server = ApiServer(engine, host, port, metrics=metrics)
        try:
            if config is not None:
                await configure(engine, config, proxies)
            await server.start()
        except LabError:
            await engine.close()
            raise
        if not is_loopback(host):
            click.echo(f"lab: whoever reaches {host} rules these proxies: there is no password.", err=True)
        for proxy in engine.proxies.values():
            toxics = ", ".join(toxic.name for toxic in proxy.toxics) or "none"
            click.echo(f"proxy {proxy.name}: {proxy.listen} -> {proxy.upstream}, toxics: {toxics}")
        click.echo(f"fault API, as Toxiproxy {VERSION} has it, at {server.url} with seed {chosen}")
        sys.stdout.flush()
        return [server, engine]

    return serve_until_stopped(start, None, on_asyncio=True)


def _kinds(text: str) -> tuple[str, ...]:
    from lab.agent2.engine import SERVED_KINDS

    kinds = tuple(dict.fromkeys(kind.strip() for kind in text.split(",")))
    for kind in kinds:
        if kind not in SERVED_KINDS:
            raise UsageError(f"--kinds: seen `{kind}`, due are some of {', '.join(SERVED_KINDS)}, separated by commas.")
    return kinds


def _script_files(scripts: tuple[str, ...], kinds: tuple[str, ...]) -> dict[str, Path]:
    files = {}
    for text in scripts:
        kind, equals, path = text.partition("=")
        if not equals:
            raise UsageError(f"--script {text}: due is KIND=FILE, such as chat=fixtures/agent2/short-answer.yaml")
        if kind not in kinds:
            raise UsageError(f"--script {text}: `{kind}` is none of --kinds: {', '.join(kinds)}.")
        files[kind] = Path(path)
    return files


def _key_text(key_id: str, raw: bytes) -> str:
    import base64

    return f"{key_id}={base64.b64encode(raw).decode()}"


serve.add_command(store)
serve.add_command(partner)
