import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import Agent2Error
from lab.localagent.sse import SseEvent, SseParser


def read(raw: bytes, *cuts: int) -> list[tuple[str, str | None]]:
    """The events of a stream that arrives cut at `cuts` and ends cleanly."""
    parser, events, start = SseParser(), list[SseEvent](), 0
    for cut in (*cuts, len(raw)):
        events += parser.feed(raw[start:cut])
        start = cut
    return [(event.name, event.data) for event in events + parser.end()]


TABLE = [
    pytest.param(b"data: x\n\n", [("message", "x")], id="data", marks=pytest.mark.req("A2-025")),
    pytest.param(b"event: frame\ndata:x\n\n", [("frame", "x")], id="name", marks=pytest.mark.req("A2-025")),
    pytest.param(b"event:  a b \ndata:  x\n\n", [("a b", " x")], id="blanks", marks=pytest.mark.req("A2-025")),
    pytest.param(b"data: a\ndata: b\n\n", [("message", "a\nb")], id="joined", marks=pytest.mark.req("A2-025")),
    pytest.param(
        b"event: f\ndata: a\n\ndata: b\n\n", [("f", "a"), ("message", "b")], id="reset", marks=pytest.mark.req("A2-025")
    ),
    pytest.param(b"data: x\r\n\r\n", [("message", "x")], id="crlf", marks=pytest.mark.req("A2-024")),
    pytest.param(b"data: x\ry\n\n", [("message", "x\ry")], id="lone cr", marks=pytest.mark.req("A2-024")),
    pytest.param(b": hi\nid: 1\nretry: 5\n\n", [], id="comments", marks=pytest.mark.req("A2-026", "A2-028")),
    pytest.param(b"data\n data: x\nfoo: y\n\n", [], id="other lines", marks=pytest.mark.req("A2-027")),
    pytest.param(b"event: x\n\n", [("x", None)], id="name alone", marks=pytest.mark.req("A2-028")),
    pytest.param(b"data:\n\n", [("message", "")], id="empty data", marks=pytest.mark.req("A2-028")),
    pytest.param(b"\n\n\n", [], id="blank lines", marks=pytest.mark.req("A2-028")),
    pytest.param(b"data: x\n", [("message", "x")], id="pending", marks=pytest.mark.req("A2-031")),
    pytest.param(b"data: x\n  ", [("message", "x")], id="blank rest", marks=pytest.mark.req("A2-031")),
    pytest.param(b"data: x", [], id="no line end", marks=pytest.mark.req("A2-031")),
    pytest.param(b"data: x\ndata: y", [], id="torn", marks=pytest.mark.req("A2-031")),
    pytest.param(b"\xef\xbb\xbfdata: x\n\n", [("message", "x")], id="bom", marks=pytest.mark.req("A2-062")),
    pytest.param(b"data: x\n\xf0\x9f\x98", [("message", "x")], id="torn tail", marks=pytest.mark.req("A2-062")),
    pytest.param("data: 😀\n\n".encode(), [("message", "😀")], id="emoji", marks=pytest.mark.req("A2-035")),
]


@pytest.mark.parametrize(("raw", "events"), TABLE)
def test_table(raw: bytes, events: list[tuple[str, str | None]]) -> None:
    assert read(raw) == events
    assert read(raw, *range(1, len(raw))) == events


@pytest.mark.req("A2-024", "A2-035")
@given(st.data())
def test_cuts_change_nothing(data: st.DataObject) -> None:
    pieces = st.sampled_from(["data: x", "event: é", "😀", "data:", "\n", "\n", "\r\n", "\r", ":c", " "])
    raw = "".join(data.draw(st.lists(pieces, max_size=30))).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    assert read(raw, *cuts) == read(raw)


@pytest.mark.req("A2-029")
def test_an_endless_line_is_a_bad_response() -> None:
    parser = SseParser(max_line=100)
    assert parser.feed(b"x" * 200) == []
    with pytest.raises(Agent2Error, match="bad_response"):
        parser.feed(b"x")


@pytest.mark.req("A2-030")
def test_a_burst_of_short_lines_is_none() -> None:
    assert len(SseParser(max_line=10).feed(b"data: x\n\n" * 1000)) == 1000


def test_an_endless_event_is_a_bad_response() -> None:
    parser = SseParser(max_event=1000)
    with pytest.raises(Agent2Error, match="bad_response"):
        parser.feed(b"data: 0123456789\n" * 100)
