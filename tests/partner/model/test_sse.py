from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.sse import LARGEST_SEQUENCE, compact, continue_after, encode

RUN = "0b8f1c8e-0000-4000-8000-000000000001"


@pytest.mark.req("SSE-002", "SSE-003")
def test_an_event_has_these_bytes() -> None:
    assert encode(RUN, 7, "text", compact({"type": "text", "text": "né ✓"})) == (
        f'id: {RUN}:7\nevent: text\ndata: {{"type":"text","text":"né ✓"}}\n\n'.encode()
    )


@pytest.mark.req("SSE-053")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_data_is_one_line_whatever_the_text(text: str) -> None:
    raw = encode(RUN, 1, "text", compact({"type": "text", "text": text}))
    id_line, event, data, *rest = raw.split(b"\n")
    assert (id_line, event, rest) == (f"id: {RUN}:1".encode(), b"event: text", [b"", b""])
    assert b"\r" not in data
    assert json.loads(data.removeprefix(b"data: "))["text"] == text


@pytest.mark.req("SSE-006", "SSE-007", "SSE-031", "SSE-032", "SSE-033")
@pytest.mark.parametrize(
    ("header", "after"),
    [
        (None, 0),
        (f"{RUN}:0", 0),
        (f"{RUN}:3", 3),
        (f"{RUN}:9", 9),
        (f"{RUN}:10", None),
        ("", None),
        ("abc", None),
        ("x:1", None),
        (f"{RUN}:", None),
        (f"{RUN}:-1", None),
        (f"{RUN}:+1", None),
        (f"{RUN}:01", None),
        (f"{RUN}:1.5", None),
        (f"{RUN}:1 ", None),
        (f" {RUN}:1", None),
        (f"{RUN}:٣", None),
        (RUN, None),
        (f"{RUN}:1:1", None),
        (f"{RUN}:{LARGEST_SEQUENCE + 1}", None),
    ],
)
def test_where_a_stream_continues(header: str | None, after: int | None) -> None:
    assert continue_after(header, RUN, 9) == after


@pytest.mark.req("SSE-031")
def test_no_sequence_is_above_what_json_numbers_hold() -> None:
    assert continue_after(f"{RUN}:{LARGEST_SEQUENCE}", RUN, 1 << 60) == LARGEST_SEQUENCE
    assert continue_after(f"{RUN}:{LARGEST_SEQUENCE + 1}", RUN, 1 << 60) is None
