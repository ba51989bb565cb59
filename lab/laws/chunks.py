"""The law of chunks: an answer is one series of chunks that fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, Connection, FrameAt, Session
from lab.laws.view import JournalView

LAW = "chunks"

LARGEST_CHUNK = 32768
"""Decoded bytes of a chunk (WS-021)."""

MOST_CHUNKS = 64
"""Chunks of a whole answer (WS-021)."""

_OF_SUCCESS = ("contentType", "totalBytes")


@dataclass
class Series:
    """How far one answer has come."""

    session: Session
    first: FrameAt
    total: int
    size: int
    """Decoded bytes of a full chunk, as ready allowed when it began."""
    due: int = 0
    bytes: int = 0
    over: bool = False


@dataclass(frozen=True)
class Fault:
    """A chunk that does not fit: the wire code that its receiver owes, what was seen and what was due."""

    code: str
    seen: str
    due: str


def misfit(series: Series | None, chunk: Mapping[str, Any], decoded: object, declared: object) -> Fault | None:
    """The first rule that a chunk breaks, in the fixed order (CH-003, CH-004); `series` is what came before."""
    index, total, last = chunk["index"], chunk["total"], chunk["last"]
    due = series.due if series is not None else 0
    if series is not None and series.over:
        return Fault("chunk_out_of_order", f"chunk {index} after the last one", "nothing after the last chunk")
    if series is not None and total != series.total:
        return Fault("chunk_inconsistent", f"total {total}", f"total {series.total} as before")
    if total > MOST_CHUNKS:
        return Fault("chunk_inconsistent", f"total {total}", f"at most {MOST_CHUNKS}")
    if index != due:
        return Fault("chunk_out_of_order", f"chunk {index}", f"chunk {due}")
    if last != (index == total - 1):
        return Fault("chunk_inconsistent", f"last {last} at chunk {index} of {total}", f"last {not last}")
    if isinstance(decoded, int) and decoded > LARGEST_CHUNK:
        return Fault("chunk_inconsistent", f"a chunk of {decoded} bytes", f"at most {LARGEST_CHUNK}")
    if isinstance(decoded, int) and declared != decoded:
        return Fault("chunk_inconsistent", f"byteLength {_word(declared)}", f"byteLength {decoded}, as decoded")
    return None


def _chunks(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    series: dict[str, Series] = {}
    for session in view.sessions:
        known: set[tuple[int | None, str | None]] = set()
        for connection in session.connections:
            for seen in connection.data(LOCAL_AGENT):
                if seen.frame.type != "content.response":
                    continue
                if (seen.frame.seq, seen.frame.msg_id) not in known:
                    known.add((seen.frame.seq, seen.frame.msg_id))
                    _judge_chunk(tally, view, session, connection, seen, series)
    return tally.judgement()


def _judge_chunk(
    tally: Tally,
    view: JournalView,
    session: Session,
    connection: Connection,
    seen: FrameAt,
    all_series: dict[str, Series],
) -> None:
    who = view.agent_of(connection)
    frame = seen.frame
    request_id = frame.request_id or ""
    exchange = view.exchanges.get(request_id)
    if exchange is None or not exchange.asks or exchange.asks[0].n > seen.n:
        # WS-007: the requestId ties an answer to its request
        tally.broken(who, "content.response to a request that nobody made", "the requestId of a request", (seen.n,))
        return
    if frame.chunk is None:
        tally.broken(who, "content.response without chunk", "chunk {index, total, last}", (seen.n,))
        return
    series = all_series.get(request_id)
    if series is not None and series.session is not session:
        _judge_after_reset(tally, who, series, seen)
        return
    fault = misfit(series, frame.chunk, frame.facts.get("decoded"), frame.payload.get("byteLength"))
    fault = fault or _odd_members(frame.payload, frame.chunk)
    if series is None:
        series = all_series[request_id] = Series(session, seen, frame.chunk["total"], _size(connection))
    fault = fault or _odd_size(series, seen)
    series.due = frame.chunk["index"] + 1
    series.over = series.over or bool(frame.chunk["last"])
    if fault is not None:
        first = (series.first.n,) if series.first is not seen else ()
        tally.broken(who, fault.seen, fault.due, (*first, seen.n))
    else:
        tally.held()


def _judge_after_reset(tally: Tally, who: str, series: Series, seen: FrameAt) -> None:
    if seen.frame.chunk and seen.frame.chunk["index"] > 0:
        # RS-014: no series goes on across a reset
        what = f"chunk {seen.frame.chunk['index']} of an answer that a reset had ended"
        tally.broken(who, what, "no further chunk after resumed:false", (series.first.n, seen.n))
    else:
        tally.unsure()


def _size(connection: Connection) -> int:
    limits = connection.ready.frame.payload.get("limits") if connection.ready else None
    offered = limits.get("chunkRawBytes") if isinstance(limits, Mapping) else None
    # HS-027: what ready offers, and never more than the contract's maximum
    return min(offered, LARGEST_CHUNK) if isinstance(offered, int) and offered > 0 else LARGEST_CHUNK


def _odd_members(payload: Mapping[str, Any], chunk: Mapping[str, Any]) -> Fault | None:
    if "sha256" in payload:
        # CH-018: its scope is not defined
        return Fault("", "content.response with sha256", "no sha256")
    if payload.get("encoding") != "base64":
        return Fault("", f"encoding {_word(payload.get('encoding'))}", "encoding base64")
    if payload.get("status") == "ok":
        missing = [name for name in _OF_SUCCESS if name not in payload]
        # CH-007
        return Fault("", f"a chunk without {missing[0]}", " and ".join(_OF_SUCCESS)) if missing else None
    # CH-010: a failure is one empty chunk with a code
    extra = [name for name in _OF_SUCCESS if name in payload]
    if extra:
        return Fault("", f"a failed answer with {extra[0]}", "neither contentType nor totalBytes")
    if "errorCode" not in payload:
        return Fault("", "a failed answer without errorCode", "an errorCode")
    if (chunk["index"], chunk["total"], chunk["last"]) != (0, 1, True) or payload.get("byteLength") != 0:
        return Fault("", "a failed answer of more than one empty chunk", "chunk {0, 1, true} with byteLength 0")
    return None


def _odd_size(series: Series, seen: FrameAt) -> Fault | None:
    payload, chunk, decoded = seen.frame.payload, seen.frame.chunk, seen.frame.facts.get("decoded")
    whole = payload.get("totalBytes")
    if payload.get("status") != "ok" or chunk is None or not isinstance(decoded, int) or not isinstance(whole, int):
        return None
    series.bytes += decoded
    # CH-002: as many chunks as the size needs, all but the last one full
    due = max(1, -(-whole // series.size))
    if chunk["total"] != due:
        return Fault("", f"{chunk['total']} chunks for {whole} bytes", f"{due} chunks of {series.size} bytes")
    if not chunk["last"] and decoded != series.size:
        return Fault("", f"chunk {chunk['index']} with {decoded} bytes", f"{series.size} bytes in all but the last")
    if chunk["last"] and series.bytes != whole:
        # CH-007: totalBytes is the size of the whole
        return Fault("", f"{series.bytes} bytes in all", f"totalBytes {whole}")
    return None


def _word(value: object) -> str:
    return "absent" if value is None else str(value) if isinstance(value, int | str) else "of another form"


LAWS = (
    Law(
        LAW,
        "An answer is one series of chunks that fit together, or one empty chunk with a code",
        LOCAL_AGENT,
        (
            *("WS-007", "WS-021", "HS-027", "RS-014"),
            *("CH-001", "CH-002", "CH-003", "CH-004", "CH-006", "CH-007", "CH-010", "CH-013", "CH-018", "CH-025"),
        ),
        _chunks,
    ),
)
