"""The rules of a content.response series, alone and on the wire."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.protocol.chunks import STREAMS_REMEMBERED, ChunkTracker, chunk_count, cut, decode_base64
from lab.protocol.events import Received, Repeated
from lab.protocol.frames import Chunk
from tests.protocol.sides import chunk_frame, outputs, ready_gateway, refusal, take, uuid

ORDER, ODD = "chunk_out_of_order", "chunk_inconsistent"


def tracker(received: int = 0, total: int = 3) -> ChunkTracker:
    """A tracker that has `received` chunks of the series `a`."""
    one = ChunkTracker(64, 32768)
    for index in range(received):
        one.advance("a", Chunk(index, total, index == total - 1))
    return one


# received of 3, index, total, last, decoded, stated: code
RULES = [
    (0, 0, 3, False, 1, 1, None),
    (0, 0, 1, True, 0, 0, None),
    (2, 2, 3, True, 1, 1, None),
    (0, 0, 64, False, 32768, 32768, None),
    (3, 3, 3, True, 1, 1, ORDER),
    (3, 0, 3, False, 1, 1, ORDER),
    (1, 1, 4, False, 1, 1, ODD),
    (1, 1, 2, True, 1, 1, ODD),
    (0, 0, 65, False, 1, 1, ODD),
    (0, 1, 3, False, 1, 1, ORDER),
    (1, 2, 3, True, 1, 1, ORDER),
    (1, 0, 3, False, 1, 1, ORDER),
    (1, 1, 3, True, 1, 1, ODD),
    (2, 2, 3, False, 1, 1, ODD),
    (0, 0, 1, False, 1, 1, ODD),
    (0, 0, 3, False, 32769, 32769, ODD),
    (0, 0, 3, False, 26, 27, ODD),
    (0, 0, 3, False, None, 1, ODD),
    # Two faults at once: the earlier rule speaks.
    (3, 3, 4, True, 1, 1, ORDER),
    (3, 3, 65, True, 40000, 1, ORDER),
    (1, 2, 4, True, 1, 1, ODD),
    (0, 1, 65, False, 1, 1, ODD),
    (0, 1, 3, True, 1, 1, ORDER),
    (0, 2, 3, False, 40000, 40000, ORDER),
    (1, 5, 3, False, 1, 9, ORDER),
]


@pytest.mark.req("CH-001", "CH-003", "CH-004", "CH-006", "CH-020", "CH-022", "CH-023", "CH-024")
@pytest.mark.parametrize(("received", "index", "total", "last", "decoded", "stated", "due"), RULES)
def test_rules_in_their_order(
    received: int, index: int, total: int, last: bool, decoded: int | None, stated: int, due: str | None
) -> None:
    assert tracker(received).refusal("a", Chunk(index, total, last), decoded, stated) == due


def test_asking_moves_nothing() -> None:
    one = tracker(1)
    for _ in range(2):
        assert one.refusal("a", Chunk(1, 3, False), 1, 1) is None


@pytest.mark.req("CH-005")
def test_least_recently_used_series_is_forgotten_first() -> None:
    one = ChunkTracker(64, 32768)
    for number in range(STREAMS_REMEMBERED):
        one.advance(str(number), Chunk(0, 3, False))
    one.advance("0", Chunk(1, 3, False))
    one.advance("more", Chunk(0, 3, False))
    start = Chunk(0, 3, False)
    assert STREAMS_REMEMBERED == 256
    assert one.refusal("1", start, 1, 1) is None
    assert one.refusal("0", start, 1, 1) == ORDER
    assert one.refusal("2", start, 1, 1) == ORDER


@pytest.mark.req("RS-014")
def test_no_series_outlives_a_reset() -> None:
    one = tracker(1)
    one.reset()
    assert one.refusal("a", Chunk(1, 3, False), 1, 1) == ORDER


@pytest.mark.req("CH-002", "WS-021")
@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (32768, 1), (32769, 2), (2097152, 64), (2097153, 65)])
def test_number_of_chunks(size: int, count: int) -> None:
    assert chunk_count(size, 32768) == count


@pytest.mark.req("CH-001", "CH-002", "CH-025")
@given(st.binary(max_size=400), st.integers(1, 90))
def test_what_is_cut_is_a_series_of_the_rules(body: bytes, width: int) -> None:
    one, parts = ChunkTracker(1000, width), []
    for index in range(chunk_count(len(body), width)):
        chunk, data = cut(body, index, width)
        assert one.refusal("a", chunk, len(data), len(data)) is None
        one.advance("a", chunk)
        parts.append(data)
    assert b"".join(parts) == body
    assert one.refusal("a", Chunk(len(parts), len(parts), True), 0, 0) == ORDER


@pytest.mark.req("CH-021")
@pytest.mark.parametrize("data", ["e30", "e30==", "e31=", "e3 0=", "e30=\n", "_-8=", "e30=e30=", "é", "=", "A"])
def test_only_canonical_base64(data: str) -> None:
    assert decode_base64(data) is None


@given(st.binary(max_size=200))
def test_canonical_base64_is_decoded(data: bytes) -> None:
    assert decode_base64(base64.b64encode(data).decode()) == data


# On the wire


@pytest.mark.req("WS-069", "WS-070", "CH-004", "CH-006", "CH-022", "CH-023", "CH-024")
@pytest.mark.parametrize(
    ("frames", "due"),
    [
        ([chunk_frame(1, 5, 1, 2)], (ORDER, 4410)),
        ([chunk_frame(1, 5, 0, 1), chunk_frame(2, 5, 1, 2)], (ORDER, 4410)),
        ([chunk_frame(1, 5, 0, 2), chunk_frame(2, 5, 1, 3)], (ODD, 4411)),
        ([chunk_frame(1, 5, 0, 2, last=True)], (ODD, 4411)),
        ([chunk_frame(1, 5, 0, 65)], (ODD, 4411)),
        ([chunk_frame(1, 5, 0, 1, byteLength=2)], (ODD, 4411)),
        ([chunk_frame(1, 5, 0, 1, b"x" * 32769)], (ODD, 4411)),
        ([chunk_frame(1, 5, 0, 1, b"x" * 32768)], None),
        ([chunk_frame(1, 5, 0, 2), chunk_frame(2, 6, 0, 1), chunk_frame(3, 5, 1, 2)], None),
        ([chunk_frame(1, 5, 0, 1, data="e31=")], ("schema_violation", 4402)),
    ],
)
def test_series_at_the_gateway(frames: list[str], due: tuple[str, int] | None) -> None:
    gateway = ready_gateway()
    for frame in frames[:-1]:
        assert refusal(gateway, frame) is None
    assert refusal(gateway, frames[-1]) == due


def test_chunk_brings_its_data() -> None:
    (event,) = take(ready_gateway(), chunk_frame(1, 5, 0, 1, b"\x00\xff"))
    assert isinstance(event, Received)
    assert event.data == b"\x00\xff"
    assert event.frame.request_id == uuid(5)


@pytest.mark.req("SQ-002")
def test_copy_of_a_chunk_is_a_duplicate_and_no_fault_of_its_series() -> None:
    gateway = ready_gateway()
    for seq in (1, 2):
        take(gateway, chunk_frame(seq, 5, seq - 1, 2))
    for seq in (1, 2):
        assert [type(event) for event in take(gateway, chunk_frame(seq, 5, seq - 1, 2))] == [Repeated]
    assert outputs(gateway)[1] is None


@pytest.mark.req("SQ-033")
def test_refused_chunk_moves_nothing() -> None:
    gateway = ready_gateway()
    take(gateway, chunk_frame(1, 5, 0, 2))
    refusal(gateway, chunk_frame(2, 5, 1, 2, byteLength=9))
    assert gateway.session.inbound.last_seq == 1
    assert gateway.session.chunks.refusal(uuid(5), Chunk(1, 2, True), 1, 1) is None
