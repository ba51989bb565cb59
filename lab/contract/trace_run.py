"""`lab contract trace`: which traces are played against which live peer, and the table of their grades."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.clock import Clock
from lab.context import RunContext
from lab.contract.trace_filling import LiveIdentity
from lab.contract.trace_grades import CaseResult, Grade
from lab.contract.trace_line import Gateway
from lab.contract.trace_live import LivePeer, play_live
from lab.contract.trace_peers import AgentDoor, door_for_agent, reference_agent, reference_gateway
from lab.contract.traces import Side, Trace, load_traces
from lab.contract.vectors import revision_order
from lab.errors import ContractError, EnvironmentFault, UsageError
from lab.journal.writer import Journal
from lab.protocol.contract import contract_of

ALL = "all"

_COLUMNS = ("trace", "peer", "grade", "seen", "close")
_PEERS = {Side.LA: "agent", Side.CP: "gateway"}

Tell = Callable[[CaseResult], None]


@dataclass(frozen=True)
class Against:
    """A gateway of somebody's: its address, and the Local Agent that the lab is there."""

    url: str
    token: str = field(repr=False)
    tenant: str
    agent: str
    workspace: str | None = None


def chosen_traces(folder: Path, revision: str, name: str) -> tuple[Trace, ...]:
    """The traces to play by the command's NAME, or all that count for the revision.

    Raises ContractError for a file that cannot be read, UsageError for a name that is none.
    """
    found = load_traces(folder)
    if found.faults:
        raise ContractError("\n".join(found.faults))
    counted = tuple(one for one in found.traces if revision_order(one.revision) <= revision_order(revision))
    if name == ALL:
        return counted
    named = tuple(one for one in counted if one.name == name)
    if not named:
        names = "".join(f"\n  {one.name}" for one in counted)
        raise UsageError(f"{name} is no trace of revision {revision}. Say {ALL}, or one of:{names}")
    return named


def for_peer(traces: Sequence[Trace], side: Side) -> tuple[Trace, ...]:
    """The traces that a peer of one side can be judged by: those that go well, and those that it has to refuse.

    Where that leaves none, all of them, so that the table says why.
    """
    left = tuple(one for one in traces if one.expect.error is None or one.expect.by is side)
    return left or tuple(traces)


def new_context() -> RunContext:
    """A context on the real clock; its ids and tokens are nobody's to guess."""
    clock = Clock(asyncio.get_running_loop().time, time.time_ns() // 1_000_000)
    return RunContext(
        secrets.randbits(63), clock, Journal(clock.now, None, keep=False), secret_seed=secrets.randbits(128)
    )


async def play_reference(
    traces: Sequence[Trace], sides: Sequence[Side], folder: Path, revision: str, patience: float, tell: Tell
) -> list[CaseResult]:
    """Play against the lab's own doubles over real sockets, `sides` being the peers' sides."""
    results: list[CaseResult] = []
    for side in sides:
        async with _reference(side, folder, revision, patience) as peer:
            results += await _play(for_peer(traces, side), peer, tell)
    return results


@asynccontextmanager
async def _reference(side: Side, folder: Path, revision: str, patience: float) -> AsyncIterator[LivePeer]:
    ctx = new_context()
    if side is Side.CP:
        async with reference_gateway(ctx, folder, revision, patience) as peer:
            yield peer
    else:
        with tempfile.TemporaryDirectory(prefix="lab-") as home:
            async with reference_agent(ctx, folder, revision, patience, Path(home)) as peer:
                yield peer
    if ctx.defects:
        raise EnvironmentFault(f"a defect of the lab: {type(ctx.defects[0]).__name__}")


async def play_gateway(
    traces: Sequence[Trace], against: Against, folder: Path, revision: str, patience: float, tell: Tell
) -> list[CaseResult]:
    """Play the Local Agent towards somebody's gateway."""
    ctx = new_context()
    peer = LivePeer(
        side=Side.CP,
        place=Gateway(against.url, against.token, patience),
        identity=LiveIdentity(against.tenant, against.agent, against.workspace),
        contract=contract_of(folder, revision),
        wall_ms=ctx.wall_ms,
        fresh=ctx.draws("traces", "ids").uuid,
        patience=patience,
    )
    return await _play(for_peer(traces, Side.CP), peer, tell)


async def play_agent(
    traces: Sequence[Trace],
    port: int,
    folder: Path,
    revision: str,
    patience: float,
    show: Callable[[AgentDoor], None],
    tell: Tell,
) -> list[CaseResult]:
    """Play the gateway for somebody's Local Agent; `show` tells the person what to start it with."""
    async with door_for_agent(new_context(), folder, revision, patience, port) as door:
        show(door)
        return await _play(for_peer(traces, Side.LA), door.peer, tell)


async def _play(traces: Sequence[Trace], peer: LivePeer, tell: Tell) -> list[CaseResult]:
    results = []
    for trace in traces:
        result = await play_live(trace, peer)
        tell(result)
        results.append(result)
    return results


def head() -> str:
    """The line above the table."""
    return _row(*_COLUMNS)


def row(result: CaseResult) -> str:
    """A case in a line."""
    close = result.close if result.close_as_due else f"{result.close} (!)"
    return _row(result.name, _PEERS[result.peer], result.grade.value, result.seen, close)


def _row(name: str, peer: str, grade: str, seen: str, close: str) -> str:
    return f"{name:<46}{peer:<9}{grade:<12}{seen:<54} {close}".rstrip()


def tally(results: Sequence[CaseResult]) -> str:
    """How many cases have each grade, and how many closed otherwise than is due."""
    counts = [(grade.value, sum(one.grade is grade for one in results)) for grade in Grade]
    odd = sum(not one.close_as_due for one in results)
    words = ", ".join(f"{count} {name}" for name, count in counts if count)
    return f"{words or 'nothing played'}{f'; {odd} closed otherwise than is due (!)' if odd else ''}"


def to_json(results: Sequence[CaseResult]) -> dict[str, Any]:
    """The table for machines."""
    return {
        "results": [
            {
                "trace": one.name,
                "peer": _PEERS[one.peer],
                "grade": one.grade.value,
                "due": one.due,
                "seen": one.seen,
                "close": {"words": one.close, "asDue": one.close_as_due},
            }
            for one in results
        ]
    }
