from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.client.sse_reader import CRLF, SEVERAL_DATA_LINES, SseReader, StreamTooLong, WireEvent

ONE = b'id: r:1\nevent: text\ndata: {"type":"text","text":"h\xc3\xa9"}\n\n'
TWO = b'id: r:2\nevent: done\ndata: {"type":"done","stopReason":"completed"}\n\n'


def read(*chunks: bytes) -> list[WireEvent]:
    reader = SseReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def plain(events: Sequence[WireEvent]) -> list[tuple[str | None, str, str | None]]:
    return [(event.id, event.name, event.data) for event in events]


@pytest.mark.req("SSE-002")
def test_an_event_is_its_four_lines() -> None:
    assert plain(read(ONE + TWO)) == [
        ("r:1", "text", '{"type":"text","text":"hé"}'),
        ("r:2", "done", '{"type":"done","stopReason":"completed"}'),
    ]
    assert [event.notes for event in read(ONE)] == [()]
    assert read(ONE)[0].raw == ONE.removesuffix(b"\n\n")


@pytest.mark.req("SSE-002", "SSE-049")
@pytest.mark.parametrize(
    ("raw", "data", "notes"),
    [
        (b"id: r:1\r\nevent: text\r\ndata: x\r\n\r\n", "x", (CRLF,)),
        (b"id: r:1\revent: text\rdata: x\r\r", "x", (CRLF,)),
        (b"id: r:1\nevent: text\ndata: x\ndata: y\n\n", "x\ny", (SEVERAL_DATA_LINES,)),
        (b"id: r:1\r\nevent: text\ndata: x\ndata: y\n\n", "x\ny", (CRLF, SEVERAL_DATA_LINES)),
        (b"id:r:1\nevent:text\ndata:x\n\n", "x", ()),
        (b"\xef\xbb\xbfid: r:1\nevent: text\ndata: x\n\n", "x", ()),
        (b"data: x\nevent: text\nid: r:1\n\n", "x", ()),
        (b"id: r:1\nevent: text\ndata\n\n", "", ()),
        (b"id: r:1\nevent: text\ndata:  x\n\n", " x", ()),
    ],
)
def test_legal_variants_are_taken_and_noted(raw: bytes, data: str, notes: tuple[str, ...]) -> None:
    for events in (read(raw), read(*(raw[at : at + 1] for at in range(len(raw))))):
        assert plain(events) == [("r:1", "text", data)]
        assert events[0].notes == notes


@pytest.mark.req("SSE-039")
def test_comments_retry_and_unknown_fields_mean_nothing() -> None:
    noise = b": keep-alive\n\nretry: 10\n\nfoo: bar\n\nlonely\n\n\n\n"
    assert plain(read(noise + b": in it\nretry: 5\n" + ONE + noise)) == plain(read(ONE))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"id: r:1\n\n", ("r:1", "", None)),
        (b"event: text\n\n", (None, "text", None)),
        (b"data: x\n\n", (None, "", "x")),
    ],
)
def test_an_event_without_some_of_its_lines_is_still_told(
    raw: bytes, expected: tuple[str | None, str, str | None]
) -> None:
    assert plain(read(raw)) == [expected]


@pytest.mark.req("SSE-048")
@pytest.mark.parametrize("cut", range(len(TWO)))
def test_an_event_cut_before_its_empty_line_is_no_event(cut: int) -> None:
    reader = SseReader()
    assert len(reader.feed(ONE)) == 1
    assert reader.feed(TWO[:cut]) == []
    assert reader.pending == TWO[:cut]


def test_what_is_no_utf8_is_replaced() -> None:
    assert plain(read(b"id: r:1\nevent: text\ndata: \xff\n\n")) == [("r:1", "text", "\ufffd")]


LINES = st.lists(
    st.one_of(
        st.sampled_from([b"id: r:1", b"event: text", b"data: x", b": note", b"", b"data: \xc3\xa9", b"\xef\xbb\xbf"]),
        st.binary(max_size=6).map(lambda raw: raw.replace(b"\n", b"").replace(b"\r", b"")),
    ),
    max_size=12,
)


@pytest.mark.req("SSE-049")
@given(LINES, st.data())
def test_any_chunking_gives_the_same_events(lines: list[bytes], data: st.DataObject) -> None:
    ends = [data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])) for _ in lines]
    raw = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert read(*chunks) == read(raw) == read(*(raw[at : at + 1] for at in range(len(raw))))


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 20, b": xxxxxxxxxxx\n" * 20])
def test_an_event_has_a_bound(raw: bytes) -> None:
    with pytest.raises(StreamTooLong):
        SseReader(most=100).feed(raw)
    assert len(SseReader(most=100).feed((b"data: " + b"x" * 80 + b"\n\n") * 5)) == 5
