"""`lab contract trace`: one side of a trace against a live peer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.contract.trace_grades import CaseResult
    from lab.contract.trace_peers import AgentDoor
    from lab.contract.trace_run import Against


@click.command("trace")
@click.argument("name", metavar="NAME|all")
@click.option(
    "--against", metavar="reference|agent|ws://HOST:PORT/PATH", help="The peer: the lab's own doubles, or yours."
)
@click.option("--listen", type=click.IntRange(0, 65535), help="Wait on this port of 127.0.0.1 for your Local Agent.")
@click.option(
    "--as", "as_role", type=click.Choice(["gateway", "agent"]), help="What the lab plays.  [default: what fits]"
)
@click.option("--revision", metavar="N.N", help="Of the contract.  [default: its newest]")
@click.option(
    "--patience",
    type=click.FloatRange(0.05, 600),
    default=5.0,
    show_default=True,
    help="Seconds that each wait for the peer's answer or message lasts; not the wait for an agent to connect.",
)
@click.option("--contract", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Its folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def trace_command(
    *,
    name: str,
    against: str | None,
    listen: int | None,
    as_role: str | None,
    revision: str | None,
    patience: float,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Play one side of a session against a live peer and grade what it does: pass, non-strict, fail or unknown.

    Towards a gateway the lab is the Local Agent that LAB_GATEWAY_TOKEN, LAB_TENANT_ID and LAB_AGENT_ID name. For an
    agent it is the gateway, and prints what the agent has to be started with, credentials included. How the peer closes
    is told apart and never changes a grade; (!) marks a close that is not as due. A frame that only the peer's user can
    bring about, such as a job.assign, is waited for as long as --patience says. Your agent may take 60 s for each
    connection, whatever --patience says: somebody may have to start it first.

    Exit status: 0 all pass or non-strict, 1 a fail, 2 wrong usage, 4 something stayed unknown.
    """
    from lab.commands.real_loop import run_real
    from lab.contract import trace_run
    from lab.contract.chosen import contract_folder
    from lab.contract.trace_grades import exit_status
    from lab.contract.traces import Side
    from lab.errors import ContractError
    from lab.protocol.contract import contract_of

    target = _target(against, listen, as_role)
    try:
        place = folder or contract_folder()
        revision = contract_of(place, revision).revision
        traces = trace_run.chosen_traces(place, revision, name)
    except ContractError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(ContractError.exit_status) from error

    def tell(result: CaseResult) -> None:
        if not as_json:
            click.echo(trace_run.row(result))

    if target == "agent":

        def show(door: AgentDoor) -> None:
            _show_door(door, as_json=as_json)

        play = trace_run.play_agent(traces, listen or 0, place, revision, patience, show, tell)
    elif target == "reference":
        sides = {"agent": (Side.CP,), "gateway": (Side.LA,), None: (Side.CP, Side.LA)}[as_role]
        play = trace_run.play_reference(traces, sides, place, revision, patience, tell)
    else:
        play = trace_run.play_gateway(traces, _gateway(target), place, revision, patience, tell)
    if not as_json:
        click.echo(trace_run.head())
    results = run_real(play, on_asyncio=True)
    click.echo(json.dumps(trace_run.to_json(results), indent=2) if as_json else trace_run.tally(results))
    raise SystemExit(exit_status(results))


def _target(against: str | None, listen: int | None, as_role: str | None) -> str:
    """reference, agent, or a gateway's URL. Raises `UsageError` for options that do not go together."""
    from lab.errors import UsageError

    target = against if against is not None else ("agent" if listen is not None else "reference")
    if listen is not None and target != "agent":
        raise UsageError("--listen waits for an agent: leave --against out, or say --against agent.")
    if target in ("reference", "agent"):
        fitting = "gateway" if target == "agent" else as_role
    elif target.lower().startswith(("ws://", "wss://")):
        _check_address(target)
        fitting = "agent"
    else:
        raise UsageError(f"--against {target!r}: due is reference, agent, or the ws:// address of a gateway.")
    if as_role not in (None, fitting):
        raise UsageError(f"--as {as_role}: towards {target} the lab can only be the {fitting}.")
    return target


def _check_address(url: str) -> None:
    """Raises `UsageError` for what no connection can be made to."""
    from lab.errors import UsageError

    wrong = _wrong_in(url)
    if wrong:
        # What stands before an @ may be a credential.
        shown = url if "@" not in url else f"{url.partition('://')[0]}://...@{url.rpartition('@')[2]}"
        raise UsageError(f"--against {shown!r}: {wrong}; due is a gateway's address such as ws://127.0.0.1:8080/agent.")


def _wrong_in(url: str) -> str | None:
    from urllib.parse import urlsplit

    if not url.isprintable() or " " in url:
        return "it has a blank or a control character"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "its host cannot be read"
    if not host:
        return "it names no host"
    try:
        host.encode("idna")
    except UnicodeError:
        return "its host is no name"
    try:
        no_port = parts.port == 0 or parts.netloc.endswith(":")
    except ValueError:
        no_port = True
    if no_port:
        return "its port is no number from 1 to 65535"
    if "#" in url:
        return "a # has no meaning in it"
    return "a credential belongs into LAB_GATEWAY_TOKEN" if "@" in parts.netloc else None


def _gateway(url: str) -> Against:
    from lab.contract.trace_run import Against
    from lab.errors import UsageError

    names = ("LAB_GATEWAY_TOKEN", "LAB_TENANT_ID", "LAB_AGENT_ID")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise UsageError(f"{', '.join(missing)} not set: due is the Local Agent that the gateway at {url} knows.")
    token, tenant, agent = (os.environ[name] for name in names)
    return Against(url, token, tenant, agent)


def _show_door(door: AgentDoor, *, as_json: bool) -> None:
    import base64
    import shlex
    import sys

    from lab.sut.profile import LAB_ENVIRONMENT

    values = {
        "LAB_GATEWAY_WS_URL": door.gateway_url,
        "LAB_GATEWAY_TOKEN": door.gateway_token,
        "LAB_AGENT2_URL": door.agent2_url,
        "LAB_AGENT2_TOKEN": door.agent2_token,
        "LAB_TENANT_ID": door.peer.identity.tenant,
        "LAB_AGENT_ID": door.peer.identity.agent,
        "LAB_TRUSTED_KEYS": f"{door.key_id}={base64.b64encode(door.public_key).decode()}",
        "LAB_SIGNATURE_MODE": "enforce",
        "LOCAL_AGENT_CHAT": "true",
    }
    left = ", ".join(name for name, _ in LAB_ENVIRONMENT if name not in values)
    for line in (
        *(f"export {name}={shlex.quote(value)}" for name, value in values.items()),
        f"# and {left} of its own",
    ):
        # The table's machine form stays one JSON object.
        click.echo(line, err=as_json)
    sys.stdout.flush()
